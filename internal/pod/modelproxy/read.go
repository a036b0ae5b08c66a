// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
)

// read all of a request. What cannot be read cannot be heard, and is refused.
func (p *Proxy) read(w http.ResponseWriter, r *http.Request, m *memory) *refusal {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return refuse(http.StatusUnsupportedMediaType, failures.InvalidRequest, "a request in Content-Encoding %.100q is not read: send it without one", encoding)
	}
	end := time.Now().Add(p.options.ReadTime)
	response := http.NewResponseController(w)
	_ = response.SetReadDeadline(end) // the server's connections have one
	ctx, cancel := context.WithDeadline(r.Context(), end)
	defer cancel()
	err := m.fill(ctx, r.Body, r.ContentLength)
	switch {
	case err == nil:
		_ = response.SetReadDeadline(time.Time{})
		return nil
	// The server ends the request's context when a read of its connection fails, also for the deadline.
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, failures.CallerStalls, "all of the request has not come within %s; try again", p.options.ReadTime)
	case r.Context().Err() != nil:
		return &refusal{gone: true}
	case errors.Is(err, errTooLarge):
		// Most clients read no answer before they have sent all of their request.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, dialect.MaxBody))
		return refuse(http.StatusRequestEntityTooLarge, failures.RequestTooLarge, "the request has more than %d bytes", dialect.MaxBody)
	case errors.Is(err, errNoRoom):
		return refuse(http.StatusServiceUnavailable, failures.MemoryShare, "other large requests of the agent are under way; try again, with fewer or smaller ones at once")
	}
	return refuse(http.StatusBadRequest, failures.InvalidRequest, "the request could not be read: %v", err)
}
