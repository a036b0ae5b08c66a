// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/host/callers"
	"github.com/tidewaiter/tidewaiter/internal/host/ledger"
)

const (
	// changesTime bounds the recording of a checkpoint's changes, with the reading of its body.
	changesTime = 30 * time.Second
	// mostChanges are recorded at a time, one of each Feature: each takes some times protocol.MaxChanges in memory.
	mostChanges = 4
	// maxPacked bounds a body as it comes, in bytes.
	maxPacked = 4 << 20
)

// changes records what checkpoints have changed, for the watchdogs of Features' current attempts; next has all other paths.
type changes struct {
	pods    *pods
	budgets *budgets
	ledger  interface {
		RecordChanges(ctx context.Context, o ledger.Owner, c protocol.Changes) (fresh bool, missing string, err error)
	}
	slots   *callers.Slots
	next    http.Handler
	log     *slog.Logger
	observe func(result string)
}

// ServeHTTP records the changes of one checkpoint.
func (c *changes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != protocol.ChangesPath {
		c.next.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changesTime)
	defer cancel()
	p, err := c.caller(ctx, r)
	if err == nil {
		err = c.record(ctx, w, r, p)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	status := http.StatusServiceUnavailable
	if refused, is := errors.AsType[*refusedChanges](err); is {
		status = refused.status
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	c.observe(resultRefused)
	c.log.WarnContext(ctx, "Did not record the changes of a checkpoint", "feature", p.name(), "status", status, "error", err.Error())
	http.Error(w, "tidewaiter: the changes are not recorded; the gateway's log says why", status)
}

// Results of recording, for metrics.
const (
	resultRecorded = "Recorded"
	resultPartly   = "PartlyRecorded"
	resultKnown    = "Known"
	resultRefused  = "Refused"
)

// refusedChanges are not recorded, however often they are handed in.
type refusedChanges struct {
	status int
	cause  error
}

// Error says why.
func (r *refusedChanges) Error() string { return r.cause.Error() }

// Unwrap gives the cause.
func (r *refusedChanges) Unwrap() error { return r.cause }

func refuse(status int, format string, args ...any) error {
	return &refusedChanges{status: status, cause: fmt.Errorf(format, args...)}
}

// caller is the pod that asks.
func (c *changes) caller(ctx context.Context, r *http.Request) (pod, error) {
	if r.Method != http.MethodPost {
		return pod{}, refuse(http.StatusMethodNotAllowed, "changes are posted")
	}
	token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !is || token == "" || len(r.Header.Values("Authorization")) != 1 {
		return pod{}, refuse(http.StatusUnauthorized, "no token")
	}
	p, err := c.pods.find(callers.WithSource(ctx, r.RemoteAddr), token)
	if errors.Is(err, callers.ErrUnauthenticated) {
		return p, refuse(http.StatusUnauthorized, "%w", err)
	}
	return p, err
}

// record what a pod hands in.
func (c *changes) record(ctx context.Context, w http.ResponseWriter, r *http.Request, p pod) error {
	release, ok := c.slots.Take(p.name())
	if !ok {
		return refuse(http.StatusTooManyRequests, "too many changes are being recorded")
	}
	defer release()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(changesTime)) // where there is none, the server's own ends it
	changed, err := readChanges(r.Header.Get("Content-Encoding"), http.MaxBytesReader(w, r.Body, maxPacked))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err != nil {
		return refuse(http.StatusBadRequest, "read the changes: %w", err)
	}
	if changed.Checkpoint < 1 {
		return refuse(http.StatusBadRequest, "there is no checkpoint %d", changed.Checkpoint)
	}
	o := ledger.Owner{FeatureUID: string(p.feature.UID), Namespace: p.feature.Namespace, Feature: p.feature.Name}
	// While policies cannot be used the records are kept as long as is usual: a record does not wait until a person has fixed them.
	if allowed, err := c.budgets.of(ctx, p, func(ctx context.Context) (policy.Effective, error) { return c.pods.policy(ctx, p.feature) }); err == nil {
		o.Keep = allowed.keep
	}
	fresh, missing, err := c.ledger.RecordChanges(ctx, o, changed)
	switch {
	case err != nil:
		return err
	case !fresh:
		c.observe(resultKnown)
	case missing != "":
		c.observe(resultPartly)
		c.log.WarnContext(ctx, "Recorded less than the whole of a checkpoint's changes", "feature", p.name(), "checkpoint", changed.Checkpoint, "reason", missing)
	default:
		c.observe(resultRecorded)
	}
	return nil
}

// errTooManyBytes is said of changes that are larger than a watchdog makes them.
var errTooManyBytes = fmt.Errorf("they have more than %d bytes", protocol.MaxChanges)

// readChanges in gzip.
func readChanges(encoding string, body io.Reader) (changed protocol.Changes, err error) {
	if encoding != "gzip" {
		return changed, fmt.Errorf("they are in Content-Encoding %q and not in gzip", encoding)
	}
	in, err := gzip.NewReader(body)
	if err != nil {
		return changed, err
	}
	text, err := io.ReadAll(io.LimitReader(in, protocol.MaxChanges+1))
	if err == nil && len(text) > protocol.MaxChanges {
		err = errTooManyBytes
	}
	if err == nil {
		err = json.Unmarshal(text, &changed)
	}
	return changed, err
}
