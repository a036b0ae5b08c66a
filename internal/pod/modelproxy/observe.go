// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Observer sees the requests of an agent and the answers of its models, and may change the requests. Many goroutines call it. It must not
// keep bytes of a request after Asked has returned: the next request overwrites them.
type Observer interface {
	// Known returns the part at the beginning of a conversation that came before; see dialect.Dialect.ReadFurther.
	Known(list []byte) conversation.Known
	// Asked gets a request for an answer before the proxy sends it on. It returns the body to send instead, and an observer of the answer, or
	// nil. It may keep the request back. The proxy does not send a nil body on: its client has hung up, or the watchdog has ended it.
	Asked(ctx context.Context, r dialect.Request) (body []byte, exchange Exchange)
}

// Exchange hears how a request fared. One of Answered and Failed is called, once.
type Exchange interface {
	// Turn of the run that the request belongs to, from 1.
	Turn() int64
	// Passed is called when more of an answer has come, or only a sign that the connection is alive. It is called often, and must not block.
	Passed(says bool)
	// Answered gets an answer as far as it has come, and the context window of its model in tokens; 0 if it is unknown.
	Answered(a *conversation.Answer, window int64)
	// Failed hears an answer that is an error.
	Failed(a failures.Answer)
}

// observation is a request that is heard.
type observation struct {
	dialect  dialect.Dialect
	exchange Exchange
	once     sync.Once
	// heard is the answer as far as it has come; nil where it is an error. It belongs to who reads the answer.
	heard *conversation.Answer
}

func (o *observation) answered(a *conversation.Answer, window int64) {
	o.once.Do(func() { o.exchange.Answered(a, window) })
}

func (o *observation) failed(a failures.Answer) {
	o.once.Do(func() { o.exchange.Failed(a) })
}

type observationKey struct{}

// observed is what is heard of a request's answer; nil where nothing is.
func observed(r *http.Request) *observation {
	o, _ := r.Context().Value(observationKey{}).(*observation)
	return o
}

// observe a request for an answer, and return the request that the proxy sends on instead. The observer hears each of them: what cannot be heard is refused.
// The memory is lent to who sends the request on.
func (p *Proxy) observe(w http.ResponseWriter, r *http.Request, d dialect.Dialect, m *memory) (*http.Request, *refusal) {
	if f := p.read(w, r, m); f != nil {
		return nil, f
	}
	request, err := d.ReadFurther(m.body, m.room, p.beside.Load(), p.options.Observer.Known)
	if err != nil { // the gateway would not read it either
		return nil, refuse(http.StatusBadRequest, failures.InvalidRequest, "%v", err)
	}
	p.beside.Store(request.Beside())
	text, exchange := p.options.Observer.Asked(r.Context(), request)
	if text == nil {
		return nil, &refusal{gone: true}
	}
	if exchange != nil {
		r = r.WithContext(context.WithValue(r.Context(), observationKey{}, &observation{dialect: d, exchange: exchange}))
	}
	r.Body, r.ContentLength = io.NopCloser(m.lend(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	r.TransferEncoding = nil
	return r, nil
}

// hear an answer of the gateway while it passes by.
func hear(answer *http.Response) {
	window, _ := strconv.ParseInt(answer.Header.Get(protocol.WindowHeader), 10, 64) // 0 where there is none
	answer.Header.Del(protocol.WindowHeader)
	o := observed(answer.Request)
	reason := answer.Header.Get(protocol.ReasonHeader)
	switch {
	case o == nil, reason == protocol.ReasonBudgetExceeded, reason == protocol.RefusalReserved: // a held call has no answer yet
	case answer.StatusCode >= http.StatusBadRequest:
		o.failed(failures.Answer{Status: answer.StatusCode, Reason: reason})
	default:
		streamed := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
		reader := conversation.NewReader(o.dialect.Answer(), streamed)
		o.heard = reader.Answer()
		answer.Body = &listening{ReadCloser: answer.Body, reader: reader, observation: o, window: window}
	}
}

// listening is a body that is heard while it is read.
type listening struct {
	io.ReadCloser

	reader      *conversation.Reader
	observation *observation
	window      int64
	closed      bool
}

// Read implements io.Reader. An answer has been heard before its end is passed on, so that the agent's next request comes after it.
func (l *listening) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if !l.closed {
		l.reader.Write(p[:n])
		if n > 0 {
			l.observation.exchange.Passed(l.reader.Says())
		}
		if l.reader.Answer().Ended || errors.Is(err, io.EOF) {
			l.end()
		}
	}
	return n, err
}

// Close implements io.Closer.
func (l *listening) Close() error {
	l.end()
	return l.ReadCloser.Close()
}

func (l *listening) end() {
	if !l.closed {
		l.closed = true
		l.observation.answered(l.reader.Close(), l.window)
	}
}
