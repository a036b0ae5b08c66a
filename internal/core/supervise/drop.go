// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// list makes the tasks what the orders list, in that order. A task that is over stays so. A task that is begun and not listed any more stays
// until its agent has ended; then it is dropped.
func (s *State) list(o protocol.Orders, done, aborted func(name string) bool) {
	was := s.Tasks
	s.MaxRetries = o.MaxRetries
	s.Tasks = make([]Task, 0, len(o.Tasks)+1)
	for _, named := range o.Tasks {
		t := Task{Name: named.Name, Phase: Pending}
		if i := slices.IndexFunc(was, func(t Task) bool { return t.Name == named.Name }); i >= 0 {
			t = was[i]
		} else if done != nil && done(named.Name) {
			t.Phase = Done
		} else if aborted != nil && aborted(named.Name) {
			t.Phase = Aborted
		}
		t.Listed, t.Continue = true, named.Continue
		if t.Phase == Aborting && !t.Continue && t.Abort == "" && !t.Decided && s.Doing != Abort { // nothing has been done about it
			t.Phase = Failed
		}
		if t.Phase == Gating && !t.Dropped {
			t.Gates = o.GatesOf(t.Name)
			t.prove(s.corrects(t))
			s.givesUp(&t)
		}
		s.Tasks = append(s.Tasks, t)
	}
	for _, t := range was {
		s.AnyDone = s.AnyDone || t.Phase == Done && !protocol.Extra(t.Name)
		if t.Begun && !t.over() && s.index(t.Name) < 0 {
			t.Listed, t.Dropped = false, true
			s.Tasks = append(s.Tasks, t)
		}
	}
}

// drops says that the task at hand is to be dropped.
func (s State) drops() bool {
	i := s.Current()
	return i >= 0 && s.Tasks[i].Dropped
}

// Stopped says that the agent at hand is to be ended although it has not done its task.
func (s State) Stopped() bool { return s.End != GoOn || s.drops() }

// dropping ends the agent of a task that the orders do not list any more, captures what it wrote, and drops the task. A closing checkpoint
// that completes the task leaves nothing to drop.
func dropping(s State, now time.Time) (Action, bool) {
	if s.Seal || !s.drops() {
		return Action{}, false
	}
	i := s.Current()
	switch t := s.Tasks[i]; {
	case !s.Agent.Connected:
		return Action{}, true
	case s.Agent.Running || s.Agent.Leftovers:
		return s.kill(), true
	case t.Phase == Running: // the runner tells how its agent ended
		return Action{}, true
	case t.Phase == Exited:
		return s.closeTask(now, i), true
	case !t.Captured && now.Before(s.Checkpoints.RetryAt):
		return Action{Until: s.Checkpoints.RetryAt}, true
	case !t.Captured:
		return s.checkpoint(s.closing(i), false), true
	}
	return Action{Kind: Drop, Task: s.Tasks[i].Name}, true
}

// Dropped: the journal does not count the task as begun any more.
type Dropped struct {
	// Task is its name.
	Task string
}

func (e Dropped) apply(s *State, _ time.Time) {
	s.idle()
	i := s.index(e.Task)
	switch {
	case i < 0:
	case s.Tasks[i].Listed:
		s.Tasks[i] = Task{Name: e.Task, Phase: Pending, Listed: true}
	default:
		s.Tasks = slices.Delete(s.Tasks, i, i+1)
	}
}
