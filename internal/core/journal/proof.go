// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// proof takes the result of a gate before the delivery.
func (s *State) proof(r gates.Result) error {
	switch {
	case s.Orders == nil || s.Base == nil:
		return fmt.Errorf("gate %q before there are orders and a base", r.Gate)
	case r.Tree != s.Head().Tree:
		return fmt.Errorf("gate %q ran on tree %q, and the delivery head has tree %q", r.Gate, r.Tree, s.Head().Tree)
	}
	s.Proofs = gates.Kept(s.Proofs, r, s.Orders.Delivery.Gates)
	s.show("", r)
	return nil
}

// added takes a task that follows those of the orders. The gates run again on what its agent makes of the work. The texts of earlier ones that are
// over are not needed any more.
func (s *State) added(t TaskAdded) error {
	if t.Name == "" || slices.ContainsFunc(s.Added, func(have TaskAdded) bool { return have.Name == t.Name }) {
		return fmt.Errorf("task %q added twice, or without a name", t.Name)
	}
	var all []TaskAdded
	for _, have := range s.Added {
		if s.Tasks[have.Name].Over() {
			have.Text = ""
		}
		all = append(all, have)
	}
	all = append(all, t)
	s.Added, s.Proofs = all, gates.Lasting(s.Proofs)
	if !protocol.Extra(t.Name) {
		s.Spent++
	}
	return nil
}

// NextAdded is the name of the next task that is added.
func (s State) NextAdded() string { return fmt.Sprintf("%s%d", protocol.GatesPrefix, len(s.Added)+1) }

// NextPolish is the name of the next task in which the agent addresses directives of reviewers, of which the given ones are open. It is empty
// if all are closed, if the policy's number of such tasks is used up, or if the last one left the same directives open.
func (s State) NextPolish(open []string) string {
	polished := s.polished()
	n := len(polished)
	if len(open) == 0 || s.Orders == nil || n >= s.Orders.Policy.Reviewers.PolishTasks || n > 0 && slices.Equal(polished[n-1].Directives, open) {
		return ""
	}
	return fmt.Sprintf("%s%d", protocol.PolishPrefix, n+1)
}

// polished are the polish tasks that were added.
func (s State) polished() (all []TaskAdded) {
	for _, t := range s.Added {
		if t.Polishes() {
			all = append(all, t)
		}
	}
	return all
}

// Polished are the ids of the directives whose polish tasks are over.
func (s State) Polished() (ids []string) {
	for _, t := range s.polished() {
		if s.Tasks[t.Name].Over() {
			ids = append(ids, t.Directives...)
		}
	}
	return ids
}

// Complete are orders with the tasks that were added. The gates of the last task of the orders prove the corrected work too.
func (s State) Complete(o protocol.Orders) protocol.Orders {
	if len(s.Added) == 0 || len(o.Tasks) == 0 {
		return o
	}
	last := o.Tasks[len(o.Tasks)-1]
	for _, t := range slices.Backward(o.Tasks) {
		if !protocol.Directs(t.Name) { // one of them has the gates of the task that it follows
			last = t
			break
		}
	}
	o.Tasks = slices.Clone(o.Tasks)
	for _, t := range s.Added {
		if slices.ContainsFunc(o.Tasks, func(have protocol.Task) bool { return have.Name == t.Name }) {
			continue
		}
		// What only reviewers want does not keep the work from being delivered.
		task := protocol.Task{Name: t.Name, Instructions: t.Text, Gates: last.Gates, Continue: protocol.Extra(t.Name)}
		if !protocol.Directs(t.Name) {
			o.Tasks = append(o.Tasks, task)
			continue
		}
		if i := slices.IndexFunc(o.Tasks, func(have protocol.Task) bool { return have.Name == t.After }); i >= 0 {
			task.Gates = o.Tasks[i].Gates
		}
		at := s.place(o.Tasks, t)
		o.Tasks = append(append(o.Tasks[:at:at], task), o.Tasks[at:]...)
	}
	return o
}

// place is where a task for a directive stands among others: behind the task that it follows and other tasks for directives there. Until it is over, no task
// that is still to come stands before it.
func (s State) place(tasks []protocol.Task, t TaskAdded) int {
	next := slices.IndexFunc(tasks, func(have protocol.Task) bool { return !s.Tasks[have.Name].Over() && !protocol.Directs(have.Name) })
	if next < 0 {
		next = len(tasks)
	}
	i := slices.IndexFunc(tasks, func(have protocol.Task) bool { return have.Name == t.After }) + 1
	for i > 0 && i < len(tasks) && protocol.Directs(tasks[i].Name) {
		i++
	}
	if i == 0 || !s.Tasks[t.Name].Over() && next < i {
		return next
	}
	return i
}
