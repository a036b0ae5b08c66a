// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// freezeLimit is after how long a frozen agent continues by itself if the watchdog hangs.
const freezeLimit = 3 * time.Minute

// freezer holds the agent still for the workspace engine.
type freezer struct {
	agent   *runnerlink.Runner
	timeout time.Duration
	// keep an agent frozen that is so already.
	keep bool
	// ask comes before a freeze; nil where the runtime knows of no such thing.
	ask   *protocol.RunnerAsk
	now   func() time.Time
	since time.Time
	last  checkpoint.Freeze
}

var _ checkpoint.Freezer = (*freezer)(nil)

// Freeze implements workspace.Freezer.
func (f *freezer) Freeze(ctx context.Context) (workspace.Frozen, error) {
	f.since, f.last.Held, f.last.Flaw = f.now(), true, nil
	wait := f.timeout + startWithin
	if f.ask != nil {
		wait += f.ask.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	limit := freezeLimit
	if f.keep {
		limit = supervise.FreezeLimit
	}
	a, err := f.agent.Freeze(ctx, protocol.RunnerFreeze{Timeout: f.timeout, Limit: limit, Ask: f.ask})
	f.last.Pause, f.last.Still = a.Pause, err == nil && a.Settled
	return workspace.Frozen{Processes: a.Processes, Settled: a.Settled, Reason: a.Reason}, err
}

// Thaw implements workspace.Freezer. It fails when the freeze was none: a process ran meanwhile, or it ended by its limit.
func (f *freezer) Thaw(ctx context.Context) error {
	if f.keep {
		f.last.Held = false
		return nil
	}
	lasted := f.now().Sub(f.since)
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	t, err := f.agent.Thaw(ctx)
	f.last.Held = false
	switch {
	case err != nil:
		f.last.Flaw = err
	case t.Newcomers > 0:
		f.last.Flaw = fmt.Errorf("%d processes ran while the agent was frozen", t.Newcomers)
	case lasted >= freezeLimit:
		f.last.Flaw = fmt.Errorf("the freeze ended by its limit of %s", freezeLimit)
	}
	return f.last.Flaw
}

// Last implements checkpoint.Freezer.
func (f *freezer) Last() checkpoint.Freeze { return f.last }
