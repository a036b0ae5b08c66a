// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	coreledger "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
)

const (
	// openAgain is the pause before a ledger that could not be opened is tried again, takeAgain that before one is that another
	// process had, and settleAgain that before a call is that could not be recorded.
	openAgain, takeAgain, settleAgain = 5 * time.Second, time.Second, 250 * time.Millisecond
)

// errNotOpen is what is said while there is no ledger.
var errNotOpen = errors.New("the gateway has not opened the ledger yet; its log says why")

// recorder is the ledger of this process, which may come later than the process.
type recorder struct {
	options   Options
	retention retention
	log       *slog.Logger
	dropped   func(ledger.Dropped)
	// unused is closed when no call is in progress any more after the signal to end.
	unused <-chan struct{}

	open atomic.Pointer[ledger.Ledger]
	// free says that no other process keeps the ledger from this one.
	free atomic.Bool
}

var _ modelserver.Ledger = (*recorder)(nil)

// NeedLeaderElection is false: every replica records.
func (*recorder) NeedLeaderElection() bool { return false }

// Start opens the ledger, again and again until that succeeds, and keeps it small until the context ends. Calls that are under way
// then are recorded.
func (r *recorder) Start(ctx context.Context) error {
	for told := false; ; {
		l, err := r.tryOpen(ctx)
		taken := errors.Is(err, ledger.ErrInUse)
		r.free.Store(!taken)
		if err == nil {
			r.log.InfoContext(ctx, "The ledger is open")
			r.open.Store(l)
			r.retention.keep(ctx, l)
			<-r.unused
			return l.Close()
		}
		pause := openAgain
		switch {
		case !taken:
			r.log.ErrorContext(ctx, "Cannot open the ledger; trying again. Until then, the gateway refuses model calls for which the policy requires a record", "error", err.Error())
		case !told:
			r.log.WarnContext(ctx, "Not ready until the other process that has the ledger ends", "error", err.Error())
		}
		if told = taken; taken {
			pause = takeAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// check fails while another process has the ledger: that one serves.
func (r *recorder) check(*http.Request) error {
	if !r.free.Load() {
		return errors.New("another process may have the ledger")
	}
	return nil
}

func (r *recorder) tryOpen(ctx context.Context) (*ledger.Ledger, error) {
	url, err := r.url()
	if err != nil {
		return nil, err
	}
	return ledger.Open(ctx, ledger.Options{URL: url, Log: r.log, Now: time.Now, Size: r.options.LedgerSize, Dropped: r.dropped})
}

// url of the ledger. A Secret that has been made without it was not meant to be none: each replica would have a ledger of its own.
func (r *recorder) url() (string, error) {
	text, err := os.ReadFile(r.options.LedgerFile)
	switch {
	case err == nil:
		return strings.TrimSpace(string(text)), nil
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	beside, err := os.ReadDir(filepath.Dir(r.options.LedgerFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for _, entry := range beside {
		if !strings.HasPrefix(entry.Name(), ".") { // the kubelet's own
			return "", fmt.Errorf("the Secret for the ledger has the key %q, but not %q: add the URL of the database under this key", entry.Name(), filepath.Base(r.options.LedgerFile))
		}
	}
	return r.options.Ledger, nil
}

// Reserve implements models.Ledger.
func (r *recorder) Reserve(ctx context.Context, reservation coreledger.Reservation, budgets []coreledger.Budget) error {
	if l := r.open.Load(); l != nil {
		return l.Reserve(ctx, reservation, budgets)
	}
	return errNotOpen
}

// Usage implements models.Ledger.
func (r *recorder) Usage(ctx context.Context, scope coreledger.Scope, key string) (coreledger.Usage, error) {
	if l := r.open.Load(); l != nil {
		return l.Usage(ctx, scope, key)
	}
	return coreledger.Usage{}, errNotOpen
}

// Taken implements models.Ledger.
func (r *recorder) Taken(ctx context.Context, b coreledger.Budget) (used, reserved coreledger.Amount, err error) {
	if l := r.open.Load(); l != nil {
		return l.Taken(ctx, b)
	}
	return used, reserved, errNotOpen
}

// Settle implements models.Ledger. While the database is away it waits for it: the answer is there, and the agent would have to ask for it again.
func (r *recorder) Settle(ctx context.Context, reservation string, i coreledger.Interaction) error {
	l := r.open.Load()
	if l == nil {
		return errNotOpen
	}
	for {
		err := l.Settle(ctx, reservation, i)
		if !errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(settleAgain):
		}
	}
}

// Fold implements models.Ledger.
func (r *recorder) Fold(ctx context.Context, i coreledger.Interaction) {
	if l := r.open.Load(); l != nil {
		l.Fold(ctx, i)
	}
}

// Pin says what applies to a task: what was given for it first, by whatever replica.
func (r *recorder) Pin(ctx context.Context, key ledger.PinKey, terms []byte, templates string) ([]byte, string, error) {
	if l := r.open.Load(); l != nil {
		return l.Pin(ctx, key, terms, templates)
	}
	return nil, "", errNotOpen
}

// RecordChanges records what a checkpoint has changed.
func (r *recorder) RecordChanges(ctx context.Context, o ledger.Owner, c protocol.Changes) (fresh bool, missing string, err error) {
	if l := r.open.Load(); l != nil {
		return l.Checkpoints().Record(ctx, o, c)
	}
	return false, "", errNotOpen
}

// RecordSteering records a step of the steering of an agent.
func (r *recorder) RecordSteering(ctx context.Context, o ledger.Owner, s protocol.SteeringStep) (fresh bool, missing string, err error) {
	if l := r.open.Load(); l != nil {
		return l.Steering().Record(ctx, o, s)
	}
	return false, "", errNotOpen
}

// RecordHistory records an entry of the history of a Feature.
func (r *recorder) RecordHistory(ctx context.Context, o ledger.Owner, e protocol.HistoryEntry) (fresh bool, missing string, err error) {
	if l := r.open.Load(); l != nil {
		return l.History().Record(ctx, o, e)
	}
	return false, "", errNotOpen
}
