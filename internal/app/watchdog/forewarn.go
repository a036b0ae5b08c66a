// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Bounds of warnings before a checkpoint: they must cost little and not drown other messages for the agent.
const (
	// warnEvery is the least time between two looks, warnAfter that between a change and a look.
	warnEvery, warnAfter = 2 * time.Second, 200 * time.Millisecond
	// warnAhead is how far the next checkpoint has to be away for a warning to be worth it: it tells the same.
	warnAhead = 5 * time.Second
	// maxLooked bounds the changed paths that one look is taken at, maxWarned the violations that are remembered.
	maxLooked, maxWarned = 500, 1000
)

// warnings is what the agent was warned of.
type warnings struct {
	// due is when what has changed is looked at; nil when nothing has.
	due <-chan time.Time
	// waits: there is something to look at once what is in progress has ended.
	waits bool
	last  time.Time
	of    map[string]bool // by rule and path
	task  string          // whose agent was warned: the next one's knows nothing of it
}

// changed: there is something to look at, soon.
func (w *warnings) changed(now time.Time) {
	if w.due == nil {
		w.due = time.After(max(warnAfter, w.last.Add(warnEvery).Sub(now)))
	}
}

// rearm has the look follow that has waited for the end of what was in progress. Without a timer, a frozen agent costs nothing.
func (l *loop) rearm() {
	if l.warnings.waits && !inProgress(l.state) {
		l.warnings.waits = false
		l.warnings.changed(l.now())
	}
}

// forewarn warns the agent when a watched write breaks a rule by its path, so that it need not wait for a checkpoint
// to learn so. It decides nothing: the checkpoint does.
func (l *loop) forewarn(ctx context.Context, _ time.Time) (supervise.Event, error) {
	now := l.now()
	l.warnings.due, l.warnings.last = nil, now
	if inProgress(l.state) {
		l.warnings.waits = true // what the agent writes meanwhile may be in no checkpoint for long
		return nil, nil
	}
	if l.services.workspace.Engine() == nil || !worthWarning(l.state, now) {
		return nil, nil
	}
	written, whole, err := l.services.workspace.Engine().Written(ctx, maxLooked)
	if errors.Is(err, workspace.ErrBusy) {
		l.warnings.changed(now) // the agent may write nothing more
		return nil, nil
	}
	if err != nil {
		l.attempt.options.Log.WarnContext(ctx, "Cannot warn the agent", "error", err.Error())
		return nil, nil
	}
	task := l.state.AtWork()
	if task != l.warnings.task {
		l.warnings.of, l.warnings.task = nil, task
	}
	t := l.occasion(supervise.Action{Task: task}).Terms
	broken := slices.DeleteFunc(judge.CheckPlacement(judge.Input{Changes: written, Plan: t.Plan, Policy: t.Policy, Role: t.Role, Locks: t.Locks}), quietly)
	if post := l.acts.teller.post; post != nil {
		post(func(b *notice.Board) bool { return b.Warn(broken, whole) })
		return nil, nil
	}
	news := slices.DeleteFunc(broken, l.warnings.known)
	if len(news) == 0 {
		return nil, nil
	}
	l.warnings.remember(news)
	n := notice.Ahead(news, now)
	l.acts.teller.send(l.attempt.journal.State().Sequence, n)
	return nil, nil
}

// inProgress: an act runs, such as the start of the agent or a checkpoint. A look has to wait for its end.
func inProgress(s supervise.State) bool { return s.Doing != supervise.Wait || s.Agent.Frozen }

// worthWarning: an agent works, and no checkpoint is about to tell it.
func worthWarning(s supervise.State, now time.Time) bool {
	c, rules := s.Checkpoints, s.Rules
	soon := c.Last.Add(rules.Interval).Before(now.Add(warnAhead)) || rules.MaxChanges > 0 && c.Changed >= rules.MaxChanges || len(s.Requests) > 0
	return s.Agent.Running && s.End == supervise.GoOn && !soon
}

// quietly: Info is for the log.
func quietly(v protocol.Violation) bool { return v.Severity.Compare(policy.Warning) < 0 }

// known: a delivered warning needs no repetition.
func (w *warnings) known(v protocol.Violation) bool { return w.of[v.Rule+"\x00"+v.Path] }

func (w *warnings) remember(list []protocol.Violation) {
	if w.of == nil || len(w.of) > maxWarned {
		w.of = make(map[string]bool)
	}
	for _, v := range list {
		w.of[v.Rule+"\x00"+v.Path] = true
	}
}
