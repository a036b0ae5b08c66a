// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelclient asks a model one question after the other, in the dialect of its backend, and hears each answer to its end.
package modelclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
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
	// maxReason bounds the reason of a failed call, in bytes.
	maxReason = 64
)

// Options of a Client. All but Header and Waits are required.
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
	// Waits says whether to ask again after what may pass by itself; nil means always.
	Waits func(*Trouble) bool
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
	// Reason of an error that the gateway gave; empty for the provider's own.
	Reason string
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

// OutOfTimeError says that the context has ended before there was an answer.
type OutOfTimeError struct {
	cause error
	// Last is what was wrong with the last try that a provider or the gateway has answered; nil if there was none.
	Last *Trouble
	// Tries that were made.
	Tries int
}

// Error implements error.
func (e *OutOfTimeError) Error() string {
	if e.Last == nil {
		return "the model has not answered in time"
	}
	return fmt.Sprintf("the model has not answered in time (%d tries): %s", e.Tries, e.Last)
}

// Unwrap gives the error of the context.
func (e *OutOfTimeError) Unwrap() error { return e.cause }

// Ask for an answer until there is one, or no hope for one. The error is a *Trouble or an *OutOfTimeError.
func (c *Client) Ask(ctx context.Context, body []byte) (speech.Answer, error) {
	var last *Trouble
	for tries := 1; ; tries++ {
		answer, failed := c.once(ctx, body)
		if failed == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return speech.Answer{}, &OutOfTimeError{ctx.Err(), last, tries}
		}
		if last == nil || failed.Reason != failures.BackendAvoided { // the answers before it say why
			last = failed
		}
		pause, again := speech.Again(tries, failed.after)
		if failed.Speaks != nil {
			return speech.Answer{}, failed
		}
		if !failed.passes || !again || c.options.Waits != nil && !c.options.Waits(failed) {
			failed.err = fmt.Errorf("the model has not answered (try %d): %w", tries, failed.err)
			return speech.Answer{}, failed
		}
		pause += rand.N(pause/4 + 1) // many workers wait for the same provider
		c.options.Log.WarnContext(ctx, "The model has not answered", "try", tries, "pause", pause.String(), "error", failed.Error())
		if !c.options.Sleep(ctx, pause) {
			return speech.Answer{}, &OutOfTimeError{ctx.Err(), last, tries}
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
		err:    errors.New(strings.TrimSuffix(status(response.StatusCode)+": "+plain.CutBytes(message(text), maxQuoted), ": ")),
		Status: response.StatusCode, Reason: plain.CutBytes(response.Header.Get(protocol.ReasonHeader), maxReason), passes: passes(response.StatusCode), after: retryAfter(response.Header.Get("Retry-After"), time.Now()),
		Speaks: speaks(response.Header.Get(protocol.DialectsHeader)),
	}
}

// status in words, such as 503 Service Unavailable.
func status(code int) string { return strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code))) }

// message of an answer that is an error: what its JSON says, or its text. A page has none.
func message(body []byte) string {
	var said struct {
		Error   any    `json:"error"`
		Message string `json:"message"`
	}
	text := strings.TrimSpace(string(body))
	switch {
	case strings.HasPrefix(text, "<"):
		return ""
	case json.Unmarshal(body, &said) != nil:
		return text
	}
	switch e := said.Error.(type) {
	case string:
		return cmp.Or(e, text)
	case map[string]any:
		message, _ := e["message"].(string)
		return cmp.Or(message, text)
	}
	return cmp.Or(said.Message, text)
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
	size := 0
	for broken == nil {
		var n int
		n, broken = body.Read(buffer)
		size += n
		listener.Write(buffer[:n])
	}
	answer := listener.Close()
	switch {
	case answer.Failure != "":
		return answer, &Trouble{err: errors.New("the answer ended with an error: " + plain.CutBytes(answer.Failure, maxQuoted)), passes: !answer.Refused}
	case !answer.Ended && errors.Is(broken, io.EOF) && (answer.Cut || size >= maxAnswer): // and the next one is paid for, too
		return answer, &Trouble{err: fmt.Errorf("the answer has %d bytes or more, which is more than can be read", size)}
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
