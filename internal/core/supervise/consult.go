// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import "time"

// Breakpoint: no task is at work, and reviewers can look at the work.
type Breakpoint struct {
	// Due are the names of the reviewers that have to look, in their order. Critical: a Critical directive of a reviewer is open that gets a task of its own.
	// Polish: after the last task, the agent can address directives of reviewers that are open.
	Due      []string
	Critical bool
	Polish   bool
	// Diverged: the assessor has found that the work diverges, and neither another plan nor a user has ended that; nil for no divergence.
	Diverged *Divergence
}

func (e Breakpoint) apply(s *State, _ time.Time) { s.Breakpoint = e }

// consults asks the reviewers that are due, before the next task and before the delivery. Then the agent gets a task for each Critical directive and, after
// the last task, polishes the work, if a budget is left. No process of an agent waits for it.
func (s State) consults() (Action, bool) {
	switch b := s.Breakpoint; {
	case len(b.Due) > 0:
		return Action{Kind: Consult, Reviewer: b.Due[0]}, true
	case b.Critical && (s.Current() >= 0 || !s.nothingDone()) && s.Allowance.Exceeded == "":
		return Action{Kind: Direct}, true
	case b.Polish && s.Current() < 0 && !s.nothingDone() && s.Allowance.Exceeded == "":
		return Action{Kind: Polish}, true
	}
	return Action{}, false
}

// Consulted: a reviewer has looked at the work, or was skipped.
type Consulted struct{}

func (Consulted) apply(s *State, _ time.Time) {
	s.idle()
	s.Breakpoint = Breakpoint{}
}

// Directed: the agent has another task before the next one, in which it addresses a Critical directive of a reviewer.
type Directed struct {
	// Task is its name.
	Task string
}

func (e Directed) apply(s *State, _ time.Time) {
	s.idle()
	s.Breakpoint = Breakpoint{}
	i := s.Current()
	if i < 0 {
		i = len(s.Tasks)
	}
	before, after := s.Tasks[:i:i], s.Tasks[i:]
	s.Tasks = append(append(before, Task{Name: e.Task, Phase: Pending, Listed: true, Continue: true}), after...)
}

// Polished: the agent has another task, in which it polishes the work.
type Polished struct {
	// Task is its name.
	Task string
}

func (e Polished) apply(s *State, _ time.Time) {
	s.idle()
	s.Breakpoint = Breakpoint{}
	s.Tasks = append(s.Tasks, Task{Name: e.Task, Phase: Pending, Listed: true, Continue: true})
}
