// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// Bounds of warnings before a checkpoint: they shall cost next to nothing and not drown what the agent is told.
const (
	// warnEvery is the least time between two looks, warnAfter that between a change and a look.
	warnEvery, warnAfter = 2 * time.Second, 200 * time.Millisecond
	// warnAhead is how far the next checkpoint has to be away for a warning to be worth it: it tells the same.
	warnAhead = 5 * time.Second
	// maxForeseen bounds the changed paths that one look is taken at, maxWarned the violations that are remembered.
	maxForeseen, maxWarned = 500, 1000
)

// warningNotice is the line on an agent's standard input that warns of what the next checkpoint will object to.
type warningNotice struct {
	Type        string            `json:"type"`
	Severity    string            `json:"severity"`
	Timestamp   time.Time         `json:"timestamp"`
	Violations  []violationToTell `json:"violations"`
	ActionTaken string            `json:"action_taken"`
}

// warnings is what the agent was warned of.
type warnings struct {
	// due is when what has changed is looked at; nil when nothing has.
	due  <-chan time.Time
	last time.Time
	of   map[string]bool // by rule and path
	task int             // whose agent was warned: the next one's knows nothing of it
}

// changed: there is something to look at, soon.
func (w *warnings) changed(now time.Time) {
	if w.due == nil {
		w.due = time.After(max(warnAfter, w.last.Add(warnEvery).Sub(now)))
	}
}

// forewarn warns the agent when a watched write breaks a rule by its path alone, so that it need not wait for a checkpoint
// to learn so. It decides nothing: the checkpoint does.
func (r *run) forewarn(ctx context.Context) {
	now := r.Now()
	r.warnings.due, r.warnings.last = nil, now
	if !r.worthWarning(now) {
		return
	}
	written, err := r.engine.Written(ctx, maxForeseen)
	if err != nil {
		r.Log.WarnContext(ctx, "The agent is not warned", "error", err.Error())
		return
	}
	task := r.state.Current()
	if task != r.warnings.task {
		r.warnings.of, r.warnings.task = nil, task
	}
	o := r.occasion(supervise.Action{Task: task})
	news := slices.DeleteFunc(judge.Foresee(judge.Input{Changes: written, Plan: o.plan, Policy: o.policy,
		Role: o.orders.Agent.Role, Locks: o.orders.Locks}), r.warnings.known)
	if len(news) == 0 {
		return
	}
	r.warnings.remember(news)
	n := warningNotice{Type: "violation_warning", Severity: strings.ToLower(string(news[0].Severity)), Timestamp: now.UTC(), ActionTaken: "none"}
	for _, v := range news[:min(len(news), maxToldViolations)] {
		n.Violations = append(n.Violations, toTell(v))
	}
	r.working.Go(func() { r.input(ctx, r.journal().Sequence, n) })
}

// worthWarning: an agent works, nothing else is under way, and no checkpoint is about to tell it.
func (r *run) worthWarning(now time.Time) bool {
	c, rules := r.state.Checkpoints, r.state.Rules
	soon := c.Last.Add(rules.Interval).Before(now.Add(warnAhead)) || rules.MaxChanges > 0 && c.Changed >= rules.MaxChanges || len(r.state.Requests) > 0
	return r.engine != nil && r.state.Agent.Running && !r.state.Agent.Frozen && r.state.Doing == supervise.Wait &&
		r.state.End == supervise.GoOn && !soon
}

// known: what was told needs no second telling, and Info is for the log.
func (w *warnings) known(v judge.Violation) bool {
	return v.Severity.Compare(policy.Warning) < 0 || w.of[v.Rule+"\x00"+v.Path]
}

func (w *warnings) remember(list []judge.Violation) {
	if w.of == nil || len(w.of) > maxWarned {
		w.of = make(map[string]bool)
	}
	for _, v := range list {
		w.of[v.Rule+"\x00"+v.Path] = true
	}
}
