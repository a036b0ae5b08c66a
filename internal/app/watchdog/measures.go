// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// measure takes what steering wants done with the whole run. It first journals that the agent continues, a restart or an end: if it cannot,
// the process ends, and the next one gets the measure again.
func (l *loop) measure(ctx context.Context) (supervise.Event, error) {
	a := l.steering.Act()
	if a == nil || l.state.Measure != nil && l.state.Measure.ID == a.ID {
		return nil, nil
	}
	task, name := l.current()
	m := supervise.Measure{ID: a.ID, Rung: a.Rung, Message: a.Evidence, Until: a.Until}
	log := l.attempt.options.Log.With("id", a.ID, "rung", string(a.Rung), "task", a.Task, "evidence", a.Evidence)
	before := noted(*a, task)
	switch {
	case a.Task == name && before && (task.Start != 0 && a.Rung != policy.RungBlock || task.Ended): // it was done before a crash
		l.steering.Settle(a.ID, true)
		return nil, nil
	case a.Task != name || !task.Begun || task.Ended || task.Done || task.Rejected != "" && !before:
		log.InfoContext(ctx, "Taking no measure against the anomaly: its agent has ended")
		l.steering.Settle(a.ID, false)
		return nil, nil
	case a.Rung == policy.RungBlock:
		m.Message = fmt.Sprintf("task %q: %s; the watchdog has tried everything that the policy's anomalies.ladder allows", name, a.Evidence)
	}
	log.WarnContext(ctx, "The anomaly persists: taking a measure")
	if r := journaled(*a, m, name); r != nil && !before {
		if err := l.attempt.journal.Note(*r); err != nil {
			return nil, fmt.Errorf("journal what is done about the agent of task %q: %w", name, err)
		}
		if err := l.attempt.options.Probe.After("measure journaled"); err != nil {
			return nil, err
		}
	}
	return supervise.Steered{Measure: m}, nil
}

// noted says that a watchdog has ended after it had journaled the measure.
func noted(a session.Act, task journal.Task) bool {
	return task.Continued == a.ID || task.Restart == a.ID || a.Rung == policy.RungBlock && task.RejectedReason == protocol.ReasonAnomalyPersists
}

// journaled is the record of a measure; nil where another one tells of it.
func journaled(a session.Act, m supervise.Measure, task string) *journal.Record {
	if a.Rung == policy.RungNoTools {
		return &journal.Record{TaskCorrected: &journal.TaskCorrected{Name: task, ID: a.ID, Text: a.Message}}
	}
	if a.Rung == policy.RungRestart {
		return &journal.Record{TaskRestarted: &journal.TaskRestarted{Name: task, ID: a.ID, Text: a.Message}}
	}
	if a.Rung == policy.RungBlock {
		return &journal.Record{TaskRejected: &journal.TaskRejected{Name: task, Reason: protocol.ReasonAnomalyPersists, Message: m.Message}}
	}
	return nil
}

// settle tells steering what came of its measure.
func settle(l *loop) {
	if m, over := l.state.Settled(); over {
		l.state = l.state.Apply(supervise.Settled{}, l.now())
		l.steering.Settle(m.ID, m.Done)
	}
}
