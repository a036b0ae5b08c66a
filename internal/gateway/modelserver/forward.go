// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
)

const (
	// tries is how often a backend gets a request before the agent gets its error.
	tries = 3
	// longestPause is the longest that a provider may ask for and that is waited for here; a longer one is the agent's to wait for.
	longestPause = 10 * time.Second
)

// betaHeader names what a client tries of Anthropic's API.
const betaHeader = "Anthropic-Beta"

// errSilent cancels a call whose backend says nothing.
var errSilent = errors.New("the backend was silent for too long")

// forward asks the backend, again where that may help, and copies its answer. After the first byte of an answer nothing is
// tried again: the agent has seen it.
func (c *call) forward() *failure {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	patience := c.patienceFor(false)
	silence := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silence.Stop()
	for tried := 1; ; tried++ {
		silence.Reset(patience)
		c.record.Tries++
		answer, err := c.ask(ctx)
		pause, again := c.again(answer, err, tried)
		if !again || tried == tries || ctx.Err() != nil {
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

// patienceFor a call with a silent backend, before it has begun to say something or after that.
func (c *call) patienceFor(begun bool) time.Duration {
	if c.endpoint.Kind != dialect.Generate {
		return c.caller.Silence
	}
	return models.Patience(c.caller.Silence, c.request.Streamed, c.request.Reasons, begun)
}

// ask the backend once.
func (c *call) ask(ctx context.Context) (*http.Response, error) {
	b := c.route.Backend
	c.asked, c.taken = c.server.options.Now(), &taken{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: c.taken.wrote})
	request, err := http.NewRequestWithContext(ctx, c.endpoint.Method, strings.TrimSuffix(b.BaseURL, "/")+c.target.Path, nil)
	if err != nil {
		return nil, err
	}
	body := c.body
	request.Body, request.ContentLength = c.sending.body(body), int64(len(body))
	request.GetBody = func() (io.ReadCloser, error) { return c.sending.body(body), nil }
	request.URL.RawQuery = c.target.Query.Encode()
	for name, values := range c.r.Header {
		if !c.dialect.Passes(name) || name == betaHeader && c.target.Betas != nil {
			continue
		}
		if value := c.dialect.Value(name, strings.Join(values, ","), c.allows); value != "" {
			request.Header.Set(name, value)
		}
	}
	// Whatever the agent says it is: the gateway has read it as JSON, and no server may read the same bytes as a form.
	request.Header.Set("Content-Type", "application/json")
	for name, value := range b.Sent() {
		request.Header.Set(name, value)
	}
	answer, renew, err := c.client.Do(request, c.dialect, c.key, c.body)
	c.renew = renew
	return answer, err
}

// taken says that a try was sent to its end: the provider may have it.
type taken struct{ atomic.Bool }

// wrote runs in a goroutine of the connection.
func (t *taken) wrote(sent httptrace.WroteRequestInfo) {
	if sent.Err == nil {
		t.Store(true)
	}
}

// query are the parameters that the dialect knows, written again: whatever else the text could mean is left behind.
func (c *call) query() url.Values {
	known := url.Values{}
	for name, values := range c.r.URL.Query() {
		if slices.Contains(c.dialect.Query, name) {
			known[name] = values
		}
	}
	if e := c.endpoint; e.Parameter != "" {
		known.Set(e.Parameter, e.Value)
	}
	return known
}

// again says whether it may help to ask again, and after which pause.
func (c *call) again(answer *http.Response, err error, tried int) (time.Duration, bool) {
	pause := c.server.options.Limits.Pause << (tried - 1)
	pause += rand.N(pause/2 + 1) //nolint:gosec // so that agents that were refused together do not come back together
	if err != nil {
		_, refused := errors.AsType[*backends.CredentialError](err)
		return pause, !refused
	}
	asked, worth := models.Again(answer.StatusCode, answer.Header.Get, c.server.options.Now())
	if !worth || asked > longestPause {
		return 0, false
	}
	return max(pause, asked), true
}

// take an answer, or say why there is none.
func (c *call) take(ctx context.Context, answer *http.Response, err error, silence *time.Timer) *failure {
	name := c.route.Backend.Name
	elsewhere := func(f *failure) *failure {
		f.elsewhere = true
		return f
	}
	if err != nil {
		switch _, refused := errors.AsType[*backends.CredentialError](err); {
		case errors.Is(context.Cause(ctx), errSilent):
			c.renew()
			c.turn.abandon(c.asked, c.taken.Load())
			return elsewhere(fail(http.StatusGatewayTimeout, reasonSilent, err, "the backend %q has not answered within %s", name, c.patienceFor(false)))
		case ctx.Err() != nil:
			c.turn.abandon(c.asked, c.taken.Load())
			return fail(http.StatusServiceUnavailable, reasonGone, err, "the call was given up")
		case refused:
			return elsewhere(fail(http.StatusServiceUnavailable, reasonNoKey, err, "the gateway has no credentials for the backend %q: an administrator looks at its log, which says why", name))
		}
		c.passage.tell(models.Failed)
		return elsewhere(fail(http.StatusBadGateway, reasonUnreachable, err, "the gateway cannot reach the backend %q; its log says why", name))
	}
	defer answer.Body.Close()
	outcome := models.Answered
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
		outcome = models.Failed
	}
	c.passage.tell(outcome)
	switch status := answer.StatusCode; {
	case status >= 300 && status < 400:
		return elsewhere(fail(http.StatusBadGateway, reasonRedirected, nil, "the backend %q redirects: an administrator sets the address that it redirects to as its baseURL", name))
	case !c.client.Accepts(status, c.key):
		return elsewhere(fail(http.StatusServiceUnavailable, reasonNoKey, nil, "the backend %q does not accept %s (status %d): an administrator sets another one", name, whose(c.route.Key), status))
	case len(c.routes) > 0 && outcome == models.Failed:
		return elsewhere(fail(http.StatusBadGateway, reasonAvoided, nil, "the backend %q answers with status %d", name, status))
	}
	short, err := unencoded(answer, func(n int64) *failure { return c.always.take(ctx, n) })
	if short != nil {
		return short
	}
	if err != nil {
		return elsewhere(fail(http.StatusBadGateway, reasonEncoded, err, "the backend %q answers in an encoding that the gateway did not ask for and cannot read: %q", name, answer.Header.Get("Content-Encoding")))
	}
	return c.copy(ctx, answer, silence)
}
