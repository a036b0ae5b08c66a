// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// step is one concern of Next: what it wants done, and whether it wants anything.
type step func(State, time.Time) (Action, bool)

// Next says what to do. The first concern with an action decides.
func Next(s State, now time.Time) Action {
	for _, concern := range []step{
		over,      // nothing follows the end
		busy,      // one act at a time
		resisting, // an agent that cannot be stopped
		ending,    // stop, suspend, terminate
		answers,   // requests that need no checkpoint
		held,      // an open breaker, a budget that is used up, or a user who must look, holds everything else
		dropping,  // a task that the orders do not list any more
		measured,  // what steering wants
		parking,   // a question that waits too long for a pod
		proving,   // a pod for one gate
		sealing,   // no agent: only deliver
		switching, // the next task wants another pod
		tasks,     // one after the other
		delivery,  // the work is done
	} {
		if a, ok := concern(s, now); ok {
			return a
		}
	}
	return Action{}
}

func over(s State, _ time.Time) (Action, bool) { return Action{}, s.Over() }

func busy(s State, _ time.Time) (Action, bool) {
	_, plans := s.plans()
	breakable := s.Doing == Plan && !plans || (s.Doing == Push || s.Doing == Review || s.Doing == Gate || s.Doing == Plan || s.Doing == Consult) && s.Stopped() || s.Doing == Gate && !s.wanted(s.Proving)
	if breakable && !s.Cancelled {
		return Action{Kind: Cancel}, true
	}
	return Action{}, s.Doing != Wait
}

// resisting gives up on processes that cannot be stopped: their container ends, and with its first process all others do. If the pod is
// ending, that comes about by itself.
func resisting(s State, _ time.Time) (Action, bool) {
	if s.Agent.Resisted < maxResisted || s.End == Terminate {
		return Action{}, false
	}
	return Action{Kind: Finish, Final: s.unstoppable(), EndFirst: true}, true
}

// ending captures what the agent did until now, exactly once, and goes. A suspended or stopped agent is killed first,
// so that the capture is of a workspace at rest; when the pod is being ended there is no time for that.
func ending(s State, now time.Time) (Action, bool) {
	if s.End == GoOn || s.errands() {
		return Action{}, false
	}
	if s.Errand && s.Earlier != nil && s.End != Terminate {
		return Action{Kind: Finish, Final: s.repeated()}, true
	}
	if !s.Closed && !s.untouched() {
		if s.End != Terminate && s.Agent.Leftovers {
			return s.kill(), true
		}
		if s.End != Terminate && now.Before(s.Checkpoints.RetryAt) {
			return Action{Until: s.Checkpoints.RetryAt}, true
		}
		return s.checkpoint(protocol.TriggerFinal, s.End == Terminate), true
	}
	if s.End == Terminate {
		return Action{Kind: Leave}, true
	}
	return Action{Kind: Finish, Final: s.interrupted()}, true
}

func answers(s State, _ time.Time) (Action, bool) {
	for _, r := range s.Requests {
		switch {
		case s.ForGate != "" && (r.Kind == protocol.RequestRollback || r.Kind == protocol.RequestCheckpoint): // they wait for the workspace
		case r.Kind == protocol.RequestResetBreaker:
			return Action{Kind: Answer, Answer: s.reset(r.ID)}, true
		case r.Kind == protocol.RequestRelease:
			if s.Seal || s.Agent.Connected { // before that it is not known whether an agent is frozen
				return Action{Kind: Answer, Answer: s.release(r.ID)}, true
			}
		case r.Kind == protocol.RequestRollback:
			if a, ok := s.rollback(r); ok {
				return a, true
			}
		case r.Kind == protocol.RequestApprovePlan:
			if a, ok := s.approve(r); ok {
				return a, true
			}
		case r.Kind == protocol.RequestReplan:
			if a, ok := s.replan(r); ok {
				return a, true
			}
		case r.Kind != protocol.RequestCheckpoint:
			return refuse(r.ID, "unknown kind of request "+r.Kind), true
		case s.Seal:
			return s.checkpoint(protocol.TriggerRequested, false), true
		}
	}
	return Action{}, false
}

// rollback waits for the runner, without which the agent cannot be held still.
func (s State) rollback(r protocol.Request) (Action, bool) {
	switch {
	case r.Rollback == nil:
		return refuse(r.ID, "the request does not say what to roll back"), true
	case s.Checkpoints.Breaker && !s.Seal:
		return refuse(r.ID, "the breaker is open, so the watchdog cannot keep the present state: send the request resetBreaker "+
			"first, then ask again with a new id"), true
	case !s.Seal && !s.Agent.Connected:
		return Action{}, false
	}
	return Action{Kind: Rollback, Request: r, Requests: []string{r.ID}, Task: s.current(), Trigger: protocol.TriggerRequested}, true
}

func (s State) reset(id string) protocol.RequestReport {
	if s.Checkpoints.Breaker {
		return protocol.RequestReport{ID: id, OK: true, Message: "the breaker is closed; the watchdog tries checkpoints again"}
	}
	return protocol.RequestReport{ID: id, OK: false, Message: "the breaker is not open: nothing to reset"}
}

func (s State) release(id string) protocol.RequestReport {
	if s.onHold() {
		return protocol.RequestReport{ID: id, OK: true, Message: "the agent continues"}
	}
	return protocol.RequestReport{ID: id, OK: false, Message: "the agent does not wait for a release: nothing to do"}
}

func refuse(id, message string) Action {
	return Action{Kind: Answer, Answer: protocol.RequestReport{ID: id, Message: message}}
}

// sealing repeats what the last attempt ended with when there is nothing that could be delivered without an agent, or when its orders are
// not to deliver.
func sealing(s State, _ time.Time) (Action, bool) {
	i := s.Current()
	ready := s.Earlier != nil && s.Earlier.Outcome == protocol.OutcomeReadyToMerge
	switch {
	case !s.Seal:
		return Action{}, false
	case i >= 0 && s.Earlier != nil && s.Earlier.Outcome == protocol.OutcomeProving && s.Earlier.Task != "":
		return Action{Kind: Finish, Final: s.withoutAgent(i)}, true
	case i >= 0 && !s.Errand && s.Earlier != nil && s.Earlier.Outcome == protocol.OutcomeProving:
		return Action{Kind: Finish, Final: s.more(i)}, true
	case s.Earlier != nil && (i >= 0 || s.Errand && !ready):
		return Action{Kind: Finish, Final: s.repeated()}, true
	case i >= 0:
		return Action{Kind: Finish, Final: s.unfinished(i)}, true
	}
	return Action{}, false
}

func tasks(s State, now time.Time) (Action, bool) {
	if s.Seal {
		return Action{}, false
	}
	i := s.Current()
	if i < 0 {
		if s.unconfirmedPlan() {
			return Action{}, true
		}
		if r, plans := s.plans(); plans {
			return Action{Kind: Plan, Request: r}, true
		}
		if f, is := s.diverged(); is {
			return Action{Kind: Finish, Final: f}, true
		}
		if a, ok := s.requested(now); ok {
			return a, true
		}
		return s.consults()
	}
	switch phase := s.Tasks[i].Phase; {
	case phase == Failed:
		return Action{Kind: Finish, Final: s.failed(i)}, true
	case phase == Gating && s.GatePods && !s.Agent.Leftovers: // the agent's container is not needed
		return Action{Kind: Finish, Final: s.gating(i)}, true
	case !s.Agent.Connected:
		return Action{}, true
	case phase == Running:
		return running(s, now), true
	case s.Agent.Leftovers:
		return s.kill(), true
	case phase == Exited:
		return s.closeTask(now, i), true
	case phase == Gating && now.Before(s.Checkpoints.RetryAt):
		return Action{Until: s.Checkpoints.RetryAt}, true
	case phase == Gating:
		return s.Tasks[i].gate(), true
	case phase == Aborting:
		return s.abort(now, i), true
	case s.Tasks[i].Restart != "" && !s.Tasks[i].Back:
		return s.goBack(s.Tasks[i].Restart, s.Tasks[i].RestartReason, now), true
	}
	if s.unconfirmedPlan() && !s.Tasks[i].Begun {
		return Action{}, true
	}
	if r, plans := s.plans(); plans && !s.Tasks[i].Begun { // the task at hand ends first
		return Action{Kind: Plan, Request: r}, true
	}
	if f, is := s.diverged(); is && !s.Tasks[i].Begun {
		return Action{Kind: Finish, Final: f}, true
	}
	if f, waits := s.unplanned(); waits {
		return Action{Kind: Finish, Final: f}, true
	}
	if now.Before(s.Checkpoints.RetryAt) { // it could not be prepared
		return Action{Until: s.Checkpoints.RetryAt}, true
	}
	if a, ok := s.consults(); ok && !s.Tasks[i].Begun {
		return a, true
	}
	return Action{Kind: Start, Task: s.Tasks[i].Name}, true
}

// kill waits for the runner, should it be out of reach.
func (s State) kill() Action {
	if !s.Agent.Connected {
		return Action{}
	}
	return Action{Kind: Kill}
}

// closeTask takes the checkpoint that decides the task; nothing of the agent can write any more.
func (s State) closeTask(now time.Time, i int) Action {
	if now.Before(s.Checkpoints.RetryAt) {
		return Action{Until: s.Checkpoints.RetryAt}
	}
	a := s.checkpoint(s.closing(i), false)
	a.Closes = true
	return a
}

// running watches an agent at work: the due trigger that comes first wins.
func running(s State, now time.Time) Action {
	c, until := s.Checkpoints, time.Time{}
	due := func(wanted bool, after time.Duration) bool {
		at := latest(c.Last.Add(after), c.Last.Add(s.Rules.MinInterval), c.RetryAt)
		if wanted && now.Before(at) && (until.IsZero() || at.Before(until)) {
			until = at
		}
		return wanted && !now.Before(at)
	}
	over, leave := s.overdue(now)
	until = earliest(leave, s.parksAt())
	switch {
	case over, s.Agent.Running && s.Tasks[s.Current()].Rejected != "":
		return s.kill()
	case due(s.wantsCheckpoint(), 0):
		return s.checkpoint(protocol.TriggerRequested, false)
	case s.Patches > 0 && s.TakesPatches():
		return Action{Kind: Patch, Task: s.current(), Trigger: protocol.TriggerPatch}
	case due(s.Rules.MaxChanges > 0 && c.Changed >= s.Rules.MaxChanges, 0):
		return s.checkpoint(protocol.TriggerChanges, false)
	case due(c.Failures > 0, 0), due(c.Changed > 0 || c.Unseen, s.Rules.Interval):
		return s.checkpoint(protocol.TriggerInterval, false)
	}
	return Action{Until: until}
}

// requested takes a checkpoint that a user wants while no task runs.
func (s State) requested(now time.Time) (Action, bool) {
	if !s.wantsCheckpoint() || !s.Agent.Connected {
		return Action{}, false
	}
	if at := latest(s.Checkpoints.Last.Add(s.Rules.MinInterval), s.Checkpoints.RetryAt); now.Before(at) {
		return Action{Until: at}, true
	}
	return s.checkpoint(protocol.TriggerRequested, false), true
}

// checkpoint answers every request that waits for one.
func (s State) checkpoint(trigger string, hold bool) Action {
	a := Action{Kind: Checkpoint, Trigger: trigger, Hold: hold, Task: s.current()}
	for _, r := range s.Requests {
		if r.Kind == protocol.RequestCheckpoint {
			a.Requests = append(a.Requests, r.ID)
		}
	}
	return a
}

// delivery reviews the head under the policy of now, and pushes it.
func delivery(s State, now time.Time) (Action, bool) {
	if s.Current() >= 0 {
		return Action{}, false
	}
	if s.unconfirmedWork() {
		return Action{}, true
	}
	if final, ok := s.verdict(); ok {
		return Action{Kind: Finish, Final: final}, true
	}
	switch {
	case s.Unheard: // the policy and the approval of now count, and the manager has to take the report of the delivery anyway
		return Action{}, true
	case now.Before(s.Delivery.RetryAt):
		return Action{Until: s.Delivery.RetryAt}, true
	case !s.Delivery.Reviewed:
		return Action{Kind: Review}, true
	case !s.Delivery.proved():
		return Action{Kind: AddTask}, true
	}
	return Action{Kind: Push}, true
}

func latest(times ...time.Time) time.Time {
	var t time.Time
	for _, u := range times {
		if u.After(t) {
			t = u
		}
	}
	return t
}
