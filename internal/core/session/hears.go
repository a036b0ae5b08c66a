// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// heard takes something that was heard, and looks what is wrong now: users learn of it before the agent's next request.
func (s *State) heard(f Facts, take func(d *decision)) Effects {
	d := &decision{s: s, f: f}
	d.touched()
	take(d)
	d.clock()
	d.tell()
	return d.effects(nil)
}

// Answered is the answer to a request, and the window of its model in tokens.
func (s *State) Answered(f Facts, x Exchange, a *conversation.Answer, window int64) Effects {
	return s.heard(f, func(d *decision) {
		if x.born != s.born {
			return
		}
		s.Book.Answered(x.thread, a)
		s.Anomalies.Answer(x.thread, *a, window, f.Now)
		s.answered(x.thread, a, window)
		d.addressed(x.thread, a)
		if b := s.Bared; b != nil && x.tools && (a.Ended || a.Stop != conversation.StopNone) && b.before(x) {
			s.Bared, d.e.Keep = nil, true // the end of the agent may follow at any time
		}
	})
}

// Failed is a request that had no answer.
func (s *State) Failed(f Facts, x Exchange, a failures.Answer) Effects {
	return s.heard(f, func(*decision) {
		if x.born == s.born {
			s.Anomalies.Failed(x.thread, a, f.Now)
		}
	})
}

// Pulse of the agent's processes, of which the oldest has the age; 0 for unknown.
func (s *State) Pulse(f Facts, p anomaly.Pulse, age time.Duration) Effects {
	return s.heard(f, func(*decision) {
		s.Anomalies.Pulse(p, f.Now)
		if age > 0 {
			s.Anomalies.Started(f.Now.Add(-age))
		}
	})
}

// Captured records the result of a checkpoint.
func (s *State) Captured(f Facts, tree, verdict string) Effects {
	return s.heard(f, func(*decision) { s.Anomalies.Work(anomaly.Work{Tree: tree, Verdict: verdict}, f.Now) })
}

// Moved says that the workspace has changed.
func (s *State) Moved() { s.moved = true }

// touched takes it that the workspace has changed, if it has.
func (d *decision) touched() {
	if d.s.moved {
		d.s.Anomalies.Work(anomaly.Work{Changed: true}, d.f.Now)
		d.s.moved = false
	}
}

// clock decides what is done without a request. An agent without work gets no message about its idleness.
func (d *decision) clock() {
	if d.s.Act != nil { // one is wanted at a time: what is decided meanwhile would count as done
		return
	}
	reach := steering.Reach{}
	if !d.f.Idle && !d.s.Talks() {
		reach = d.f.Reach
		reach.Alone = true
		if d.f.Terms.Task != "" {
			d.begin(d.f.Terms.Task) // no request says that there is another
		}
	}
	if step, number := d.decide(steering.TurnContext{Now: d.f.Now, Clock: true, Reach: reach}); step.Halts() {
		d.want(step, number)
	}
}
