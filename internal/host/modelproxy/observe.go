// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/host/callers"
)

const (
	// maxObserved bounds a request that is read before it is sent on, in bytes. A window of a million tokens has some four million.
	maxObserved = 8 << 20
	// maxHeld bounds the memory of the requests that are heard, as they came and as they are sent on. It is held as long as their calls
	// last. What has no room is sent on as it comes.
	maxHeld = 48 << 20
	// readTime bounds how long a request takes to be read: it comes from this machine.
	readTime = 30 * time.Second
)

// Observer hears what an agent says to its models and what they answer, and may have them told something else. It is called from many
// goroutines. It keeps no byte of a request, which is overwritten by another one when its call has ended.
type Observer interface {
	// Known is what at the beginning of a conversation has been heard before; see dialect.Dialect.ReadFurther.
	Known(list []byte) conversation.Known
	// Asked hears a request for an answer before it is sent on. It gives what is sent on instead, and who hears of the answer; nil, where
	// nobody does. It may keep the request back. A body that is nil is not sent on: who has sent it has hung up, or was ended.
	Asked(ctx context.Context, r dialect.Request) (body []byte, exchange Exchange)
	// Wait keeps a request back that is not heard, for as long as Asked would. It says whether it is sent on then.
	Wait(ctx context.Context) bool
}

// Exchange hears how a request fared. One of its methods is called, once.
type Exchange interface {
	// Answered hears an answer as far as it has come, and the window of the model that gave it, in tokens; 0 where nobody knows it.
	Answered(a *conversation.Answer, window int64)
	// Failed hears the status of an answer that is an error.
	Failed(status int)
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

func (o *observation) failed(status int) {
	o.once.Do(func() { o.exchange.Failed(status) })
}

type observationKey struct{}

// observed is what is heard of a request's answer; nil where nothing is.
func observed(r *http.Request) *observation {
	o, _ := r.Context().Value(observationKey{}).(*observation)
	return o
}

// observe a request for an answer. What cannot be read is sent on as it is: the gateway says what is wrong with it. Free gives its memory
// back when the call has ended.
func (p *Proxy) observe(w http.ResponseWriter, r *http.Request, d dialect.Dialect) (heard *http.Request, free func()) {
	room := r.ContentLength
	if room < 0 {
		room = maxObserved
	}
	switch {
	case p.options.Observer == nil:
		return r, func() {}
	case r.Header.Get("Content-Encoding") != "":
		return p.pass(r, "it has a Content-Encoding"), func() {}
	case room > maxObserved:
		return p.pass(r, tooLarge), func() {}
	case !p.held.TryAcquire(2 * room):
		return p.pass(r, "many large ones were under way at once"), func() {}
	}
	memory := p.buffers.take(r.ContentLength)
	free = func() {
		p.buffers.give(memory)
		p.held.Release(2 * room)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // the server's connections have one
	defer func() { _ = http.NewResponseController(w).SetReadDeadline(time.Time{}) }()
	text, err := memory.read(io.LimitReader(r.Body, maxObserved+1))
	if err != nil || len(text) > maxObserved {
		if err == nil && p.pass(r, tooLarge) == nil {
			return nil, free
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(memory.lend(text), r.Body), r.Body}
		return r, free
	}
	if request, err := d.ReadFurther(text, memory.room, p.beside.Load(), p.options.Observer.Known); err == nil {
		p.beside.Store(request.Beside())
		steered, exchange := p.options.Observer.Asked(r.Context(), request)
		if text = steered; text == nil {
			return nil, free
		}
		if exchange != nil {
			r = r.WithContext(context.WithValue(r.Context(), observationKey{}, &observation{dialect: d, exchange: exchange}))
		}
	}
	r.Body, r.ContentLength = io.NopCloser(memory.lend(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	r.TransferEncoding = nil
	return r, free
}

// pass sends a request on that is not heard, when it may be; nil where it may not.
func (p *Proxy) pass(r *http.Request, why string) *http.Request {
	p.unheard(why)
	if !p.options.Observer.Wait(r.Context()) {
		return nil
	}
	return r
}

// tooLarge says why a request is not heard.
var tooLarge = fmt.Sprintf("it is larger than %d MiB", maxObserved>>20)

// unheard says that a request is sent on as it comes: for the first, the tenth, the hundredth and so on, because each report is written down.
func (p *Proxy) unheard(why string) {
	n := p.passed.Add(1)
	for n > 0 && n%10 == 0 {
		n /= 10
	}
	if n == 1 && p.options.Unheard != nil {
		p.options.Unheard(fmt.Sprintf("requests of the agent to its models that are not supervised: %d so far, the last because %s", p.passed.Load(), why))
	}
}

// hear an answer of the gateway while it passes by.
func hear(answer *http.Response) {
	window, _ := strconv.ParseInt(answer.Header.Get(protocol.WindowHeader), 10, 64) // 0 where there is none
	answer.Header.Del(protocol.WindowHeader)
	o := observed(answer.Request)
	reason := answer.Header.Get(callers.ReasonHeader)
	switch {
	case o == nil, reason == protocol.ReasonBudgetExceeded, reason == protocol.RefusalReserved: // a call that is held has no answer yet
	case answer.StatusCode >= http.StatusBadRequest:
		o.failed(answer.StatusCode)
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
