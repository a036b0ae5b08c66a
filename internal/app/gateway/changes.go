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
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

const (
	// changesTime bounds the recording of a checkpoint's changes, of a step of steering or of an entry of a history, with the reading of its body.
	changesTime = 30 * time.Second
	// mostChanges are recorded at a time, one of each Feature: each takes some times protocol.MaxChanges in memory.
	mostChanges = 4
	// maxPacked bounds a body as it comes, in bytes.
	maxPacked = 4 << 20
)

// changes records what checkpoints have changed, what was done about agents in trouble and what happened in Features, for the watchdogs of Features' current
// attempts; next has all other paths.
type changes struct {
	pods    *pods
	budgets *budgets
	ledger  changesLedger
	slots   *callers.Slots
	next    http.Handler
	log     *slog.Logger
	// observe the results by path.
	observe func(path, result string)
	// step hears of each step of steering that is new to the ledger.
	step func(protocol.SteeringStep)
	// happened hears of each entry of a history that is new to the ledger.
	happened func(namespace string, e protocol.HistoryEntry)
}

type changesLedger interface {
	RecordChanges(ctx context.Context, o ledger.Owner, c protocol.Changes) (fresh bool, missing string, err error)
	RecordSteering(ctx context.Context, o ledger.Owner, s protocol.SteeringStep) (fresh bool, missing string, err error)
	RecordHistory(ctx context.Context, o ledger.Owner, e protocol.HistoryEntry) (fresh bool, missing string, err error)
}

// handed is what a watchdog hands in, as it was read. Number is that of the checkpoint, the step or the entry, and record puts it into the ledger.
type handed struct {
	number int64
	record func(ctx context.Context, o ledger.Owner) (fresh bool, missing string, err error)
}

// reader of what is handed in at a path; nil for all others.
func (c *changes) reader(path string) func(encoding string, body io.Reader) (handed, error) {
	switch path {
	case protocol.ChangesPath:
		return func(encoding string, body io.Reader) (handed, error) {
			given, err := readPacked[protocol.Changes](encoding, body, protocol.MaxChanges)
			return handed{given.Checkpoint, func(ctx context.Context, o ledger.Owner) (bool, string, error) {
				return c.ledger.RecordChanges(ctx, o, given)
			}}, err
		}
	case protocol.SteeringPath:
		return func(encoding string, body io.Reader) (handed, error) {
			given, err := readPacked[protocol.SteeringStep](encoding, body, protocol.MaxSteering)
			return handed{given.Sequence, func(ctx context.Context, o ledger.Owner) (bool, string, error) {
				fresh, missing, err := c.ledger.RecordSteering(ctx, o, given)
				if fresh && err == nil {
					c.step(given)
				}
				return fresh, missing, err
			}}, err
		}
	case protocol.HistoryPath:
		return func(encoding string, body io.Reader) (handed, error) {
			given, err := readPacked[protocol.HistoryEntry](encoding, body, protocol.MaxHistoryBytes)
			return handed{given.Sequence, func(ctx context.Context, o ledger.Owner) (bool, string, error) {
				fresh, missing, err := c.ledger.RecordHistory(ctx, o, given)
				if errors.Is(err, ledger.ErrHistoryFull) {
					err = refuse(http.StatusRequestEntityTooLarge, "%w", err)
				}
				if fresh && err == nil {
					c.happened(o.Namespace, given)
				}
				return fresh, missing, err
			}}, err
		}
	}
	return nil
}

// ServeHTTP records the changes of one checkpoint, one step of steering, or one entry of a history.
func (c *changes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	read := c.reader(r.URL.Path)
	if read == nil {
		c.next.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changesTime)
	defer cancel()
	p, err := c.caller(ctx, r)
	if err == nil {
		err = c.record(ctx, w, r, p, read)
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
	c.observe(r.URL.Path, resultRefused)
	c.log.WarnContext(ctx, "Did not record what a watchdog handed in for the ledger", "feature", p.name(), "path", r.URL.Path, "status", status, "error", err.Error())
	http.Error(w, "tidewaiter: the gateway did not record it; its log says why", status)
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
		return pod{}, refuse(http.StatusMethodNotAllowed, "records are posted")
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
func (c *changes) record(ctx context.Context, w http.ResponseWriter, r *http.Request, p pod, read func(string, io.Reader) (handed, error)) error {
	release, err := c.slots.Take(p.name())
	if err != nil {
		return refuse(http.StatusTooManyRequests, "too many records are being written")
	}
	defer release()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(changesTime)) // where there is none, the server's own ends it
	given, err := read(r.Header.Get("Content-Encoding"), http.MaxBytesReader(w, r.Body, maxPacked))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err != nil {
		return refuse(http.StatusBadRequest, "read the record: %w", err)
	}
	if given.number < 1 {
		return refuse(http.StatusBadRequest, "the record has the number %d, and numbers begin with 1", given.number)
	}
	o := ledger.Owner{FeatureUID: string(p.feature.UID), Namespace: p.feature.Namespace, Feature: p.feature.Name}
	// While policies cannot be used the records are kept as long as is usual: a record does not wait until a user has fixed them.
	if allowed, err := c.budgets.of(ctx, p, func(ctx context.Context) (policy.Effective, error) { return c.pods.policy(ctx, p.feature) }); err == nil {
		o.Keep = allowed.keep
	}
	fresh, missing, err := given.record(ctx, o)
	switch {
	case err != nil:
		return err
	case !fresh:
		c.observe(r.URL.Path, resultKnown)
	case missing != "":
		c.observe(r.URL.Path, resultPartly)
		c.log.WarnContext(ctx, "Recorded less than all that a watchdog handed in", "feature", p.name(), "path", r.URL.Path, "number", given.number, "reason", missing)
	default:
		c.observe(r.URL.Path, resultRecorded)
	}
	return nil
}

// readPacked reads a record in gzip, whose JSON has at most the given bytes.
func readPacked[T any](encoding string, body io.Reader, most int) (given T, err error) {
	if encoding != "gzip" {
		return given, fmt.Errorf("it is in Content-Encoding %q and not in gzip", encoding)
	}
	in, err := gzip.NewReader(body)
	if err != nil {
		return given, err
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	if err == nil {
		err = json.Unmarshal(text, &given)
	}
	return given, err
}
