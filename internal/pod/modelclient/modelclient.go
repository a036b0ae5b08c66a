// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelclient asks a model one question after the other, in the dialect of its backend, and hears each answer to its end.
package modelclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

const (
	// maxAnswer bounds an answer in bytes: streams of the longest ones have some 20 MiB of events.
	maxAnswer = 64 << 20
	// maxRefusal bounds what is read of an error, and maxQuoted what is said of it, in bytes.
	maxRefusal, maxQuoted = 64 << 10, 2000
	// maxCall bounds the ID of a call, in bytes.
	maxCall = 128
)

// Options of a Client. All but Header are required.
type Options struct {
	// URL that the dialects' prefixes are below.
	URL string
	// Speech is how the backend is spoken to.
	Speech speech.Speech
	// Transport of requests.
	Transport http.RoundTripper
	// Header adds what every request needs; it may be nil.
	Header func(http.Header) error
	// Agent is the name of the caller, for User-Agent.
	Agent string
	// Call bounds one request with its answer.
	Call time.Duration
	// Sleep waits; false when the context ended.
	Sleep func(ctx context.Context, d time.Duration) bool
	Log   *slog.Logger
}

// Client asks a model. Make it with New. One goroutine may use it at a time.
type Client struct {
	options Options
	client  *http.Client
}

// New makes a Client.
func New(o Options) *Client { return &Client{options: o, client: &http.Client{Transport: o.Transport}} }

// Speech is how the Client speaks to the backend now.
func (c *Client) Speech() speech.Speech { return c.options.Speech }

// Speak in another dialect from now on.
func (c *Client) Speak(s speech.Speech) { c.options.Speech = s }

// Trouble is the error of a request that got no whole answer.
type Trouble struct {
	err error
	// Status of HTTP; 0 where there was none, or an answer that broke off.
	Status int
	// Speaks is how the backend is spoken with, where it does not speak the dialect of the request; nil where that is not what is wrong.
	Speaks *speech.Speech

	// passes says that it may pass by itself, and after is what the provider asks to wait.
	passes bool
	after  time.Duration
}

// Error implements error.
func (t *Trouble) Error() string { return t.err.Error() }

// TooLarge says whether the size of the request may be what is wrong: providers have no common name for it.
func (t *Trouble) TooLarge() bool {
	return t.Status == http.StatusBadRequest || t.Status == http.StatusRequestEntityTooLarge
}

// Ask for an answer until there is one, or no hope for one. The error is a *Trouble, or says that the context has ended.
func (c *Client) Ask(ctx context.Context, body []byte) (speech.Answer, error) {
	for failures := 1; ; failures++ {
		answer, failed := c.once(ctx, body)
		if failed == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return speech.Answer{}, ctx.Err()
		}
		pause, again := speech.Again(failures, failed.after)
		if failed.Speaks != nil {
			return speech.Answer{}, failed
		}
		if !failed.passes || !again {
			failed.err = fmt.Errorf("the model has not answered (try %d): %w", failures, failed.err)
			return speech.Answer{}, failed
		}
		pause += rand.N(pause/4 + 1) // many workers wait for the same provider
		c.options.Log.WarnContext(ctx, "The model has not answered", "try", failures, "pause", pause.String(), "error", failed.Error())
		if !c.options.Sleep(ctx, pause) {
			return speech.Answer{}, ctx.Err()
		}
	}
}

// once asks one time.
func (c *Client) once(ctx context.Context, body []byte) (speech.Answer, *Trouble) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Call)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.options.URL, "/")+c.options.Speech.Path(), bytes.NewReader(body))
	if err != nil {
		return speech.Answer{}, &Trouble{err: err}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", c.options.Agent)
	for name, value := range c.options.Speech.Header {
		request.Header.Set(name, value)
	}
	if c.options.Header != nil {
		if err := c.options.Header(request.Header); err != nil {
			return speech.Answer{}, &Trouble{err: err, passes: true}
		}
	}
	response, err := c.client.Do(request)
	if err != nil {
		return speech.Answer{}, &Trouble{err: err, passes: true}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return speech.Answer{}, refused(response)
	}
	listener := c.options.Speech.Listen(strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream"))
	answer, failed := hear(listener, io.LimitReader(response.Body, maxAnswer))
	answer.Call = plain.CutBytes(response.Header.Get(protocol.CallHeader), maxCall)
	return answer, failed
}

// refused is an answer that is an error.
func refused(response *http.Response) *Trouble {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // as far as it comes
	return &Trouble{
		err:    fmt.Errorf("%s: %s", response.Status, plain.CutBytes(strings.TrimSpace(string(text)), maxQuoted)),
		Status: response.StatusCode, passes: passes(response.StatusCode), after: retryAfter(response.Header.Get("Retry-After"), time.Now()),
		Speaks: speaks(response.Header.Get(protocol.DialectsHeader)),
	}
}

// speaks is the first of some dialects that is spoken here; nil for none.
func speaks(dialects string) *speech.Speech {
	for name := range strings.SplitSeq(dialects, ",") {
		if s, known := speech.Find(name); known {
			return &s
		}
	}
	return nil
}

// passes says whether an error of HTTP may pass by itself.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(strings.TrimSpace(header), 10, 32); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// hear an answer to its end.
func hear(listener *speech.Listener, body io.Reader) (speech.Answer, *Trouble) {
	buffer := make([]byte, 32<<10)
	var broken error
	for broken == nil {
		var n int
		n, broken = body.Read(buffer)
		listener.Write(buffer[:n])
	}
	answer := listener.Close()
	switch {
	case answer.Failure != "":
		return answer, &Trouble{err: errors.New("the answer ended with an error: " + plain.CutBytes(answer.Failure, maxQuoted)), passes: !answer.Refused}
	case !answer.Ended && !errors.Is(broken, io.EOF):
		return answer, &Trouble{err: fmt.Errorf("the answer broke off: %w", broken), passes: true}
	case !answer.Ended:
		return answer, &Trouble{err: errors.New("the answer broke off"), passes: true}
	}
	return answer, nil
}

// Sleep waits; false when the context ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
