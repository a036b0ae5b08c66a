// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// rollUp copies what the watchdog reports into the Feature's own status. Nothing that is known is ever forgotten: a new
// attempt reports from nothing.
func (c *course) rollUp() {
	c.m.ObservedGeneration = c.o.Spec.Generation
	c.m.Branch = c.o.Spec.Branch
	if c.o.Policy.Hash != "" {
		c.m.Policy = c.o.Policy
	}
	r := c.o.Run
	if r == nil {
		return
	}
	if r.Head != "" {
		c.m.Head = r.Head
	}
	if f := c.final(); f != nil && f.Head != "" {
		c.m.Head = f.Head
	}
	if r.Checkpoint != nil && r.Counts.Total >= c.m.Checkpoints.Total {
		c.m.LastCheckpoint = r.Checkpoint.Name
		c.m.Checkpoints = r.Counts
	}
	if r.LastValidCheckpoint != "" {
		c.m.LastValidCheckpoint = r.LastValidCheckpoint
	}
}

// describe derives everything that people and tools read from where the Feature stands.
func (c *course) describe() {
	c.at.message = bounded(c.at.message)
	c.m.Phase = c.at.phase
	switch {
	case c.at.phase != Delivered && c.at.phase != Failed:
		c.m.FinishedAt = time.Time{}
	case c.m.FinishedAt.IsZero():
		c.m.FinishedAt = c.now
	}
	c.m.Conditions = []Condition{
		c.accepted(),
		c.workspaceReady(),
		c.agentRunning(),
		c.supervised(),
		c.isolated(),
		c.locksHeld(),
		c.areasDisjoint(),
		c.checkpointsValid(),
		notActedOn(ConditionWithinBudget, "This version does not count what models cost."),
		c.readyToMerge(),
		c.deliveredCondition(),
		notActedOn(ConditionAgentStalled, notWatched),
		notActedOn(ConditionAgentLooping, notWatched),
		notActedOn(ConditionContextPressure, notWatched),
		notActedOn(ConditionCascadeFailure, notWatched),
		notActedOn(ConditionPaceEscalated, notWatched),
		c.succeeded(),
		c.reconciling(),
		c.stalled(),
	}
	for i := range c.m.Conditions {
		k := &c.m.Conditions[i]
		k.Message = bounded(k.Message)
		if !reasonFormat.MatchString(k.Reason) {
			k.Reason = ReasonInternalError
		}
	}
}

// reasonFormat is what the API server takes as a reason (metav1.Condition). Reasons of faults and final reports come
// from a pod: a strange one must not keep the status from being written.
var reasonFormat = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

const notWatched = "This version does not watch the conversation between agent and model."

func notActedOn(name, message string) Condition {
	return Condition{Type: name, Status: Unknown, Reason: ReasonNotActedOn, Message: message}
}

func notYet(name, message string) Condition {
	return Condition{Type: name, Status: Unknown, Reason: ReasonNotYetReported, Message: message}
}

func (c *course) accepted() Condition {
	if r := c.o.Refusal; r != nil {
		return Condition{ConditionAccepted, False, r.Reason, r.Message}
	}
	reason, parts := ReasonAccepted, []string(nil)
	if fields := c.o.Spec.NotActedOn; len(fields) > 0 {
		reason = ReasonPartlyActedOn
		parts = append(parts, "This version does not act on: "+strings.Join(fields, ", ")+".")
	}
	if notice := c.o.Spec.ModeNotice; notice != "" {
		reason = ReasonModeFallback
		parts = append([]string{notice}, parts...)
	}
	if values := c.o.PolicyConflicts; len(values) > 0 {
		reason = ReasonPolicyConflict
		parts = append([]string{"Policies of equal scope and priority disagree: " + strings.Join(values, "; ") + "."}, parts...)
	}
	if s := c.o.Spec; s.ApprovalBy != "" {
		parts = append(parts, "A person has to approve the delivery"+requiredBy(s)+".")
	}
	if parts == nil {
		parts = []string{"Everything that the spec names exists."}
	}
	return Condition{ConditionAccepted, True, reason, strings.Join(parts, " ")}
}

// workspaceReady keeps what the last attempt said: volumes outlive their pods.
func (c *course) workspaceReady() Condition {
	if !c.active() || c.m.Job.Run == RunSeal {
		if was := c.o.Memory.Condition(ConditionWorkspaceReady); was.Status == True {
			return was
		}
		return notYet(ConditionWorkspaceReady, "No workspace is laid out.")
	}
	r := c.report()
	if r != nil && r.WorkspaceReady {
		return Condition{ConditionWorkspaceReady, True, ReasonWorkspaceReady, "The workspace is laid out."}
	}
	if p := c.problem(); p != nil {
		return Condition{ConditionWorkspaceReady, False, p.Reason, p.Message}
	}
	return Condition{ConditionWorkspaceReady, Unknown, ReasonPreparing, "Volumes, pod and workspace are being created."}
}

func (c *course) agentRunning() Condition {
	r := c.report()
	switch {
	case c.stuck != nil:
		return Condition{ConditionAgentRunning, Unknown, ReasonPodStuckTerminating, stuckMessage(*c.stuck)}
	case c.m.Attempt == 0:
		return notYet(ConditionAgentRunning, "No attempt has started.")
	case !c.active() || c.m.Job.Run == RunSeal:
		return Condition{ConditionAgentRunning, False, ReasonNotRunning, "No agent is running."}
	case r != nil && r.AgentRunning:
		return Condition{ConditionAgentRunning, True, ReasonRunning, "The agent's process is running."}
	case c.podProblem() != nil:
		p := c.podProblem()
		return Condition{ConditionAgentRunning, False, p.Reason, p.Message}
	case r != nil && r.WorkspaceReady:
		return Condition{ConditionAgentRunning, False, ReasonAgentExited, "The agent's process is not running: it ended, or the next task is about to start."}
	default:
		return Condition{ConditionAgentRunning, False, ReasonPreparing, "The agent starts when the workspace is laid out."}
	}
}

// supervised says whether the watchdog's long poll is open. A short gap is not told: the watchdog supervises by itself.
func (c *course) supervised() Condition {
	r := c.report()
	switch {
	case c.m.Attempt == 0:
		return notYet(ConditionSupervised, "No attempt has started.")
	case !c.active():
		return Condition{ConditionSupervised, False, ReasonNotRunning, "There is nothing to supervise."}
	case r == nil || r.ConnectionChangedAt.IsZero():
		return notYet(ConditionSupervised, "The watchdog has not connected yet.")
	case r.Connected && len(r.Problems) > 0:
		return Condition{ConditionSupervised, True, ReasonSupervisionDegraded,
			"The watchdog is connected and judges as ever. It works around: " + strings.Join(r.Problems, "; ") + "."}
	case r.Connected:
		return Condition{ConditionSupervised, True, ReasonConnected, "The watchdog is connected."}
	}
	missing := r.ConnectionChangedAt.Add(heartbeatLimit)
	if was := c.o.Memory.Condition(ConditionSupervised); c.now.Before(missing) && was.Type != "" {
		c.wake(missing)
		return was
	}
	return Condition{ConditionSupervised, Unknown, ReasonHeartbeatMissing, fmt.Sprintf(
		"The watchdog has not reported for %s. It goes on supervising by itself and reports when it is back.", heartbeatLimit)}
}

func (c *course) checkpointsValid() Condition {
	was := c.o.Memory.Condition(ConditionCheckpointsValid)
	if c.o.Run == nil || c.o.Run.Checkpoint == nil {
		if was.Type != "" {
			return was
		}
		return notYet(ConditionCheckpointsValid, "There is no checkpoint yet.")
	}
	k := c.o.Run.Checkpoint
	switch {
	case k.Reason == contract.ReasonCheckpointFailed:
		return Condition{ConditionCheckpointsValid, False, contract.ReasonCheckpointFailed, strings.TrimSpace("Checkpoint " + k.Name + " failed. " + k.Message)}
	case k.Verdict == verdictInvalid:
		return Condition{ConditionCheckpointsValid, False, contract.ReasonCheckpointInvalid, strings.TrimSpace("Checkpoint " + k.Name + " is invalid. " + k.Message)}
	case k.Verdict == verdictValid:
		return Condition{ConditionCheckpointsValid, True, ReasonCheckpointValid, "Checkpoint " + k.Name + " is valid."}
	case was.Status == True || was.Status == False:
		// Nothing changed since the checkpoint before.
		return was
	default:
		return notYet(ConditionCheckpointsValid, "Nothing has changed yet.")
	}
}

func (c *course) readyToMerge() Condition {
	switch c.at.phase {
	case ReadyToMerge, Delivered:
		return Condition{ConditionReadyToMerge, True, c.at.reason, "The work is done and valid."}
	case Blocked, Failed:
		return Condition{ConditionReadyToMerge, False, c.at.reason, "The work is not ready to merge: see condition Succeeded."}
	default:
		return notYet(ConditionReadyToMerge, "The work is not done.")
	}
}

func (c *course) deliveredCondition() Condition {
	switch c.at.phase {
	case Delivered:
		return Condition{ConditionDelivered, True, c.at.reason, c.at.message}
	case ReadyToMerge, Blocked, Failed:
		return Condition{ConditionDelivered, False, c.at.reason, "See condition Succeeded."}
	default:
		return notYet(ConditionDelivered, "The work is not done.")
	}
}

func (c *course) succeeded() Condition {
	var status Status
	switch c.at.phase {
	case Delivered:
		status = True
	case Blocked, Failed:
		status = False
	default:
		status = Unknown
	}
	return Condition{ConditionSucceeded, status, c.at.reason, c.at.message}
}

func (c *course) reconciling() Condition {
	if c.at.reconciling || c.o.Refusal != nil && !c.o.Refusal.ByUser {
		return Condition{ConditionReconciling, True, c.at.reason, c.at.message}
	}
	return Condition{ConditionReconciling, False, ReasonSettled, "The spec is accepted; see phase and conditions."}
}

func (c *course) stalled() Condition {
	r := c.o.Refusal
	switch {
	case r != nil && r.ByUser && !c.at.stalled:
		return Condition{ConditionStalled, True, r.Reason, r.Message}
	case c.at.stalled:
		return Condition{ConditionStalled, True, c.at.reason, c.at.message}
	default:
		return Condition{ConditionStalled, False, ReasonSettled, "No action is required."}
	}
}
