// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervise decides what a watchdog does next. It is a state machine of values: Apply takes events, Next says what to do, and the
// caller does it and reports back with another event. At most one act is in progress at a time.
package supervise

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Rules of supervision, taken from the policy that is pinned for the task at hand.
type Rules struct {
	// Interval between checkpoints of a workspace that changed.
	Interval time.Duration
	// MinInterval between any two checkpoints, except checkpoints that end something. It is also the first pause after a failed checkpoint
	// (see PauseAfter).
	MinInterval time.Duration
	// MaxChanges is how many changed paths call for a checkpoint.
	MaxChanges int
	// MaxFailures in a row open the breaker.
	MaxFailures int
	// MaxCorrections of a task: see Task.Corrections.
	MaxCorrections int
	// ParkAfter is how long a question waits before the pod ends; 0 for never.
	ParkAfter time.Duration
}

// RulesOf takes the rules of supervision from a policy.
func RulesOf(p policy.Effective) Rules {
	return Rules{
		Interval:       p.Execution.Interval,
		MinInterval:    p.Execution.MinInterval,
		MaxChanges:     p.Execution.MaxChanges,
		MaxFailures:    max(p.MaxCheckpointFailures, 1),
		MaxCorrections: p.Supervision.MaxCorrections,
		ParkAfter:      p.Questions.ParkAfter,
	}
}

// Phase of a task.
type Phase string

// Phases of a task. Exited: its process ended, the checkpoint that closes it is still to be taken. Gating: that checkpoint completes the task,
// and its gates are still to pass. Aborting: the task cannot be done, and its changes are about to leave the workspace. Aborted: they have left, and
// the work continues without the task.
const (
	Pending Phase = "Pending"
	Running Phase = "Running"
	Exited  Phase = "Exited"
	Gating  Phase = "Gating"
	Done    Phase = "Done"
	Failed  Phase = "Failed"

	Aborting Phase = "Aborting"
	Aborted  Phase = "Aborted"
)

// Task is one run of the agent.
type Task struct {
	Name  string
	Phase Phase
	// Begun: the watchdog has started its agent in this attempt, or is about to. At most one begun task is not over.
	Begun bool
	// Continue: if the task cannot be done it is aborted, and the work continues with the next one. Failures is how often its agent has failed in
	// earlier attempts.
	Continue bool
	Failures int
	// Abort is the ID of the rollback of a task that is being aborted, once the journal has it; empty before. Decided: an earlier attempt has decided
	// to abort the task, and its rollback was refused.
	Abort   string
	Decided bool
	// Listed: the orders list it. Dropped: they did not list it at some time since it began, so its agent ends, and a task that is listed again
	// begins again after that.
	Listed, Dropped bool
	// Captured: a checkpoint was taken after its agent had ended.
	Captured bool
	// ExitCode of the agent, once it exited. Stopped: the watchdog had to end it by then, so that the exit code 0 does not say that the task is done.
	ExitCode int
	Stopped  bool
	// Gates that have to pass on Tree, which is that of the closing checkpoint, and Results of gates so far. All are empty before it. InPods: these
	// gates ran in pods of their own.
	InPods  bool
	Gates   []protocol.Gate
	Tree    string
	Results []gates.Result
	// Corrections is how often the watchdog started it again because its work was not valid, and Correction the text for its next start; empty
	// if there is none.
	Corrections int
	Correction  string
	// Rejected says why the task has failed while its agent worked on it; empty if it has not. RejectedReason is one of the contract's.
	Rejected, RejectedReason string
	// Restart is the ID of the act that starts the agent again from the beginning; empty if there is none. RestartReason tells users why, and
	// Back says that the workspace was restored for it.
	Restart, RestartReason string
	Back                   bool
	// Parked is the question that an earlier attempt has ended for, and that has no answer yet; nil for none.
	Parked *protocol.Question
	// Continues is the ID of the act that lets the agent continue after it ended in a turn without tools; empty if there is none.
	Continues string
	// Failure of the agent's latest model calls, if it ended because of them; nil otherwise.
	Failure *protocol.Failure
	// Completed is when the agent said that the task is done (Deterministic mode); zero before.
	Completed time.Time
	// Reason and Message say why it failed or was aborted; the reason is one of the contract's.
	Reason  string
	Message string
}

// over says that nothing more is done about the task.
func (t Task) over() bool { return t.Phase == Done || t.Phase == Aborted }

// Agent is the known state of the agent's container.
type Agent struct {
	// Connected: the runner is connected.
	Connected bool
	// Running: the started process is running.
	Running bool
	// Leftovers: a process of the agent may be running; true from a start until everything was killed.
	Leftovers bool
	// Frozen until a user has acted, and since when.
	Frozen   bool
	FrozenAt time.Time
	// Resisted counts kills, freezes and thaws in a row that failed; Resistance is why the last one did.
	Resisted   int
	Resistance string
}

// maxResisted is how many times in a row the agent's processes may fail to be stopped before their container ends. A single one may be bad
// luck: a process that hangs inside the kernel, a machine without memory.
const maxResisted = 5

// End is why an attempt ends before its work does, in rising order of urgency.
type End int

// Ends. Await ends because a question waits. Terminate leaves without a final report: another attempt follows.
const (
	GoOn End = iota
	Await
	Suspend
	Stop
	Terminate
)

// Checkpoints is the known state of the checkpoints of this attempt.
type Checkpoints struct {
	// Last is when the last one was taken, or when supervision began.
	Last time.Time
	// Changed counts the paths that changed since then. Unseen: there may be more, from a time without a watcher.
	Changed int
	Unseen  bool
	// Failures in a row.
	Failures int
	// Failure says why the last one failed.
	Failure protocol.Fault
	// RetryAt is when a failed one is tried again.
	RetryAt time.Time
	// Breaker is open: too many consecutive ones failed, and a user decides.
	Breaker bool
}

// Delivery is the known state of the delivery.
type Delivery struct {
	// Push, RequireApproval and ApprovedCommit are as ordered; Branch is where the work goes.
	Push            bool
	RequireApproval bool
	ApprovedCommit  string
	Branch          string
	// Head is the last promoted commit, or the base, and Tree its tree.
	Head, Tree string
	// Gates that must pass on Tree before anything is delivered, and the Results of gates so far.
	Gates   []protocol.Gate
	Results []gates.Result
	// Corrections is how often an agent got a task to correct what these gates have found.
	Corrections int
	// Changed is false when the head's tree is the base's.
	Changed bool
	// Reviewed: the review has checked the head under the policy with the hash PolicyHash.
	Reviewed bool
	// Objection is why the review refuses the head; empty when it does not. ObjectionReason is a reason of the protocol.
	Objection, ObjectionReason string
	// Squashed is why the head is a single commit on the base; empty if it has the history of its checkpoints.
	Squashed string
	// Knowledge says which documents of reviewers the delivery has; empty if there are none.
	Knowledge string
	// Pushed is the commit that the server has taken.
	Pushed string
	// Overtaken: the server has refused a head because it has taken an earlier one since the review, so that there was another review. There is at most one in a process.
	Overtaken bool
	// Refusal is why the server will never take it; nil when it may.
	Refusal *protocol.Fault
	// Fault is why the last push failed; it is tried again at RetryAt.
	Fault    *protocol.Fault
	Failures int
	RetryAt  time.Time
}

// State is everything that a decision depends on, apart from the time.
type State struct {
	// Seal: there is no agent; the attempt only delivers, or does an errand.
	Seal bool
	// ForGate identifies the gate of a task, or before the delivery, that the sealed attempt's pod is for (gates.Sum); empty for other attempts. The
	// workspace of the Feature is not in this pod.
	ForGate string
	// Used: a gate was started in the pod of ForGate, and may have no result. Ran: the gate of a task has its result, and no other gate runs there.
	Used, Ran bool
	// GatePods: each gate of a task runs in a pod of its own, and not in that of the agent.
	GatePods bool
	// Sessions: the agent can start again in its session, with a message.
	Sessions bool
	// Errand: the sealed attempt has orders for something other than a delivery.
	Errand bool
	// Mode that the pod is made for, and NextMode that the next task is to run in.
	Mode, NextMode string
	// Patches of the agent that wait for a check, and the Question that it asks users. Asking: the agent waits for the answer at this moment.
	Patches  int
	Question *protocol.Question
	Asking   bool
	// MayPark: the pod may end while a question waits. Parking is the question that it ends for; nil for none.
	MayPark bool
	Parking *protocol.Question
	// Rules of the task at hand.
	Rules Rules
	Tasks []Task
	// AnyDone: a task is done, also if the orders do not list it any more.
	AnyDone bool
	// MaxRetries of an agent that fails in a task that Continues.
	MaxRetries int
	// Breakpoint between two tasks; zero while a task is at work.
	Breakpoint Breakpoint
	// Planning by a model.
	Planning    Planning
	Agent       Agent
	Checkpoints Checkpoints
	Delivery    Delivery
	// Allowance is the use of models, and what is left.
	Allowance protocol.Allowance
	// Conversation of the agent with its models, as it was reported last; nil before there is one.
	Conversation *protocol.Conversation
	// Told says that the agent has received a message about an anomaly that is not over.
	Told bool
	// Place is where the work is, as the newest checkpoint has it.
	Place Place
	// Measure of steering that is in progress; nil for none.
	Measure *Measure
	// Unheard: this process has its orders from the journal, and the manager has sent none. Nothing is reviewed or delivered until it has.
	Unheard bool
	// Requests that have no result yet. Unconfirmed are the requests of journaled orders: until the manager sends orders, nobody knows whether a user
	// has withdrawn them.
	Requests, Unconfirmed []protocol.Request
	// PolicyHash of the policy in the newest orders.
	PolicyHash string
	// End that orders or signals demand, and why.
	End        End
	StopReason string
	// Closed: the checkpoint that precedes the end was taken, or given up.
	Closed bool
	// Earlier is the last final report of an earlier attempt.
	Earlier *protocol.FinalReport
	// Doing is the act in progress; Wait if there is none. Cancelled: the watchdog has cancelled it.
	Doing     Kind
	Cancelled bool
	// Proving is the gate that runs, while Doing is Gate.
	Proving protocol.Gate
	// Final is the report that ended the attempt.
	Final *protocol.FinalReport
	// Left without a final report.
	Left bool
}

// Over says that the attempt has ended.
func (s State) Over() bool { return s.Final != nil || s.Left }

// Current is the index of the begun task that is not over or, if there is none, of the first one that is not over; -1 if all are.
func (s State) Current() int {
	next := -1
	for i, t := range s.Tasks {
		switch {
		case t.over():
		case t.Begun:
			return i
		case next < 0:
			next = i
		}
	}
	return next
}

// current is the name of the task with the index Current; empty if all tasks are over.
func (s State) current() string {
	if i := s.Current(); i >= 0 {
		return s.Tasks[i].Name
	}
	return ""
}

// Task is the task with a name, and whether there is one.
func (s State) Task(name string) (Task, bool) {
	if i := s.index(name); i >= 0 {
		return s.Tasks[i], true
	}
	return Task{}, false
}

// index of the task with a name, or -1.
func (s State) index(name string) int {
	return slices.IndexFunc(s.Tasks, func(t Task) bool { return t.Name == name })
}

// errands says that requests wait for a sealed attempt. One that is to be deleted is not kept for them.
func (s State) errands() bool {
	deleted := s.End == Stop && s.StopReason == protocol.ReasonDeleted
	return s.Seal && s.ForGate == "" && s.End != Terminate && !deleted && len(s.Requests) > 0
}

// untouched says that no process of the agent has run in this attempt, so that there is nothing to capture.
func (s State) untouched() bool {
	if s.Seal {
		return true
	}
	i := s.Current()
	started := i >= 0 && (s.Tasks[i].Phase != Pending || s.Tasks[i].Continues != "")
	if i >= 0 && (s.Tasks[i].Phase == Gating || s.Tasks[i].Phase == Aborting) { // the closing checkpoint has captured it, and what a gate changes does not count
		return true
	}
	return !started && !s.Agent.Leftovers && s.Checkpoints.Changed == 0
}

// closing is the trigger of the checkpoint that closes task i: Final if no other task is left.
func (s State) closing(i int) string {
	for k, t := range s.Tasks {
		if k != i && !t.over() {
			return protocol.TriggerTask
		}
	}
	return protocol.TriggerFinal
}
