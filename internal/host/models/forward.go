// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

const (
	// tries is how often a backend is asked before its error is the agent's.
	tries = 3
	// longestPause is the longest Retry-After that is waited for here; a longer one is the agent's to wait for.
	longestPause = 10 * time.Second
)

// errSilent cancels a call whose backend says nothing.
var errSilent = errors.New("the backend was silent for too long")

// forward asks the backend, again where that may help, and copies its answer. After the first byte of an answer nothing is
// tried again: the agent has seen it.
func (c *call) forward() *failure {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	silence := time.AfterFunc(c.caller.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	for c.record.Tries = 1; ; c.record.Tries++ {
		silence.Reset(c.caller.Silence)
		answer, err := c.ask(ctx)
		pause, again := c.again(answer, err)
		if !again || c.record.Tries == tries || ctx.Err() != nil {
			return c.take(ctx, answer, err, silence)
		}
		if answer != nil {
			_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection can be used again
			_ = answer.Body.Close()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// ask the backend once.
func (c *call) ask(ctx context.Context) (*http.Response, error) {
	target := strings.TrimSuffix(c.route.Backend.BaseURL, "/") + c.endpoint.Path
	request, err := http.NewRequestWithContext(ctx, c.endpoint.Method, target, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = c.query().Encode()
	for name, values := range c.r.Header {
		if c.dialect.Passes(name) {
			request.Header[name] = values
		}
	}
	for name, value := range c.route.Backend.Headers {
		request.Header.Set(name, value)
	}
	if c.key != "" {
		request.Header.Set(c.dialect.Key(c.key))
	}
	return c.client.RoundTrip(request)
}

// query are the parameters that the dialect knows, written down anew: whatever else the text could mean is left behind.
func (c *call) query() url.Values {
	known := url.Values{}
	for name, values := range c.r.URL.Query() {
		if slices.Contains(c.dialect.Query, name) {
			known[name] = values
		}
	}
	return known
}

// again says whether it may help to ask again, and after which pause.
func (c *call) again(answer *http.Response, err error) (time.Duration, bool) {
	pause := c.server.options.Limits.Pause << (c.record.Tries - 1)
	pause += rand.N(pause/2 + 1) //nolint:gosec // so that agents that were refused together do not come back together
	if err != nil {
		return pause, true
	}
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < 500 {
		return 0, false
	}
	if text := answer.Header.Get("Retry-After"); text != "" {
		seconds, err := strconv.Atoi(text)
		asked := time.Duration(seconds) * time.Second
		if err != nil || asked > longestPause { // a date is far away
			return 0, false
		}
		pause = max(pause, asked)
	}
	return pause, true
}

// take an answer, or say why there is none.
func (c *call) take(ctx context.Context, answer *http.Response, err error, silence *time.Timer) *failure {
	name := c.route.Backend.Name
	if err != nil {
		switch {
		case errors.Is(context.Cause(ctx), errSilent):
			return fail(http.StatusGatewayTimeout, reasonSilent, err, "the backend %q has not answered within %s", name, c.caller.Silence)
		case ctx.Err() != nil:
			return fail(http.StatusServiceUnavailable, reasonGone, err, "the call was given up")
		}
		return fail(http.StatusBadGateway, reasonUnreachable, err, "the backend %q cannot be reached; the gateway's log says why", name)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return fail(http.StatusBadGateway, reasonRedirected, nil, "the backend %q redirects: an administrator sets the address that it redirects to as its baseURL", name)
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden && c.key == "":
		return fail(http.StatusServiceUnavailable, reasonNoKey, nil, "the backend %q does not accept the gateway's key (status %d): an administrator sets another one", name, answer.StatusCode)
	}
	c.copy(ctx, answer, silence)
	return nil
}

// copied are the headers of an answer that reach the agent, beside those of the dialect. Cookies and what the way back has
// added do not.
var copied = []string{"content-type", "request-id", "retry-after", "x-request-id"}

// copy an answer to the agent as it comes.
func (c *call) copy(ctx context.Context, answer *http.Response, silence *time.Timer) {
	// An answer takes minutes, and the request is not needed any more.
	c.request, c.body, answer.Request = dialect.Request{}, nil, nil
	c.free()
	c.record.Reason, c.record.Status = reasonAnswered, answer.StatusCode
	c.record.FirstByte = c.server.options.Now().Sub(c.began)
	header := c.w.Header()
	for name, values := range answer.Header {
		if slices.Contains(copied, strings.ToLower(name)) || c.dialect.Passes(name) {
			header[name] = values
		}
	}
	header.Set("X-Content-Type-Options", "nosniff")
	if answer.ContentLength >= 0 {
		header.Set("Content-Length", strconv.FormatInt(answer.ContentLength, 10))
	}
	c.w.WriteHeader(answer.StatusCode)
	c.turn.answered(answer)
	r := &relay{call: c, answer: answer, control: http.NewResponseController(c.w), held: c.turn != nil && !c.turn.streamed}
	if r.held {
		_ = r.control.Flush() // the agent waits for something
	}
	for buffer := make([]byte, 32<<10); ; {
		n, err := answer.Body.Read(buffer)
		silence.Reset(c.caller.Silence)
		if n > 0 && !r.pass(buffer[:n]) {
			return
		}
		// A backend that notices the end of a call that was given up may still end its answer as if it were whole.
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			r.end()
			return
		}
		if err != nil {
			c.broken(ctx, answer, err)
			return
		}
	}
}

// relay passes an answer on.
type relay struct {
	call    *call
	answer  *http.Response
	control *http.ResponseController
	// held says that a part waits in next until the following one is there: an answer that is no stream of events does not say
	// where it ends.
	held bool
	next []byte
}

// pass the next part on; false where the answer is over for the agent.
func (r *relay) pass(part []byte) bool {
	r.call.record.Received += int64(len(part))
	if r.call.turn.see(part) && !r.record() {
		return false
	}
	if r.held {
		part, r.next = r.next, append([]byte(nil), part...)
	}
	return len(part) == 0 || r.call.send(r.control, part)
}

// end an answer that is whole.
func (r *relay) end() {
	if r.record() && len(r.next) > 0 {
		r.call.send(r.control, r.next)
	}
}

// record the call; false where the agent must not see its end.
func (r *relay) record() bool {
	lost := r.call.turn.record()
	if lost != nil {
		r.call.lose(r.answer, lost)
	}
	return lost == nil
}

// send a part of the answer to the agent; false where it is gone.
func (c *call) send(control *http.ResponseController, part []byte) bool {
	if _, gone := c.w.Write(part); gone != nil {
		c.record.Reason = reasonGone
		return false
	}
	_ = control.Flush() // the next write says what is wrong
	return true
}

// lose an answer whose end the agent must not see, because it could not be recorded.
func (c *call) lose(answer *http.Response, err error) {
	f := unrecorded(err)
	c.record.Reason = f.reason
	c.interrupt(answer, f)
}

// broken ends an answer that has begun and cannot be completed. A stream of events ends with one that says so; any other
// answer with its connection, so that nobody takes it for whole.
func (c *call) broken(ctx context.Context, answer *http.Response, err error) {
	c.record.Reason = reasonCutOff
	message := "the backend's answer broke off; try again"
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		c.record.Reason, message = reasonSilent, "the backend said nothing for "+c.caller.Silence.String()+"; try again"
	case c.r.Context().Err() != nil:
		c.record.Reason = reasonGone
		return
	}
	c.server.options.Logger.Warn("An answer of a backend broke off", "feature", c.record.Feature, "backend", c.record.Backend,
		"model", c.record.Model, "reason", c.record.Reason, "received", c.record.Received, "error", err.Error())
	c.interrupt(answer, fail(http.StatusServiceUnavailable, c.record.Reason, nil, "%s", message))
}

// interrupt an answer that has begun.
func (c *call) interrupt(answer *http.Response, f *failure) {
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") || answer.ContentLength >= 0 {
		panic(http.ErrAbortHandler)
	}
	// What was cut in the middle of an event ends there.
	_, _ = c.w.Write(append([]byte("\n\n"), c.dialect.Broken(f.Failure)...)) // whoever hung up does not read it
}
