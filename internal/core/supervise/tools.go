// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// leaveWithin is how long an agent may continue after it said that its task is done: for a last word to its model.
const leaveWithin = 30 * time.Second

// Tools is what the agent has asked for through the watchdog's tools, in its current state.
type Tools struct {
	// Patches that wait for a check.
	Patches int
	// Question that has no answer; nil for none. Asking: a call of the agent waits for it.
	Question *protocol.Question
	Asking   bool
	// Completed is when the agent said that the task is done; zero before.
	Completed time.Time
}

func (e Tools) apply(s *State, _ time.Time) {
	s.Patches, s.Question, s.Asking = e.Patches, e.Question, e.Asking
	if i := s.Current(); i >= 0 && s.Mode == policy.ModeDeterministic { // otherwise the exit code says it
		s.Tasks[i].Completed = e.Completed
	}
}

// Laid: the watchdog has checked a patch, and applied it to the workspace or refused it.
type Laid struct {
	// Head, HeadTree and Changed as in Taken.
	Head, HeadTree string
	Changed        bool
}

func (e Laid) apply(s *State, _ time.Time) {
	s.idle()
	s.Delivery.move(e.Head, e.HeadTree, e.Changed)
}

// AtWork is the name of the task whose agent runs or is being started; empty for none, and for an agent that is to be ended because its task
// was dropped.
func (s State) AtWork() string {
	i := s.Current()
	if i >= 0 && !s.Tasks[i].Dropped && (s.Tasks[i].Phase == Running || s.Tasks[i].Phase == Pending && s.Doing == Start) {
		return s.Tasks[i].Name
	}
	return ""
}

// TakesPatches says whether the agent may still send patches: it works on its task.
func (s State) TakesPatches() bool {
	return s.Mode == policy.ModeDeterministic && s.End == GoOn && !s.Over() &&
		s.AtWork() != "" && s.Tasks[s.Current()].Completed.IsZero()
}

// overdue says whether an agent that called its task done has had its time, and when it will have had it.
func (s State) overdue(now time.Time) (bool, time.Time) {
	i := s.Current()
	if i < 0 || s.Tasks[i].Completed.IsZero() || !s.Agent.Running {
		return false, time.Time{}
	}
	at := s.Tasks[i].Completed.Add(leaveWithin)
	return !now.Before(at), at
}

// switching ends an attempt whose next task is to run in another mode: its pod is made for this one. One that continues its task stays in it.
func switching(s State, _ time.Time) (Action, bool) {
	i := s.Current()
	if s.Seal || i < 0 || s.Tasks[i].Phase != Pending || s.Tasks[i].Continues != "" || s.NextMode == "" || s.NextMode == s.Mode {
		return Action{}, false
	}
	if s.Agent.Leftovers {
		return s.kill(), true
	}
	return Action{Kind: Finish, Final: protocol.FinalReport{
		Outcome: protocol.OutcomeSwitched, Reason: protocol.ReasonModeSwitched, Head: s.Delivery.Head,
		Message: fmt.Sprintf("task %q is next and runs in mode %s; this pod is made for mode %s", s.Tasks[i].Name, s.NextMode, s.Mode),
	}}, true
}

// Ending is how the process of a task ended.
type Ending struct {
	// Mode that it ran in.
	Mode     string
	ExitCode int
	// Stopped: the watchdog had to end it although it had not done its task.
	Stopped bool
	// Completed: the agent had said that the task is done.
	Completed bool
	// Rejected: the gateway has rejected the model's answer, and the task has failed.
	Rejected bool
}

// orderly says whether the agent ended its task by itself: with exit code 0 and, in Deterministic mode, its statement that the task is
// done. After that it does not matter if the watchdog had to end a process that did not go.
func (e Ending) orderly() bool {
	if e.Rejected {
		return false
	}
	if e.Mode != policy.ModeDeterministic {
		return e.ExitCode == 0 && !e.Stopped
	}
	const terminated, killed = 128 + 15, 128 + 9
	return e.Completed && (e.ExitCode == 0 || e.ExitCode == terminated || e.ExitCode == killed)
}

// Completes says whether a settled checkpoint with this verdict, taken after the task's process ended, completes the
// task. An audit lets every verdict pass.
func Completes(e Ending, v protocol.Verdict, enforcement policy.Enforcement) bool {
	return e.orderly() && (v == protocol.Valid || enforcement == policy.Audit)
}

// Ending of a task.
func (s State) Ending(t Task) Ending {
	return Ending{Mode: s.Mode, ExitCode: t.ExitCode, Stopped: t.Stopped, Completed: !t.Completed.IsZero(), Rejected: t.Rejected != ""}
}
