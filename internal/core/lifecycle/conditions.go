// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// conditions says what a situation and a plan for it mean: everything that people and tools read of a Feature.
func (s situation) conditions(p plan) []Condition {
	at := s.shown(p.at)
	list := []Condition{
		accepted(s.o),
		s.workspaceReady(),
		s.agentRunning(),
		s.supervised(),
		s.isolated(at),
		s.locksHeld(p, at),
		s.areasDisjoint(at),
		checkpointsValid(s.o),
		s.withinBudget(),
		readyToMerge(at),
		delivered(at),
		s.agentStalled(),
		s.anomaly(ConditionAgentLooping, ReasonRepeating),
		s.anomaly(ConditionContextPressure, ReasonWindowFilling),
		s.anomaly(ConditionCascadeFailure, ReasonToolsFailing),
		s.anomaly(ConditionPaceEscalated, ReasonOffPlan),
		succeeded(at),
		reconciling(s.o, at),
		stalled(s.o, at),
	}
	list = append(list, s.deliveriesDisjoint()...)
	list = append(list, s.planned()...)
	list = append(list, s.gatesPassed(at)...)
	list = append(list, s.reviewersHeeded()...)
	list = append(list, s.supervisorCost()...)
	list = append(list, s.knowledgeNeedsReview()...)
	for i := range list {
		c := &list[i]
		c.Message = bounded(c.Message)
		if !reasonFormat.MatchString(c.Reason) {
			c.Reason = ReasonInternalError
		}
	}
	return list
}

// reasonFormat is what the API server takes as a reason (metav1.Condition). Reasons of faults and final reports come
// from a pod: a strange one must not keep the status from being written.
var reasonFormat = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func notYet(name, message string) Condition {
	return Condition{Type: name, Status: Unknown, Reason: ReasonNotYetReported, Message: message}
}

func accepted(o Observed) Condition {
	if r := o.Refusal; r != nil {
		return Condition{ConditionAccepted, False, r.Reason, r.Message}
	}
	reason, parts := ReasonAccepted, []string(nil)
	if fields := o.Spec.NotActedOn; len(fields) > 0 {
		reason = ReasonPartlyActedOn
		parts = append(parts, "This version does not act on: "+strings.Join(fields, ", ")+". Remove them.")
	}
	if notice := o.Spec.ModeNotice; notice != "" {
		reason = ReasonModeFallback
		parts = append([]string{notice}, parts...)
	}
	if values := o.PolicyConflicts; len(values) > 0 {
		reason = ReasonPolicyConflict
		parts = append([]string{"Policies conflict: " + strings.Join(values, "; ") + "."}, parts...)
	}
	if notice := o.Spec.GateNotice; notice != "" {
		parts = append(parts, notice)
	}
	if s := o.Spec; s.ApprovalBy != "" {
		parts = append(parts, "An approver has to approve the delivery"+requiredBy(s)+".")
	}
	if parts == nil {
		parts = []string{"Everything that the spec names exists."}
	}
	return Condition{ConditionAccepted, True, reason, strings.Join(parts, " ")}
}

// workspaceReady keeps what the last attempt said: volumes outlive their pods.
func (s situation) workspaceReady() Condition {
	if !s.active() || s.m.Job.Run != RunAgent {
		if was := s.o.Memory.Condition(ConditionWorkspaceReady); was.Status == True {
			return was
		}
		return notYet(ConditionWorkspaceReady, "There is no workspace yet.")
	}
	r := s.report()
	if r != nil && r.WorkspaceReady {
		return Condition{ConditionWorkspaceReady, True, ReasonWorkspaceReady, "The workspace is ready."}
	}
	if p := s.problem(); p != nil {
		return Condition{ConditionWorkspaceReady, False, p.Reason, p.Message}
	}
	return Condition{ConditionWorkspaceReady, Unknown, ReasonPreparing, "Tidewaiter is creating the volumes, the pod and the workspace."}
}

func (s situation) agentRunning() Condition {
	r := s.report()
	stuck, _ := s.stuckPod()
	switch {
	case stuck != nil:
		return Condition{ConditionAgentRunning, Unknown, ReasonPodStuckTerminating, stuckMessage(*stuck)}
	case s.m.Attempt == 0:
		return notYet(ConditionAgentRunning, "No attempt has started.")
	case !s.active() || s.m.Job.Run != RunAgent:
		return Condition{ConditionAgentRunning, False, ReasonNotRunning, "No agent is running."}
	case r != nil && r.AgentRunning:
		return Condition{ConditionAgentRunning, True, ReasonRunning, "The agent's process is running."}
	case s.podProblem() != nil:
		p := s.podProblem()
		return Condition{ConditionAgentRunning, False, p.Reason, p.Message}
	case r != nil && r.WorkspaceReady && !r.AgentRan:
		return Condition{ConditionAgentRunning, False, ReasonPreparing, "The workspace is ready, and the agent is about to start."}
	case r != nil && r.WorkspaceReady:
		return Condition{ConditionAgentRunning, False, ReasonAgentExited, "The agent's process is not running: it ended, or the next task is about to start."}
	default:
		return Condition{ConditionAgentRunning, False, ReasonPreparing, "The agent starts when the workspace is ready."}
	}
}

// supervised says whether the watchdog's long poll is open. A short gap is not told: the watchdog supervises by itself.
func (s situation) supervised() Condition {
	r := s.report()
	switch {
	case s.m.Attempt == 0:
		return notYet(ConditionSupervised, "No attempt has started.")
	case !s.active():
		return Condition{ConditionSupervised, False, ReasonNotRunning, "There is nothing to supervise."}
	case r == nil || r.ConnectionChangedAt.IsZero():
		return notYet(ConditionSupervised, "The watchdog has not connected yet.")
	case r.Connected && len(r.Problems) > 0:
		return Condition{ConditionSupervised, True, ReasonSupervisionDegraded,
			"The watchdog is connected, and its verdicts remain reliable. It works around: " + strings.Join(r.Problems, "; ") + "."}
	case r.Connected:
		return Condition{ConditionSupervised, True, ReasonConnected, "The watchdog is connected."}
	}
	if _, ok := s.heartbeatDue(); ok {
		return s.o.Memory.Condition(ConditionSupervised)
	}
	return Condition{ConditionSupervised, Unknown, ReasonHeartbeatMissing, fmt.Sprintf(
		"The watchdog has not reported for %s. It continues to supervise by itself, and reports when it is back.", heartbeatLimit)}
}

// heartbeatDue is when a broken connection is said to be missing, while that is to come.
func (s situation) heartbeatDue() (time.Time, bool) {
	r := s.report()
	if !s.active() || r == nil || r.ConnectionChangedAt.IsZero() || r.Connected || s.o.Memory.Condition(ConditionSupervised).Type == "" {
		return time.Time{}, false
	}
	missing := r.ConnectionChangedAt.Add(heartbeatLimit)
	return missing, s.now.Before(missing)
}

// unacknowledged begins what is said of an agent that does not acknowledge what it broke.
const unacknowledged = " The watchdog asked the agent twice to acknowledge these critical violations, and the agent has not: "

// checkpointsValid says what the newest checkpoint has found, and what the agent does not acknowledge.
func checkpointsValid(o Observed) Condition {
	was := o.Memory.Condition(ConditionCheckpointsValid)
	if at := strings.LastIndex(was.Message, unacknowledged); at >= 0 { // what stays as it was has it once
		was.Message = was.Message[:at]
	}
	c := newestCheckpoint(o, was)
	if o.Run != nil && len(o.Run.Unacknowledged) > 0 {
		c.Message += unacknowledged + strings.Join(o.Run.Unacknowledged, ", ") + "."
	}
	return c
}

// newestCheckpoint says what that has found, or what was said before.
func newestCheckpoint(o Observed, was Condition) Condition {
	if o.Run == nil || o.Run.Checkpoint == nil {
		if was.Type != "" {
			return was
		}
		return notYet(ConditionCheckpointsValid, "There is no checkpoint yet.")
	}
	k := o.Run.Checkpoint
	switch {
	case k.Reason == protocol.ReasonCheckpointFailed:
		return Condition{ConditionCheckpointsValid, False, protocol.ReasonCheckpointFailed, strings.TrimSpace("Checkpoint " + k.Name + " failed. " + k.Message)}
	case k.Verdict == verdictInvalid:
		return Condition{ConditionCheckpointsValid, False, protocol.ReasonCheckpointInvalid, strings.TrimSpace("Checkpoint " + k.Name + " is invalid. " + k.Message)}
	case k.Verdict == verdictValid:
		return Condition{ConditionCheckpointsValid, True, ReasonCheckpointValid, "Checkpoint " + k.Name + " is valid."}
	case was.Status == True || was.Status == False:
		// Nothing changed since the checkpoint before.
		return was
	default:
		return notYet(ConditionCheckpointsValid, "Nothing has changed yet.")
	}
}

// planned says whether a model has divided the work; nothing for work that no model divides.
func (s situation) planned() []Condition {
	var p *ModelPlan
	if s.o.Run != nil {
		p = s.o.Run.Plan
	}
	switch {
	case s.o.Spec.Planning == "":
		return nil
	case p == nil && s.o.Run != nil && s.o.Run.AgentRan:
		return []Condition{{ConditionPlanned, Unknown, ReasonPlanning, "The work has begun without a plan. To have the rest of it planned, send a request replan."}}
	case p == nil:
		return []Condition{{ConditionPlanned, Unknown, ReasonPlanning, "A model divides the work before the first task starts."}}
	case p.Missing != "" && s.o.Spec.Planning == protocol.PlanningApprove:
		return []Condition{{ConditionPlanned, False, protocol.ReasonPlannerUnavailable, sentence("There is no plan: " + p.Missing)}}
	case p.Missing != "":
		return []Condition{{ConditionPlanned, False, protocol.ReasonPlannerUnavailable, sentence("There is no plan, and the work continues without one: " + p.Missing)}}
	}
	said := fmt.Sprintf("Milestones: %d. Tasks: %d. status.run.plan has the plan.", p.Milestones, p.Tasks)
	switch {
	case s.o.Spec.Planning != protocol.PlanningApprove:
		return []Condition{{ConditionPlanned, True, ReasonPlanProposed, said}}
	case p.Approved:
		return []Condition{{ConditionPlanned, True, ReasonPlanApproved, said}}
	}
	return []Condition{{ConditionPlanned, False, protocol.ReasonPlanApprovalRequired, said + " No agent starts before a user approves it."}}
}

// gatesPassed says whether every gate has passed; nothing for work without gates. Work that is ready has passed all of them, because nothing is
// approved or pushed before.
func (s situation) gatesPassed(at summary) []Condition {
	r := s.o.Run
	switch {
	case !s.o.Spec.Gated:
		return nil
	case s.proved(at):
		passed := Condition{ConditionGatesPassed, True, ReasonGatesPassed, "Every gate has passed on the work."}
		if f := s.final(); f != nil && notDone(f) != "" { // the gate of a task that was aborted has not
			passed.Message = "Every gate of the tasks that are done has passed, and so has every gate before the delivery. Gates of aborted tasks may not have passed on the work."
		}
		return []Condition{passed}
	case at.reason == protocol.ReasonGateFailed || at.reason == protocol.ReasonGateNotStarted:
		return []Condition{{ConditionGatesPassed, False, at.reason, at.message}}
	case r == nil || len(r.GateFailures) == 0:
		return []Condition{{ConditionGatesPassed, Unknown, ReasonGatesPending, "Not every gate has passed yet, and the newest results have no failure."}}
	}
	reason := protocol.ReasonGateFailed
	if r.GatesUnstarted {
		reason = protocol.ReasonGateNotStarted
	}
	return []Condition{{ConditionGatesPassed, False, reason, sentence("Gates have not passed: " + strings.Join(r.GateFailures, "; "))}}
}

// proved says that every gate has passed. A seal run before the delivery looks first which gates there are now.
func (s situation) proved(at summary) bool {
	switch at.phase {
	case Delivered:
		return true
	case ReadyToMerge:
		asks := at.reason == protocol.ReasonApprovalRequired || at.reason == protocol.ReasonApprovalMismatch
		return asks || len(s.o.Spec.Gates) == 0 || s.o.Memory.Condition(ConditionGatesPassed).Status == True
	case Blocked:
		return at.reason == protocol.ReasonPushConflict || at.reason == protocol.ReasonPushRejected || at.reason == protocol.ReasonPushFailed
	default:
		return false
	}
}

// withinBudget keeps what an attempt said that has ended: what was used stays used.
func (s situation) withinBudget() Condition {
	r := s.report()
	was := s.o.Memory.Condition(ConditionWithinBudget)
	switch {
	case r != nil && r.Fault != nil && r.Fault.Reason == protocol.ReasonBudgetExceeded:
		return Condition{ConditionWithinBudget, False, protocol.ReasonBudgetExceeded, sentence(r.Fault.Message)}
	case !s.o.Spec.Budget:
		return Condition{ConditionWithinBudget, True, ReasonNoBudget, "Neither a policy nor the Feature sets a budget."}
	case !s.active() && was.Reason == protocol.ReasonBudgetExceeded:
		return was
	case s.o.Run != nil && s.o.Run.BudgetWarning != "":
		return Condition{ConditionWithinBudget, True, ReasonBudgetNearlySpent, sentence(s.o.Run.BudgetWarning)}
	}
	return Condition{ConditionWithinBudget, True, ReasonWithinBudget, "The Feature is within its budgets."}
}

// agentStalled says whether the agent gets on. If no model answers it, that is not the agent's fault.
func (s situation) agentStalled() Condition {
	c := s.anomaly(ConditionAgentStalled, ReasonNoProgress)
	if c.Status == True && s.report().Unserved {
		c.Reason = protocol.ReasonProviderUnavailable
		c.Message += " The agent is not to blame, and the watchdog takes no measure against it: its model calls fail with errors that it did not cause."
	}
	return c
}

// anomaly of an agent at work. With the agent it is over.
func (s situation) anomaly(name, reason string) Condition {
	if r := s.report(); s.active() && r != nil && r.Anomalies[name] != "" {
		return Condition{name, True, reason, sentence(r.Anomalies[name])}
	}
	return Condition{name, False, ReasonNoAnomaly, "The watchdog has seen nothing out of the ordinary."}
}

func readyToMerge(at summary) Condition {
	switch at.phase {
	case ReadyToMerge, Delivered:
		return Condition{ConditionReadyToMerge, True, at.reason, "The work is done and valid."}
	case Blocked, Failed:
		return Condition{ConditionReadyToMerge, False, at.reason, "The work is not ready to merge: see condition Succeeded."}
	default:
		return notYet(ConditionReadyToMerge, "The work is not done.")
	}
}

func delivered(at summary) Condition {
	switch at.phase {
	case Delivered:
		return Condition{ConditionDelivered, True, at.reason, at.message}
	case ReadyToMerge, Blocked, Failed:
		return Condition{ConditionDelivered, False, at.reason, "See condition Succeeded."}
	default:
		return notYet(ConditionDelivered, "The work is not done.")
	}
}

func succeeded(at summary) Condition {
	var status Status
	switch at.phase {
	case Delivered:
		status = True
	case Blocked, Failed:
		status = False
	default:
		status = Unknown
	}
	return Condition{ConditionSucceeded, status, at.reason, at.message}
}

func reconciling(o Observed, at summary) Condition {
	if at.reconciling || o.Refusal != nil && !o.Refusal.ByUser {
		return Condition{ConditionReconciling, True, at.reason, at.message}
	}
	return Condition{ConditionReconciling, False, ReasonSettled, "Tidewaiter has accepted the spec; see phase and conditions."}
}

func stalled(o Observed, at summary) Condition {
	r := o.Refusal
	switch {
	case r != nil && r.ByUser && !at.stalled:
		return Condition{ConditionStalled, True, r.Reason, r.Message}
	case at.stalled:
		return Condition{ConditionStalled, True, at.reason, at.message}
	default:
		return Condition{ConditionStalled, False, ReasonSettled, "You need not do anything."}
	}
}
