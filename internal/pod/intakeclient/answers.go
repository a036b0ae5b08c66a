// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intakeclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// expectTimeout is how long a replica may take to say whether it wants a body; it authenticates the pod first.
	expectTimeout = 15 * time.Second
	// answerTries bounds how often an answer looks for the replica that waits for it. With n replicas that take
	// connections by chance, each try fails with (n-1)/n: 64 tries miss one of ten with a probability of 0.1 %.
	answerTries = 64
	// answerPause is between two of them.
	answerPause = 100 * time.Millisecond
)

// hear hands an inquiry on that was not heard before.
func (c *Client) hear(text string) {
	if c.options.Inquire == nil || text == "" || len(text) > protocol.MaxInquiryHeader {
		return
	}
	var q protocol.Inquiry
	if json.Unmarshal([]byte(text), &q) != nil || q.ID == "" {
		return
	}
	c.mu.Lock()
	again := c.asked == q.ID
	c.asked = q.ID
	c.mu.Unlock()
	if !again {
		c.options.Inquire(q)
	}
}

func (c *Client) heard() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// Answer sends the answer to an inquiry. After Answer finds the replica that waits for it, it calls write once, and sends what write writes
// there. An error of write reaches the caller of the inquiry: as the answer if write has written nothing, and at the end otherwise. The
// function code returns the HTTP status of an error.
func (c *Client) Answer(ctx context.Context, id string, write func(io.Writer) error, code func(error) int) error {
	ctx, cancel := context.WithTimeout(ctx, protocol.InquiryTime)
	defer cancel()
	for try := 1; ; try++ {
		body := &answerBody{write: write, code: code}
		err := c.answer(ctx, id, body)
		var status *StatusError
		if !errors.As(err, &status) || status.Code != http.StatusMisdirectedRequest || body.began() || try == answerTries {
			return err
		}
		timer := time.NewTimer(jitter(answerPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("send answer: %w", context.Cause(ctx))
		}
	}
}

func (c *Client) answer(ctx context.Context, id string, body *answerBody) error {
	// "100 Continue" asks for the body: a replica that does not wait for it never sees it.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.options.URL+protocol.AnswersPath+url.PathEscape(id), body)
	if err != nil {
		return fmt.Errorf("make request for an answer: %w", err)
	}
	body.trailer = http.Header{protocol.AnswerErrorTrailer: nil}
	request.Trailer = body.trailer
	request.Header.Set("Expect", "100-continue")
	request.Header.Set("Content-Type", "application/octet-stream")
	if err := c.sign(request); err != nil {
		return err
	}
	l, err := c.dial()
	if err != nil {
		return err
	}
	response, err := l.answers.Do(request)
	if err != nil {
		return fmt.Errorf("send answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<12))
	if err != nil {
		return fmt.Errorf("read the result of an answer: %w", err)
	}
	if response.StatusCode != http.StatusNoContent {
		return newStatusError(response.StatusCode, text)
	}
	return nil
}

// answerBody is the body of an answer, which begins to be made when it is first read: a protocol.AnswerHead as a line of
// JSON, and then the content.
type answerBody struct {
	write   func(io.Writer) error
	code    func(error) int
	trailer http.Header

	mu   sync.Mutex
	pipe *io.PipeReader
	shut bool
}

func (b *answerBody) began() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pipe != nil
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		return 0, io.ErrClosedPipe
	}
	if b.pipe == nil {
		r, w := io.Pipe()
		b.pipe = r
		go b.make(w)
	}
	pipe := b.pipe
	b.mu.Unlock()
	return pipe.Read(p)
}

// Close implements io.Closer: what is being made then fails to write.
func (b *answerBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	if b.pipe != nil {
		return b.pipe.Close()
	}
	return nil
}

func (b *answerBody) make(w *io.PipeWriter) {
	out := &headed{w: w}
	err := b.write(out)
	switch {
	case err != nil && out.begun:
		// Set before the end of the body is seen; the transport reads trailers after it.
		b.trailer.Set(protocol.AnswerErrorTrailer, firstLine([]byte(err.Error())))
	case err != nil:
		message := err.Error()
		if len(message) > protocol.MaxAnswerMessage/2 {
			message = message[:protocol.MaxAnswerMessage/2]
		}
		_ = out.head(protocol.AnswerHead{Code: b.code(err), Message: message})
	default:
		_, _ = out.Write(nil)
	}
	_ = w.Close()
}

// headed writes the head before the first byte.
type headed struct {
	w     io.Writer
	begun bool
}

// Write implements io.Writer.
func (h *headed) Write(p []byte) (int, error) {
	if !h.begun {
		if err := h.head(protocol.AnswerHead{Code: http.StatusOK}); err != nil {
			return 0, err
		}
	}
	if len(p) == 0 {
		return 0, nil
	}
	return h.w.Write(p)
}

func (h *headed) head(head protocol.AnswerHead) error {
	h.begun = true
	line, err := json.Marshal(head)
	if err == nil {
		_, err = h.w.Write(append(line, '\n'))
	}
	return err
}
