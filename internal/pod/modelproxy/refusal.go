// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"fmt"
	"net/http"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// refusal is an answer that the proxy gives itself.
type refusal struct {
	dialect.Failure

	reason string
	// gone says that nobody waits for the answer.
	gone bool
}

func refuse(status int, reason, format string, args ...any) *refusal {
	return &refusal{Failure: dialect.Failure{Status: status, Message: "tidewaiter: " + fmt.Sprintf(format, args...)}, reason: reason}
}

// write the refusal in the dialect's own form. Clients of every dialect try again after 503.
func (f *refusal) write(w http.ResponseWriter, r *http.Request, d dialect.Dialect) {
	if f.gone {
		panic(http.ErrAbortHandler)
	}
	fareOf(r).over(failures.Answer{Status: f.Status, Reason: f.reason})
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set(protocol.ReasonHeader, f.reason)
	if f.Status == http.StatusServiceUnavailable {
		header.Set("Retry-After", "1")
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write(d.Error(f.Failure)) // who has hung up does not read it
}
