// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/link"
	"github.com/tidewaiter/tidewaiter/internal/host/workspace"
)

// freezeLimit is after how long a frozen agent goes on by itself, should the watchdog hang.
const freezeLimit = 3 * time.Minute

// freezer holds the agent still for the workspace engine.
type freezer struct {
	agent   *link.Runner
	timeout time.Duration
	// ask comes before a freeze; nil where the runtime knows of no such thing. pause is what came of it.
	ask   *contract.RunnerAsk
	pause *contract.Pause
	now   func() time.Time
	since time.Time
	// held: a freeze was asked for, and no thaw since.
	held bool
	// still: the last freeze stopped every process.
	still bool
	// flaw is why the last freeze was none.
	flaw error
}

var _ workspace.Freezer = (*freezer)(nil)

// Freeze implements workspace.Freezer.
func (f *freezer) Freeze(ctx context.Context) (workspace.Frozen, error) {
	f.since, f.held, f.flaw = f.now(), true, nil
	wait := f.timeout + startWithin
	if f.ask != nil {
		wait += f.ask.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	a, err := f.agent.Freeze(ctx, contract.RunnerFreeze{Timeout: f.timeout, Limit: freezeLimit, Ask: f.ask})
	f.pause, f.still = a.Pause, err == nil && a.Settled
	return workspace.Frozen{Processes: a.Processes, Settled: a.Settled, Reason: a.Reason}, err
}

// Thaw implements workspace.Freezer. It fails when the freeze was none: a process ran meanwhile, or it ended by its limit.
func (f *freezer) Thaw(ctx context.Context) error {
	lasted := f.now().Sub(f.since)
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	t, err := f.agent.Thaw(ctx)
	f.held = false
	switch {
	case err != nil:
		f.flaw = err
	case t.Newcomers > 0:
		f.flaw = fmt.Errorf("%d processes ran while the agent was frozen", t.Newcomers)
	case lasted >= freezeLimit:
		f.flaw = fmt.Errorf("the freeze ended by its limit of %s", freezeLimit)
	}
	return f.flaw
}

// heard takes what the runner tells.
func (r *run) heard(ctx context.Context, e link.Event) {
	switch {
	case e.Connected != nil:
		r.connected(ctx, *e.Connected)
	case e.Lost != nil:
		r.Log.WarnContext(ctx, "The runner is out of reach", "error", e.Lost.Error())
		r.apply(ctx, supervise.Disconnected{})
	case e.Exited != nil:
		r.exited(ctx, *e.Exited)
	case e.Signal != nil:
		r.Log.InfoContext(ctx, "The agent's container is asked to end", "signal", e.Signal.Name)
		r.terminate()
		r.apply(ctx, supervise.Terminated{})
	case e.Thawed != nil:
		r.Log.WarnContext(ctx, "A freeze ended by its limit")
		r.apply(ctx, supervise.Slipped{})
	}
}

// connected compares what the runner says with what the journal knows of the current task.
func (r *run) connected(ctx context.Context, h contract.RunnerHello) {
	e := supervise.Connected{Leftovers: h.Running != 0 || h.LastExit != nil, Frozen: h.Frozen}
	task, known := r.current()
	switch {
	case h.Running != 0 && task.Begun && !task.Ended && (task.Start == 0 || task.Start == h.Running):
		e.Running = true
		if task.Start == 0 { // the crash came between the start and its record
			r.note(ctx, journal.Record{TaskStarted: &journal.TaskStarted{Name: known, Start: h.Running}})
		}
	case h.LastExit != nil && task.Begun && !task.Ended && r.ours(task, *h.LastExit):
		e.Exited = h.LastExit
		r.note(ctx, journal.Record{TaskEnded: &journal.TaskEnded{Name: known, ExitCode: h.LastExit.Code}})
	}
	r.Log.InfoContext(ctx, "The runner is there", "running", h.Running, "frozen", h.Frozen)
	r.apply(ctx, e)
}

// ours says whether an exit is that of the current task: by the number of its start or, when that was not journaled any
// more, by being newer than every start that was.
func (r *run) ours(task journal.Task, e contract.RunnerExited) bool {
	if task.Start != 0 {
		return task.Start == e.Start
	}
	for _, t := range r.journal().Tasks {
		if t.Start >= e.Start {
			return false
		}
	}
	return true
}

// current is what the journal knows of the task at hand, and its name.
func (r *run) current() (journal.Task, string) {
	i := r.state.Current()
	if i < 0 {
		return journal.Task{}, ""
	}
	name := r.state.Tasks[i].Name
	return r.journal().Tasks[name], name
}

func (r *run) exited(ctx context.Context, e contract.RunnerExited) {
	r.Log.InfoContext(ctx, "Agent exited", "start", e.Start, "code", e.Code, "signal", e.Signal)
	task, name := r.current()
	if !task.Begun || task.Ended || task.Start != 0 && task.Start != e.Start {
		return
	}
	r.note(ctx, journal.Record{TaskEnded: &journal.TaskEnded{Name: name, ExitCode: e.Code}})
	r.apply(ctx, supervise.AgentExited{Code: e.Code})
}

// note journals what the runner could tell again: failing to is no reason to stop.
func (r *run) note(ctx context.Context, record journal.Record) {
	if err := r.book.Note(record); err != nil {
		r.Log.WarnContext(ctx, "What the runner told is not journaled", "error", err.Error())
	}
}
