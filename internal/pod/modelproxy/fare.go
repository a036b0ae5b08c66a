// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// fare is a call whose end is reported, once. A call that the agent gives up has no end.
type fare struct {
	once sync.Once
	told func(failures.Answer)
}

type fareKey struct{}

// watched is a request whose end is reported.
func (p *Proxy) watched(r *http.Request) *http.Request {
	if p.options.Fared == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), fareKey{}, &fare{told: p.options.Fared}))
}

// fareOf a request; nil if nobody wants to know.
func fareOf(r *http.Request) *fare {
	f, _ := r.Context().Value(fareKey{}).(*fare)
	return f
}

func (f *fare) over(a failures.Answer) {
	if f != nil {
		f.once.Do(func() { f.told(a) })
	}
}

// follow an answer of the gateway to its end.
func follow(answer *http.Response) {
	f := fareOf(answer.Request)
	switch reason := answer.Header.Get(protocol.ReasonHeader); {
	case f == nil:
	case answer.StatusCode >= http.StatusBadRequest, reason != "":
		f.over(failures.Answer{Status: answer.StatusCode, Reason: reason})
	default:
		answer.Body = &followed{ReadCloser: answer.Body, answer: answer, fare: f}
	}
}

// followed is the body of an answer that began well.
type followed struct {
	io.ReadCloser

	answer *http.Response
	fare   *fare
}

// Read implements io.Reader. It reports the result of the answer before it passes its end on, so that it is known when the agent ends because of it.
func (b *followed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	ended, failed := b.come()
	switch reason := b.answer.Trailer.Get(protocol.ReasonHeader); {
	case errors.Is(err, io.EOF) && reason != "": // the gateway had to end it
		b.over(reason)
	case failed:
		b.over(failures.AnswerFailed)
	case ended, errors.Is(err, io.EOF) && observed(b.answer.Request) == nil:
		b.over("")
	case errors.Is(err, io.EOF):
		b.over(failures.AnswerCutOff)
	case err != nil && b.answer.Request.Context().Err() == nil:
		b.over(failures.AnswerBroken)
	}
	return n, err
}

func (b *followed) over(reason string) {
	b.fare.over(failures.Answer{Status: b.answer.StatusCode, Reason: reason})
}

// come says how far an answer has come that is heard.
func (b *followed) come() (ended, failed bool) {
	o := observed(b.answer.Request)
	if o == nil || o.heard == nil {
		return false, false
	}
	return o.heard.Ended, o.heard.Failure != ""
}
