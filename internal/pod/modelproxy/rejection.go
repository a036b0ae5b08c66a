// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Rejection says that a task cannot be done because of what its model has answered.
type Rejection struct{ Task, Message string }

// Rejections that came. One that is not taken stays until it is: the first of a task is enough.
func (p *Proxy) Rejections() <-chan Rejection { return p.rejections }

// look at an answer of the gateway, at its beginning and at its end.
func (p *Proxy) look(answer *http.Response) error {
	hear(answer)
	follow(answer)
	task := answer.Request.Header.Get(dialect.TaskHeader)
	if !p.reject(task, answer.Header) {
		answer.Body = &ended{ReadCloser: answer.Body, at: func() { p.reject(task, answer.Trailer) }}
	}
	return p.hold(answer)
}

// reject takes what is said in headers; false where nothing is. The agent does not get it.
func (p *Proxy) reject(task string, header http.Header) bool {
	text := header.Get(protocol.FailsHeader)
	if text == "" {
		return false
	}
	header.Del(protocol.FailsHeader)
	message, err := url.QueryUnescape(text)
	if err != nil {
		message = text
	}
	select {
	case p.rejections <- Rejection{Task: task, Message: plain.CutBytes(message, protocol.MaxFails)}:
	default: // one is there
	}
	return true
}

// ended is a body that says when it was read to its end.
type ended struct {
	io.ReadCloser

	at func()
}

// Read implements io.Reader.
func (e *ended) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && e.at != nil {
		e.at()
		e.at = nil
	}
	return n, err
}
