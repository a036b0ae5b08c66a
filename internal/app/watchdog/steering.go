// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/handover"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// steeringRecord is the journal, from which steps are handed over to the gateway.
type steeringRecord struct {
	journal  *trusted.Journal
	handover *handover.Service
}

var _ steer.Recorder = steeringRecord{}

// Recorded implements steer.Recorder.
func (r steeringRecord) Recorded() journal.Steered { return r.journal.State().Steered }

// Steered implements steer.Recorder.
func (r steeringRecord) Steered(x protocol.SteeringStep) error {
	if err := r.journal.Note(journal.Record{Steered: &x}); err != nil {
		return err
	}
	r.handover.Steered(x)
	return nil
}

// reach of this attempt's agent, where it asks no model.
func (a *attempt) reach() steering.Reach {
	o := a.journal.State().Orders
	return steering.Reach{Tools: a.serves(), Lines: takesLines(a.options.adapter(o.Agent.Runtime))}
}

// takesLines says whether the standard input of a runtime's agents is open.
func takesLines(adapter runtimes.Adapter) bool {
	return adapter != nil && adapter.Launch(runtimes.Task{Command: []string{"true"}}).Input == nil
}

// speak has messages for the agent written to its standard input. A message that it does not take is in the journal and in the log, and
// comes again if the anomaly lasts.
func (l *loop) speak() {
	w, is := l.steering.Line()
	if !is || !l.state.Agent.Running || w.Step == l.spoken {
		return
	}
	l.spoken = w.Step
	l.acts.teller.sendAll(0, []any{notice.Steered(w.Step, w.Anomaly, w.Text, l.now())}, func(int, bool) { l.steering.Said(w.Step) })
}
