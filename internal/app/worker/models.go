// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/worker"
)

const (
	// maxAnswer bounds an answer in bytes: streams of the longest ones have some 20 MiB of events.
	maxAnswer = 64 << 20
	// maxRefusal bounds what is read of an error, and maxQuoted what is said of it, in bytes.
	maxRefusal, maxQuoted = 64 << 10, 2000
)

// models asks a model.
type models struct {
	options Options
	client  *http.Client
}

func newModels(o Options) *models {
	// They are on the pod's loopback: no proxy is between.
	return &models{options: o, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
}

// trouble is a request that got no whole answer.
type trouble struct {
	err error
	// status of HTTP; 0 where there was none, or an answer that broke off.
	status int
	// passes says that it may pass by itself, and after is what the provider asks to wait.
	passes bool
	after  time.Duration
	// speaks is how the backend is spoken with, where it does not speak the dialect of the request; nil where that is not what is wrong.
	speaks *worker.Speech
}

// Error implements error.
func (t *trouble) Error() string { return t.err.Error() }

// tooLarge says whether the size of the request may be what is wrong: providers have no common name for it.
func (t *trouble) tooLarge() bool {
	return t.status == http.StatusBadRequest || t.status == http.StatusRequestEntityTooLarge
}

// ask for an answer until there is one, or no hope for one.
func (m *models) ask(ctx context.Context, body []byte) (worker.Answer, error) {
	for failures := 1; ; failures++ {
		answer, failed := m.once(ctx, body)
		if failed == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return worker.Answer{}, ctx.Err()
		}
		pause, again := worker.Again(failures, failed.after)
		if failed.speaks != nil {
			return worker.Answer{}, failed
		}
		if !failed.passes || !again {
			failed.err = fmt.Errorf("the model has not answered (try %d): %w", failures, failed.err)
			return worker.Answer{}, failed
		}
		pause += rand.N(pause/4 + 1) // many workers wait for the same provider
		m.options.Log.WarnContext(ctx, "The model has not answered", "try", failures, "pause", pause.String(), "error", failed.Error())
		if !m.options.Sleep(ctx, pause) {
			return worker.Answer{}, ctx.Err()
		}
	}
}

// once asks one time.
func (m *models) once(ctx context.Context, body []byte) (worker.Answer, *trouble) {
	ctx, cancel := context.WithTimeout(ctx, m.options.Call)
	defer cancel()
	speech := m.options.Speech
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(m.options.Models, "/")+speech.Path(), bytes.NewReader(body))
	if err != nil {
		return worker.Answer{}, &trouble{err: err}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "tidewaiter-worker")
	for name, value := range speech.Header {
		request.Header.Set(name, value)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return worker.Answer{}, &trouble{err: err, passes: true}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return worker.Answer{}, refused(response)
	}
	listener := speech.Listen(strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream"))
	return hear(listener, io.LimitReader(response.Body, maxAnswer))
}

// refused is an answer that is an error.
func refused(response *http.Response) *trouble {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // as far as it comes
	return &trouble{
		err:    fmt.Errorf("%s: %s", response.Status, plain.CutBytes(strings.TrimSpace(string(text)), maxQuoted)),
		status: response.StatusCode, passes: passes(response.StatusCode), after: retryAfter(response.Header.Get("Retry-After"), time.Now()),
		speaks: speaks(response.Header.Get(protocol.DialectsHeader)),
	}
}

// speaks is the first of some dialects that is spoken here; nil for none.
func speaks(dialects string) *worker.Speech {
	for name := range strings.SplitSeq(dialects, ",") {
		if speech, known := worker.Find(name); known {
			return &speech
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
func hear(listener *worker.Listener, body io.Reader) (worker.Answer, *trouble) {
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
		return answer, &trouble{err: errors.New("the answer ended with an error: " + plain.CutBytes(answer.Failure, maxQuoted)), passes: !answer.Refused}
	case !answer.Ended && !errors.Is(broken, io.EOF):
		return answer, &trouble{err: fmt.Errorf("the answer broke off: %w", broken), passes: true}
	case !answer.Ended:
		return answer, &trouble{err: errors.New("the answer broke off"), passes: true}
	}
	return answer, nil
}
