// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// Act is a measure of steering on the whole run, because messages have not helped. Until it is settled, the session passes no request on.
type Act struct {
	// ID of the act: the watchdog carries out one ID once. It contains the number of the step. No request of a user has such an ID.
	ID string `json:"id"`
	// Task that it is about.
	Task string `json:"task"`
	// Rung is Hold, Rollback, Restart or Block; or NoTools, if the agent ended with such a turn and must continue.
	Rung policy.Rung `json:"rung"`
	// Thread whose model learns the result.
	Thread int `json:"thread"`
	// Evidence tells users what is wrong.
	Evidence string `json:"evidence"`
	// Message for the agent if the watchdog carried out the act, and Otherwise if it did not.
	Message   string `json:"message"`
	Otherwise string `json:"otherwise,omitempty"`
	// Until is the latest end of a hold; zero if a user must act.
	Until time.Time `json:"until,omitzero"`
}

// want an act. One is wanted at a time.
func (d *decision) want(step steering.Step, number int64) {
	if d.s.Act != nil {
		return
	}
	d.s.Act = &Act{
		ID: actID(number), Task: d.s.Task, Rung: step.Rung, Thread: step.Thread,
		Evidence: step.Finding.Evidence, Message: step.Message, Otherwise: step.Otherwise, Until: step.Until,
	}
	d.e.Keep = true
}

// Settle an act that the watchdog has carried out, or cannot. After a restart, and when the work has ended, the state forgets the
// conversation except for what steering tried. It refuses requests of the ended agent.
func (s *State) Settle(f Facts, id string, done bool) Effects {
	d, a := &decision{s: s, f: f}, s.Act
	if a == nil || a.ID != id {
		return Effects{}
	}
	s.Act = nil
	switch {
	case done && a.Rung == policy.RungRestart:
		d.over()
		s.next(a.Task, s.Steering.Anew(s.Anomalies.Episodes))
		s.born++
	case done && a.Rung == policy.RungBlock:
		d.over()
		s.next(a.Task, steering.State{})
		s.born++
	case a.Rung == policy.RungNoTools: // it gets the text at its start
		if done && s.Bared != nil {
			s.thread(s.Bared.Thread).Bare = 0 // a client may put the text into the last message
			s.Bared.Thread = 0
			s.born++
		}
	case done:
		s.later(a.Thread, a.Message)
	default:
		s.later(a.Thread, a.Otherwise)
	}
	d.e.Keep = true
	d.tell()
	return d.effects(nil)
}

// Anew forgets the conversation: the agent is about to be started without one. What was tried with the whole run is remembered.
func (s *State) Anew(f Facts) Effects {
	d := &decision{s: s, f: f}
	d.over()
	s.next(s.Task, steering.State{Spent: s.Steering.Spent})
	s.born++
	d.e.Keep = true
	return d.effects(nil)
}
