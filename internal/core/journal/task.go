// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// Task is the journaled state of a task.
type Task struct {
	// Policy and Plan that are pinned for it.
	Policy policy.Effective
	Plan   protocol.Plan
	// Begun and Ended in this attempt.
	Begun, Ended bool
	// Unlisted: the orders have not listed the task since it began, at least once, so the watchdog ends and drops it.
	Unlisted bool `json:",omitempty"`
	// Completed is when the agent said that it is done; zero before.
	Completed time.Time
	// Operations of the agent, by id; forgotten when the task is done.
	Operations map[string]Operation
	// Start is the runner's ID of its start, and Before the ID of the one before its last correction or restart.
	Start, Before int64
	ExitCode      int
	// Asked is the newest question of the agent, or of the agent of an earlier attempt whose session it continues; nil for none.
	Asked *protocol.Question `json:",omitempty"`
	// Parking: the attempt ends because this question waits. Parked: an earlier attempt has ended for that, and no later one has started the agent.
	Parking bool `json:",omitempty"`
	Parked  bool `json:",omitempty"`
	// Session: the agent has one. Stopped: the watchdog had orders or a signal to end it.
	Session, Stopped bool
	// Corrections is the number of corrections in this attempt or, if its gates run in pods of their own, since a user decided last. Correction is the
	// text for the agent in the current one.
	Corrections int
	Correction  string
	// Continued is the ID of the act that lets the agent continue in the current one; empty if its work was not valid.
	Continued string
	// Restart is the ID of the newest act that started the agent again from the beginning in this attempt, and RestartText the text for it;
	// both are empty if there is none.
	Restart, RestartText string
	// Rejected says why the task has failed while the agent worked on it; empty if it has not. RejectedReason is as in TaskRejected.
	Rejected, RejectedReason string
	// Failing describes the failed model calls since the last good answer; nil if there are none. Failure describes the ones because of which
	// the agent ended.
	Failing, Failure *protocol.Failure
	// Interrupted: an agent of an earlier attempt ended before it was done, for a reason that is not its fault. It may continue its session.
	Interrupted bool
	// From is the promoted tree at the first start of the task. WentBack is the newest checkpoint that took work of its agent back because it was
	// not valid; zero for none.
	From     string   `json:",omitempty"`
	WentBack WentBack `json:",omitzero"`
	// Work of the task so far.
	Work protocol.TaskWork `json:",omitzero"`
	// Gating is the tree on which its gates must pass; empty if no closing checkpoint completes the task, and when it is done.
	Gating string `json:",omitempty"`
	// InPods: each of its gates runs in a pod of its own. Until a user decides about the task, results and corrections count in later attempts too.
	InPods bool `json:",omitempty"`
	// Done for ever.
	Done bool
	// Failures is how often its agent has failed, in all attempts; only of a task that is aborted after too many.
	Failures int `json:",omitempty"`
	// Since is the newest checkpoint at the first start of the task; zero if there was none. Chosen is the tree of that checkpoint or of an earlier one
	// which a user has restored since; empty if there is none.
	Since  int64  `json:",omitempty"`
	Chosen string `json:",omitempty"`
	// Aborting: the task cannot be done, and its changes are about to leave the workspace; nil if that is not so. Aborted: they have left.
	Aborting *TaskAborted `json:",omitempty"`
	Aborted  bool         `json:",omitempty"`
	// Documents are the paths of the project's documents that its agent gets. Faulty: one of its checkpoints was not valid, or one of its gates has failed.
	Documents []string `json:",omitempty"`
	Faulty    bool     `json:",omitempty"`
}

// Over says that nothing more is done about the task.
func (t Task) Over() bool { return t.Done || t.Aborted }

// started says that its agent has started in this attempt or in an earlier one, and that the task was not dropped since.
func (t Task) started() bool { return t.Policy.Hash != "" || t.From != "" }

// Beginning is the tree that the workspace goes back to when the task is aborted: the one that was promoted when its agent started for the first time,
// or an older one that a user has chosen since. It is empty if no agent has started.
func (t Task) Beginning() string { return cmp.Or(t.Chosen, t.From) }

// WentBack is a checkpoint that reverted work, and its objection.
type WentBack struct {
	Sequence  int64
	Objection string
}

// Empty says whether work of the task went back, and the agent did nothing instead: the promoted tree is the one from the beginning of the task.
func (t Task) Empty(promoted string) bool { return t.WentBack.Sequence > 0 && promoted == t.From }

func (s *State) begun(b TaskBegun) error {
	switch t := s.Tasks[b.Name]; {
	case b.Name == "":
		return fmt.Errorf("a task without a name")
	case s.Base == nil:
		return fmt.Errorf("task %q begun before there is a base", b.Name)
	case t.Done:
		return fmt.Errorf("task %q begun after it was done", b.Name)
	case t.Aborting != nil:
		return fmt.Errorf("task %q begun after it was aborted", b.Name)
	}
	for name, t := range s.Tasks { // the newest session is not theirs any more
		if name != b.Name && t.Interrupted {
			t.Interrupted = false
			s.Tasks[name] = t
		}
	}
	was := s.Tasks[b.Name]
	since := was.Since
	if !was.started() {
		since = s.Sequence
	}
	// Under Replay a lost agent begins anew. The answer to a question is for the agent that has asked it.
	goes := was.Interrupted && (was.Parked || b.Policy.Supervision.RestartMode != policy.RestartReplay)
	asked := was.Asked
	if !goes {
		asked = nil
	}
	corrections := 0
	if was.InPods { // an agent that fails, or whose model calls do, gets no more corrections by that
		corrections = was.Corrections
	}
	s.Tasks[b.Name] = Task{Policy: b.Policy, Plan: b.Plan, Begun: true, Operations: was.Operations, InPods: was.InPods, Corrections: corrections,
		Interrupted: goes, Asked: asked, Parked: was.Parked,
		From: cmp.Or(was.From, b.From), WentBack: was.WentBack, Before: was.Before, Work: was.Work, Failures: was.Failures, Since: since, Chosen: was.Chosen,
		Documents: b.Knowledge.given(), Faulty: was.Faulty}
	return nil
}

// aborted takes the decision that a task cannot be done. It is made again, with another ID, where the workspace could not go back.
func (s *State) aborted(a TaskAborted) error {
	if a.ID == "" || a.Reason == "" {
		return fmt.Errorf("task %q aborted without an ID or a reason", a.Name)
	}
	if s.Tasks[a.Name].Over() {
		return fmt.Errorf("task %q aborted after it was over", a.Name)
	}
	a.Message = plain.Line(a.Message, protocol.MaxTaskMessage)
	return s.task(a.Name, func(t *Task) { t.Aborting, t.Gating, t.Ended = &a, "", true })
}

// failed counts a failure of the agent at work. The final report counts it for a task that is aborted after too many.
func (s *State) failed(f protocol.FinalReport) {
	name := s.Working()
	t, is := s.Tasks[name]
	if !is || s.Run != protocol.RunAgent || f.Outcome != protocol.OutcomeAgentFailed || f.TaskFailures == 0 {
		return
	}
	t.Failures = f.TaskFailures
	s.Tasks[name] = t
}

// again says that a user has asked for another attempt after every task was aborted.
func (s *State) again(run string) bool {
	return run == protocol.RunAgent && s.Final != nil && s.Final.Outcome == protocol.OutcomeBlocked && s.Final.Reason == protocol.ReasonTasksAborted
}

// corrected begins a task once more, in its session.
func (s *State) corrected(c TaskCorrected) error {
	why := s.objection(c.Name, c.Text)
	err := s.task(c.Name, func(t *Task) { t.correct(c) })
	if err == nil && c.ID == "" { // a turn without tools is an anomaly, which steering tells of
		s.fails(Failure{Task: c.Name, Told: why})
	}
	return err
}

// restarted begins a task again, in a new session.
func (s *State) restarted(r TaskRestarted) error {
	why := s.objection(r.Name, r.Text)
	err := s.task(r.Name, func(t *Task) { t.restart(r) })
	if err == nil && r.ID == "" { // steering tells of the others
		s.fails(Failure{Task: r.Name, Told: why})
	}
	return err
}

// correct begins the task once more in the same attempt.
func (t *Task) correct(c TaskCorrected) {
	if c.ID == "" {
		t.Corrections++
	}
	t.Correction, t.Continued, t.Before = c.Text, c.ID, max(t.Before, t.Start)
	t.Start, t.Ended, t.ExitCode, t.Stopped, t.Completed = 0, false, 0, false, time.Time{}
	t.Failing, t.Failure = nil, nil
	t.Gating, t.Asked, t.Parked = "", nil, false
	t.RestartText = "" // it is in the session by now
}

// restart begins the task again in the same attempt, without a session.
func (t *Task) restart(r TaskRestarted) {
	t.correct(TaskCorrected{})
	t.Interrupted, t.Session, t.Operations = false, false, nil
	if r.ID != "" {
		t.Corrections = 0 // what they have done is taken back
	}
	t.Restart, t.RestartText = r.ID, r.Text
}

// Restarts says that the watchdog must end the agent and start it again from the beginning, and has not started it.
func (t Task) Restarts() bool { return t.RestartText != "" && t.Start == 0 && !t.Ended }

// interrupted says whether the agent ended before it was done, and has a session to continue.
func (t Task) interrupted() bool {
	switch {
	case t.Ended:
		return t.Session && t.Stopped
	case t.Start == 0 && t.Before == 0: // it was not started: its session is that of before
		return t.Interrupted || t.Session && t.Correction != ""
	}
	return t.Session
}

// unheard says that the watchdog has noted a correction, and that no agent has started since.
func (t Task) unheard() bool {
	return t.Start == 0 && !t.Ended && (t.Correction != "" && t.Continued == "" || t.RestartText != "" && t.Restart == "")
}

// Gating is the name of the task whose gates are to pass, and whether each runs in a pod of its own; empty if there is none.
func (s State) Gating() (name string, inPods bool) {
	name = s.Working()
	if t := s.Tasks[name]; t.Gating != "" {
		return name, t.InPods
	}
	return "", false
}

// Proving is the tree that gates run on now: that of the closing checkpoint of a task, or that of the delivery head.
func (s State) Proving() string {
	if name, _ := s.Gating(); name != "" {
		return s.Tasks[name].Gating
	}
	return s.Head().Tree
}

// proving says that the gates of a task run in pods of their own.
func (s *State) proving(name string) error {
	if s.Tasks[name].Gating == "" {
		return fmt.Errorf("gates of task %q run in pods, and the task does not wait for gates", name)
	}
	return s.task(name, func(t *Task) { t.InPods = true })
}

// gated takes the result of a gate. It does not count if orders made the task done while the gate ran.
func (s *State) gated(g GateRan) error {
	t, ok := s.Tasks[g.Task]
	if !ok || t.Gating != g.Result.Tree && !t.Done {
		return fmt.Errorf("gate %q of task %q ran on tree %q, and the task waits for gates on %q", g.Result.Gate, g.Task, g.Result.Tree, t.Gating)
	}
	t.Before, t.InPods = max(t.Before, g.Start), t.InPods && s.Run == protocol.RunGate
	s.Tasks[g.Task] = t
	s.show(g.Task, g.Result)
	if g.Result.State != gates.Passed && !protocol.Directs(g.Task) {
		s.happens(review.GateFailed)
	}
	if g.Result.State != gates.Passed {
		s.faulty(g.Task)
	}
	if t.Done {
		return nil
	}
	s.Results = gates.With(s.Results, g.Result)
	s.prove(g.Task)
	return nil
}

// prove makes a task done whose closing checkpoint completes it, when the gates that the orders list for it have passed. A task that is to be
// dropped is not done because nobody lists gates for it.
func (s *State) prove(name string) {
	t := s.Tasks[name]
	if t.Gating == "" || t.Unlisted || s.Orders == nil || !gates.Proved(s.Orders.GatesOf(name), s.Results, t.Gating) {
		return
	}
	t.Done, t.Gating, t.Operations = true, "", nil
	s.Tasks[name] = t
	s.proves(t)
}

// gone says that nothing of an aborted task is in the workspace any more.
func (s *State) gone(name string, i Intent) error {
	t := s.Tasks[name]
	if t.Aborting == nil || t.Over() {
		return fmt.Errorf("checkpoint %d aborts task %q, which is not being aborted", i.Sequence, name)
	}
	t.Aborted, t.Operations, t.Work.Checkpoint = true, nil, i.Sequence
	s.Tasks[name] = t
	if protocol.Directs(name) { // the reviewer has said what it finds
		s.escalated(name, t.Aborting)
		return nil
	}
	s.happens(review.TaskAborted)
	return nil
}

// moved ends the gates of a task whose workspace has another tree now, as after a rollback: another checkpoint closes it.
func (s *State) moved() {
	for name, t := range s.Tasks {
		if t.Gating != "" && t.Gating != s.Workspace.Tree {
			t.Gating = ""
			s.Tasks[name] = t
		}
	}
}

// completed says that a closing checkpoint completes a task. Without gates it is done.
func (s *State) completed(name string, i Intent) {
	t := s.Tasks[name]
	t.Work.Checkpoint = i.Sequence
	if s.Orders == nil || len(s.Orders.GatesOf(name)) == 0 {
		t.Done, t.Operations = true, nil
		s.Tasks[name] = t
		s.proves(t)
		return
	}
	t.Gating = s.Workspace.Tree
	s.Tasks[name] = t
	s.prove(name)
}

// next is the task as a new attempt begins with it. If only its gates are missing, its agent is not started again.
func (t Task) next() Task {
	n := Task{Policy: t.Policy, Plan: t.Plan, Operations: t.Operations, Interrupted: t.interrupted(), From: t.From, WentBack: t.WentBack, Work: t.Work,
		Failures: t.Failures, Since: t.Since, Chosen: t.Chosen, Documents: t.Documents, Faulty: t.Faulty}
	if t.Aborting != nil { // the watchdog completes it, without the agent
		n.Begun, n.Ended, n.Interrupted, n.Corrections, n.Aborting = true, true, false, t.Corrections, t.Aborting
		return n
	}
	if n.Interrupted { // it has the session in which it asked
		n.Asked, n.Parked = t.Asked, t.Parking || t.Parked && t.Start == 0 && t.Before == 0
	}
	if t.Gating != "" {
		n.Begun, n.Ended, n.Session, n.Interrupted = true, true, t.Session, false
		n.Gating, n.Completed = t.Gating, t.Completed
	}
	if t.InPods { // neither the attempts for gates nor failures of the agent reset the count
		n.InPods, n.Corrections = true, t.Corrections
		if t.unheard() {
			n.Corrections--
		}
	}
	return n
}

func (s *State) task(name string, change func(*Task)) error {
	t, ok := s.Tasks[name]
	if !ok || !t.Begun {
		return fmt.Errorf("task %q was not begun", name)
	}
	change(&t)
	s.Tasks[name] = t
	return nil
}

// operation remembers the answer to the agent.
func (s *State) operation(o Operation) error {
	t, known := s.Tasks[o.Task]
	if !known {
		return fmt.Errorf("operation %q of task %q, which never began", o.ID, o.Task)
	}
	t.Operations = with(t.Operations, o.ID, o)
	s.Tasks[o.Task] = t
	return nil
}

// Works are the works of the newest done or aborted tasks, at most protocol.MaxTaskWorks, by the name of the task.
func (s State) Works() map[string]*protocol.TaskWork {
	type done struct {
		name string
		work protocol.TaskWork
	}
	later := func(a, b done) int {
		return cmp.Or(cmp.Compare(b.work.Checkpoint, a.work.Checkpoint), strings.Compare(a.name, b.name))
	}
	var newest []done
	for name, t := range s.Tasks {
		if !t.Over() || t.Work.Checkpoint == 0 { // an earlier version did not keep it
			continue
		}
		d := done{name, t.Work}
		i, _ := slices.BinarySearchFunc(newest, d, later)
		newest = plain.CutList(slices.Insert(newest, i, d), protocol.MaxTaskWorks)
	}
	works := map[string]*protocol.TaskWork{}
	for _, d := range newest {
		works[d.name] = &d.work
	}
	return works
}
