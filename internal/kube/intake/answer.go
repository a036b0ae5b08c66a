// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strings"

	"github.com/go-logr/logr"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

// maxProblem bounds what an answer or a log line says about a failure, in characters.
const maxProblem = 1024

// fail answers with what went wrong.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	code, report := verdict(err)
	logger := logr.FromContextOrDiscard(r.Context())
	if code >= http.StatusInternalServerError && !errors.Is(err, errDraining) && !errors.Is(err, errBehind) && r.Context().Err() == nil {
		logger.Error(err, "Cannot answer a watchdog", "path", r.URL.Path)
	} else {
		logger.V(1).Info("Refused a request", "path", r.URL.Path, "code", code, "cause", err.Error())
	}
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests || code == http.StatusTooEarly {
		w.Header().Set("Retry-After", "1")
	}
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tidewaiter"`)
	}
	respond(w, r, code, protocol.Problem{Error: runstatus.Clean(err.Error(), maxProblem), Epoch: report.Epoch, Sequence: report.Sequence})
}

// respond sends a document. A caller that hung up asks again.
func respond(w http.ResponseWriter, r *http.Request, code int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(document); err != nil {
		logr.FromContextOrDiscard(r.Context()).V(1).Info("Cannot send an answer", "cause", err.Error())
	}
}

// verdict gives the status of an error and the report that it is about, if it is about one.
func verdict(err error) (int, protocol.ReportAck) {
	var bad *runstatus.Refusal
	var conflict *errConflict
	switch {
	case errors.As(err, &bad):
		return bad.Code(), bad.Report
	case errors.As(err, &conflict):
		return http.StatusConflict, conflict.report
	case errors.Is(err, identity.ErrUnauthenticated):
		return http.StatusUnauthorized, protocol.ReportAck{}
	case errors.Is(err, identity.ErrForbidden):
		return http.StatusForbidden, protocol.ReportAck{}
	case errors.Is(err, identity.ErrTooEarly), errors.Is(err, errAhead):
		return http.StatusTooEarly, protocol.ReportAck{}
	case errors.Is(err, errElsewhere):
		return http.StatusMisdirectedRequest, protocol.ReportAck{}
	case errors.Is(err, errTooMany), errors.Is(err, identity.ErrBusy):
		return http.StatusTooManyRequests, protocol.ReportAck{}
	default:
		// The API server, this replica's end, a caller that hung up: all of them are to be tried again.
		return http.StatusServiceUnavailable, protocol.ReportAck{}
	}
}

// quiet is the log of the HTTP server: handshakes that fail and the like, of which anybody can cause any number.
func quiet(logger logr.Logger) *log.Logger {
	return log.New(lines(func(line string) { logger.V(1).Info("HTTP server", "message", line) }), "", 0)
}

type lines func(string)

func (l lines) Write(p []byte) (int, error) {
	l(runstatus.Clean(strings.TrimSpace(string(p)), maxProblem))
	return len(p), nil
}
