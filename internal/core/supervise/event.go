// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Event is something that happened.
type Event interface{ apply(*State, time.Time) }

// Apply is the state after an event.
func (s State) Apply(e Event, now time.Time) State {
	s.Tasks, s.Requests = slices.Clone(s.Tasks), slices.Clone(s.Requests)
	e.apply(&s, now)
	return s
}

// Begin is the state while the watchdog carries out an action. Wait and Cancel leave the action in progress as it is.
func (s State) Begin(a Action) State {
	switch a.Kind {
	case Wait:
	case Cancel:
		s.Cancelled = true
	default:
		s.Doing, s.Cancelled, s.Proving = a.Kind, false, a.Gate
	}
	if a.Kind == Park { // from now on the agent would not hear an answer
		s.Parking = &a.Question
		s.end(Await)
	}
	if i := s.index(a.Task); a.Kind == Start && i >= 0 {
		s.Tasks = slices.Clone(s.Tasks)
		s.Tasks[i].Begun = true
	}
	return s
}

func (s *State) idle() { s.Doing, s.Cancelled = Wait, false }

// Ordered: orders came.
type Ordered struct {
	// Orders as they are now. Journaled: this process has them from the journal, and the manager has sent none.
	Orders    protocol.Orders
	Journaled bool
	// Answered says which requests have a result already, Done which tasks are done, and Aborted which are aborted; nil for none.
	Answered, Done, Aborted func(name string) bool
	// AnyDone: a task is done, also if the orders do not list it any more.
	AnyDone bool
	// Made is the newest plan that a model has made. Planned: a model has divided the work, or could not.
	Made    Made
	Planned bool
}

func (e Ordered) apply(s *State, now time.Time) {
	o := e.Orders
	s.AnyDone = s.AnyDone || e.AnyDone
	s.list(o, e.Done, e.Aborted)
	s.Planning.follow(o, e.Made, e.Planned, s.begun())
	open := s.Requests[:0]
	for _, r := range o.Requests {
		if e.Answered == nil || !e.Answered(r.ID) {
			open = append(open, r)
		}
	}
	s.Requests, s.Unconfirmed, s.Unheard = open, nil, e.Journaled
	if e.Journaled {
		s.Requests, s.Unconfirmed = nil, open
	}
	s.Errand = s.Errand || s.Seal && s.ForGate == "" && len(s.Requests) > 0
	if s.PolicyHash != o.Policy.Hash {
		s.PolicyHash, s.Delivery.Reviewed = o.Policy.Hash, false
	}
	s.Mode, s.NextMode, s.MayPark, s.GatePods = o.Mode, o.NextMode, o.MayPark, o.GatePods
	for i := range s.Tasks {
		s.Tasks[i].awaits(o, now)
	}
	d := &s.Delivery
	d.Push, d.RequireApproval, d.ApprovedCommit, d.Branch, d.Gates =
		o.Delivery.Push, o.Delivery.RequireApproval, o.Delivery.ApprovedCommit, o.Delivery.Branch, o.Delivery.Gates
	switch {
	case o.Stop:
		s.end(Stop)
		s.StopReason = o.StopReason
	case o.Suspend:
		s.end(Suspend)
	}
}

// end asks for an end; the most urgent one stands, and an earlier demand is not taken back: the agent may be dead.
func (s *State) end(e End) {
	if e > s.End { // what failed before is tried at once: there is no later
		s.End, s.Checkpoints.RetryAt = e, time.Time{}
	}
}

// Conversed: there is news of the conversation between agent and models.
type Conversed struct {
	Conversation *protocol.Conversation
	// Told says that the agent has received a message about an anomaly that is not over.
	Told bool
}

func (e Conversed) apply(s *State, _ time.Time) { s.Conversation, s.Told = e.Conversation, e.Told }

// Terminated: the pod received a signal to end, or the agent's container is gone.
type Terminated struct{}

func (Terminated) apply(s *State, _ time.Time) { s.end(Terminate) }

// Connected: the runner is connected, and reports its state.
type Connected struct {
	// Running: the agent that was started for the current task is running. An agent that the watchdog must end, to start it again from the
	// beginning, does not count.
	Running bool
	// Exited is how the agent of the current task ended, if it did.
	Exited *protocol.RunnerExited
	// Failure as in AgentExited.
	Failure *protocol.Failure
	// Leftovers: an agent was started at some time, so that processes of it may still run.
	Leftovers bool
	// Frozen: the runner stopped everything while nobody watched.
	Frozen bool
}

func (e Connected) apply(s *State, now time.Time) {
	if m := s.Measure; (e.Running || e.Exited != nil) && m != nil && (m.Rung == policy.RungNoTools || m.Rung == policy.RungRestart) { // its agent was started after it, before a crash
		s.settle(m.Rung, true)
	}
	s.Agent = Agent{Connected: true, Running: e.Running, Leftovers: e.Running || e.Exited != nil || e.Leftovers, Frozen: e.Frozen}
	s.Used = s.Used || s.Agent.Leftovers && s.ForGate != ""
	if !e.Running {
		s.left()
	}
	i := s.Current()
	if i < 0 || s.Tasks[i].Phase == Failed || s.Tasks[i].Phase == Aborting {
		return
	}
	switch {
	case e.Running:
		s.Tasks[i].begins()
		s.affords()
	case e.Exited != nil:
		s.Tasks[i].begins()
		AgentExited{Code: e.Exited.Code, Failure: e.Failure}.apply(s, now)
	case s.Tasks[i].Rejected != "":
		s.Tasks[i].Phase, s.Tasks[i].Reason, s.Tasks[i].Message = Failed, s.Tasks[i].RejectedReason, s.Tasks[i].Rejected
		s.givesUp(&s.Tasks[i])
	case s.Tasks[i].Phase == Running: // the start that was noted never reached the runner
		s.Tasks[i].Phase = Pending
	}
}

// Disconnected: the runner is out of reach. Either it comes back, with everything stopped meanwhile, or its container is gone and the pod ends.
type Disconnected struct{}

func (Disconnected) apply(s *State, _ time.Time) { s.Agent.Connected = false }

// Started: the agent runs.
type Started struct {
	// Rules that are pinned for the task.
	Rules Rules
}

func (e Started) apply(s *State, now time.Time) {
	s.idle()
	s.Rules, s.Checkpoints.Last = e.Rules, now
	if i := s.Current(); i >= 0 && s.Tasks[i].Phase == Pending {
		s.Tasks[i].begins()
		s.Agent.Running, s.Agent.Leftovers = true, true
		s.affords()
	}
}

// begins a task, or continues it. Its agent has received what it had to.
func (t *Task) begins() {
	t.Phase, t.Correction, t.Restart, t.Back, t.Continues, t.Captured = Running, "", "", false, "", false
}

// NotStarted: the agent's command could not be started.
type NotStarted struct {
	Message string
}

func (e NotStarted) apply(s *State, _ time.Time) {
	s.idle()
	if i := s.Current(); i >= 0 {
		s.Tasks[i].Phase = Failed
		s.Tasks[i].Reason, s.Tasks[i].Message = protocol.ReasonAgentNotStarted, e.Message
	}
}

// AgentExited: the process that was started has ended; others may still run.
type AgentExited struct {
	Code int
	// Failure of its latest model calls, if it ended because of them; nil otherwise.
	Failure *protocol.Failure
}

func (e AgentExited) apply(s *State, _ time.Time) {
	s.Agent.Running = false
	s.left()
	if i := s.Current(); i >= 0 && (s.Tasks[i].Phase == Running || s.Doing == Start) {
		s.Tasks[i].Phase, s.Tasks[i].ExitCode, s.Tasks[i].Stopped, s.Tasks[i].Failure = Exited, e.Code, s.Stopped(), e.Failure
		s.Agent.Leftovers = true
		s.Checkpoints.RetryAt = time.Time{}
	}
}

// Killed: no process of the agent is left.
type Killed struct{}

func (Killed) apply(s *State, _ time.Time) {
	s.idle()
	s.Agent.Running, s.Agent.Leftovers, s.Agent.Frozen = false, false, false
	s.Agent.obeys()
}

// Resisted: a kill, freeze or thaw failed, although the runner is connected.
type Resisted struct {
	// Message says which, and why.
	Message string
}

func (e Resisted) apply(s *State, _ time.Time) {
	s.idle()
	s.Agent.Resisted, s.Agent.Resistance = s.Agent.Resisted+1, e.Message
}

// obeys ends the count of what failed.
func (a *Agent) obeys() { a.Resisted, a.Resistance = 0, "" }

// CalledOff: the act in progress broke off and has done nothing.
type CalledOff struct{}

func (CalledOff) apply(s *State, _ time.Time) {
	s.Agent.Leftovers = s.Agent.Leftovers || s.Doing == Gate // what it started may not have ended
	s.Used = s.Used || s.Doing == Gate && s.ForGate != ""
	s.idle()
}

// Changed: this number of paths has changed since the last capture began.
type Changed struct {
	Paths int
}

func (e Changed) apply(s *State, _ time.Time) { s.Checkpoints.Changed = e.Paths }

// Taken: the watchdog captured, checked and recorded a checkpoint.
type Taken struct {
	// Action that led to it.
	Action Action
	// Settled is false when the workspace still moved: it counts as failed.
	Settled   bool
	Unsettled string
	// TreeVerdict is the verdict on the tree, even if the checkpoint itself was skipped.
	TreeVerdict protocol.Verdict
	// Completes the task, once its Gates have passed on Tree. Results of gates are known already.
	Completes bool
	Gates     []protocol.Gate
	Tree      string
	Results   []gates.Result
	// Aborted: the changes of the aborted task have left. Otherwise Objection says why not.
	Aborted bool
	// Head is the last promoted commit, HeadTree its tree, and Changed whether that differs from the base's.
	Head, HeadTree string
	Changed        bool
	// Objection names the worst violation and what to do about it, and Told is the text for the agent about all of them. Both are empty if the
	// checkpoint checked nothing new.
	Objection, Told string
	// Place is where the work is.
	Place Place
}

// Place is where the work is: how many files differ from the base, and the directory below the workspace that they are all in.
type Place struct {
	Files     int64
	Directory string
}

func (e Taken) apply(s *State, now time.Time) {
	s.idle()
	s.Delivery.move(e.Head, e.HeadTree, e.Changed)
	s.Place = e.Place
	s.answered(e.Action.Requests)
	if !e.Settled {
		s.failure(protocol.Fault{Reason: protocol.ReasonCheckpointFailed, Message: Unsettled(e.Unsettled)}, now)
		return
	}
	s.Checkpoints = Checkpoints{Last: now, Breaker: s.Checkpoints.Breaker}
	s.Closed = s.Closed || s.End != GoOn && e.Action.Trigger == protocol.TriggerFinal && !s.Agent.Running
	s.Closed = s.Closed || s.End == Terminate && e.Action.Hold
	i := s.index(e.Action.Task)
	if i < 0 {
		return
	}
	t := &s.Tasks[i]
	t.Captured = !s.Agent.Leftovers
	if e.Action.Closes {
		t.close(e, s.Ending(*t), s.Sessions && s.corrects(*t))
		t.prove(s.corrects(*t))
		s.givesUp(t)
	}
	if e.Action.Aborts && t.Phase == Aborting {
		t.aborted(e.Aborted, e.Objection)
	}
}

// Unsettled says in words that a checkpoint failed because the workspace was not at rest, and why.
func Unsettled(reason string) string {
	return "the watchdog could not hold the workspace still: " + reason
}

// close decides a task by the checkpoint that was taken after its process ended. One that may be corrected is started again.
func (t *Task) close(e Taken, end Ending, correct bool) {
	switch {
	case e.Completes && len(e.Gates) > 0:
		t.Phase, t.Gates, t.Tree, t.Results = Gating, e.Gates, e.Tree, e.Results
	case e.Completes:
		t.Phase = Done
	case t.Dropped:
		t.Phase = Pending
	case end.Rejected:
		t.Phase, t.Reason, t.Message = Failed, t.RejectedReason, t.Rejected
	case t.Failure != nil && !end.orderly():
		t.Phase, t.Reason = Failed, protocol.ReasonProviderUnavailable
		t.Message = fmt.Sprintf("task %q: the agent exited with code %d after %s", t.Name, t.ExitCode, failures.Say(*t.Failure))
	case t.ExitCode == 0 && !end.orderly():
		t.Phase, t.Reason = Failed, protocol.ReasonAgentFailed
		t.Message = fmt.Sprintf("task %q: the agent exited without calling task_complete; its log says why", t.Name)
	case !end.orderly():
		t.Phase, t.Reason = Failed, protocol.ReasonAgentFailed
		t.Message = fmt.Sprintf("task %q: the agent exited with code %d; its log says why", t.Name, t.ExitCode)
	case correct:
		t.Phase, t.ExitCode, t.Failure, t.Completed = Pending, 0, nil, time.Time{}
		t.Corrections, t.Correction = t.Corrections+1, cmp.Or(e.Told, e.Objection)
	default:
		t.Phase, t.Reason, t.Message = Failed, protocol.ReasonCheckpointInvalid, e.Objection
	}
}

// Missed: the watchdog could not capture, check or record a checkpoint, or could not prepare the start of an agent.
type Missed struct {
	Action Action
	Fault  protocol.Fault
	// Unbegun: the start of the agent has left no record of its task.
	Unbegun bool
}

func (e Missed) apply(s *State, now time.Time) {
	s.Agent.Leftovers = s.Agent.Leftovers || s.Doing == Gate // what it started may not have ended
	s.Used = s.Used || s.Doing == Gate && s.ForGate != ""
	s.idle()
	if e.Action.Kind == Rollback { // it may have gone back
		s.ungate()
	}
	if i := s.index(e.Action.Task); e.Unbegun && i >= 0 {
		s.Tasks[i].Begun = false
	}
	s.answered(e.Action.Requests)
	s.failure(e.Fault, now)
}

// failure counts towards the breaker. An attempt that ends does not wait for ever: what could not be captured stays in
// the workspace.
func (s *State) failure(f protocol.Fault, now time.Time) {
	c := &s.Checkpoints
	c.Last, c.Failures, c.Failure = now, c.Failures+1, f
	c.RetryAt = now.Add(PauseAfter(c.Failures, s.Rules.MinInterval))
	if s.End != GoOn { // it is waited for
		c.RetryAt = now.Add(PauseAfter(1, s.Rules.MinInterval))
	}
	if s.End == GoOn {
		c.Breaker = c.Breaker || !s.Seal && c.Failures >= s.Rules.MaxFailures
		return
	}
	s.Closed = s.End == Terminate || c.Failures >= s.Rules.MaxFailures
}

func (s *State) answered(ids []string) {
	s.Requests = slices.DeleteFunc(s.Requests, func(r protocol.Request) bool { return slices.Contains(ids, r.ID) })
}

// Answered: a request that needed no checkpoint has its result.
type Answered struct {
	Answer protocol.RequestReport
}

func (e Answered) apply(s *State, _ time.Time) {
	s.idle()
	i := slices.IndexFunc(s.Requests, func(r protocol.Request) bool { return r.ID == e.Answer.ID })
	if i >= 0 && e.Answer.OK && s.Requests[i].Kind == protocol.RequestRelease {
		s.settle(policy.RungHold, true)
	}
	if i >= 0 && e.Answer.OK && s.Requests[i].Kind == protocol.RequestResetBreaker {
		s.Checkpoints = Checkpoints{Last: s.Checkpoints.Last, Changed: s.Checkpoints.Changed, Unseen: s.Checkpoints.Unseen}
	}
	s.answered([]string{e.Answer.ID})
}

// RolledBack: a rollback was done or refused, and its request has its result.
type RolledBack struct {
	ID string
	// Went back; otherwise nothing was touched, and Refusal says why.
	Went    bool
	Refusal string
	// Head, HeadTree and Changed as in Taken.
	Head, HeadTree string
	Changed        bool
}

func (e RolledBack) apply(s *State, now time.Time) {
	s.idle()
	s.answered([]string{e.ID})
	s.wentBack(e.ID, e.Went)
	s.leaves(e)
	if !e.Went {
		return
	}
	s.ungate()
	s.Checkpoints = Checkpoints{Last: now, Breaker: s.Checkpoints.Breaker}
	s.Delivery.move(e.Head, e.HeadTree, e.Changed)
}

// Finished: the attempt ended with this report; nil when it left without one.
type Finished struct {
	Final *protocol.FinalReport
}

func (e Finished) apply(s *State, _ time.Time) {
	s.idle()
	s.Final, s.Left = e.Final, e.Final == nil
}
