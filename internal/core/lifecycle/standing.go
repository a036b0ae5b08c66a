// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// maxMessage bounds a message of a condition, in bytes; the API allows 32768, people read less.
const maxMessage = 2000

// runningStanding is where a Feature stands whose attempt goes on.
func (c *course) runningStanding() standing {
	if c.m.Job.Run == RunSeal {
		return c.sealStanding()
	}
	at := standing{phase: Preparing, reason: ReasonPreparing, message: fmt.Sprintf("Attempt %d: volumes, pod and workspace are being created.", c.m.Attempt)}
	r := c.report()
	if r != nil && r.WorkspaceReady {
		at = standing{phase: Running, reason: ReasonRunning, message: c.runningMessage(r)}
	}
	if p := c.problem(); p != nil {
		at.reason, at.message = p.Reason, p.Message
		switch {
		case c.podProblem() != nil:
			at.phase = Preparing
		case p.Reason == contract.ReasonBreakerOpen:
			at.phase, at.stalled = Blocked, true
			at.message = sentence(p.Message) + c.breakerHint()
		}
	} else if r != nil && r.Question != "" {
		at = standing{phase: AwaitingInput, reason: ReasonAwaitingInput, message: fmt.Sprintf(
			"The agent asks: %s Answer with spec.answers: [{question: %s, text: …}].", sentence(r.Question), r.QuestionID)}
	}
	return at
}

func (c *course) runningMessage(r *Run) string {
	if r.Task == "" {
		return fmt.Sprintf("Attempt %d: the agent works.", c.m.Attempt)
	}
	return fmt.Sprintf("Attempt %d: the agent works on task %s.", c.m.Attempt, r.Task)
}

func (c *course) sealStanding() standing {
	at := standing{phase: ReadyToMerge, reason: ReasonDelivering, message: fmt.Sprintf("Branch %s is being pushed.", c.m.Branch)}
	if p := c.problem(); p != nil {
		at.reason, at.message = p.Reason, p.Message
	}
	return at
}

// problem is what keeps the current attempt from going on; nil when nothing does. What is nearest to the cause comes
// first: without a volume there is no pod, without a pod no report.
func (c *course) problem() *Problem {
	if job := c.job(); job != nil && job.Rejected != "" && c.pod() == nil {
		return &Problem{Reason: ReasonPodRejected, Message: job.Rejected}
	}
	if p := c.pod(); c.o.Volumes != nil && (p == nil || !p.Started) {
		return c.o.Volumes
	}
	if p := c.podProblem(); p != nil {
		return p
	}
	if r := c.report(); r != nil && r.Fault != nil {
		return r.Fault
	}
	return nil
}

// podProblem keeps the current pod's containers from running; nil when nothing does.
func (c *course) podProblem() *Problem {
	if p := c.pod(); p != nil {
		return p.Problem
	}
	return nil
}

func refusedStanding(r *Refusal) standing {
	phase := Pending
	if r.ByUser {
		phase = Blocked
	}
	return standing{phase: phase, reason: r.Reason, message: r.Message, stalled: r.ByUser, reconciling: !r.ByUser}
}

func (c *course) deliveredStanding() standing {
	f := c.final()
	if f == nil {
		was := c.o.Memory.Condition(ConditionSucceeded)
		return standing{phase: Delivered, reason: cmp.Or(was.Reason, contract.ReasonDelivered), message: was.Message}
	}
	message := f.Message
	if message == "" {
		message = fmt.Sprintf("Branch %s is at commit %s.", c.m.Branch, cmp.Or(f.Head, c.m.Head))
	}
	return standing{phase: Delivered, reason: cmp.Or(f.Reason, contract.ReasonDelivered), message: message}
}

func (c *course) deadlineStanding() standing {
	return standing{phase: Failed, reason: contract.ReasonDeadlineExceeded, stalled: true, message: fmt.Sprintf(
		"The running time is over spec.deadline (%s). The work is kept: raise the deadline and start the agent again with %s.", c.o.Spec.Deadline, c.retryHint())}
}

func (c *course) agentFailedStanding(f *Final) standing {
	return standing{phase: Failed, reason: cmp.Or(f.Reason, contract.ReasonAgentFailed), stalled: true, message: fmt.Sprintf(
		"%s It failed %s and spec.retries is %d. The work is kept: start the agent again with %s.",
		sentence(f.Message), times(c.m.Failures), c.o.Spec.Retries, c.retryHint())}
}

// blockedStanding says what is wrong and each way on.
func (c *course) blockedStanding(f *Final) standing {
	reason := cmp.Or(f.Reason, ReasonInternalError)
	message := sentence(f.Message)
	switch reason {
	case contract.ReasonCheckpointInvalid:
		message += c.invalidHint()
	case contract.ReasonBreakerOpen:
		message += c.breakerHint()
	case contract.ReasonHistoryInvalid:
		message += fmt.Sprintf(" Nothing was pushed and the work is kept. Let delivery.history of the SupervisorPolicy be Squash to deliver one commit, or change the rule; then deliver with %s.", c.retryHint())
	case contract.ReasonPushConflict:
		message += fmt.Sprintf(" Nothing was overwritten and the work is kept. Remove or rename branch %s on the server, then push again with %s.", c.m.Branch, c.retryHint())
	case contract.ReasonPushFailed:
		message += fmt.Sprintf(" The work is kept. Fix the cause, then push again with %s.", c.retryHint())
	default:
		message += fmt.Sprintf(" The work is kept. Fix the cause, then start the agent again with %s.", c.retryHint())
	}
	return standing{phase: Blocked, reason: reason, message: strings.TrimSpace(message), stalled: true}
}

func (c *course) breakerHint() string {
	return fmt.Sprintf(" Remove what keeps checkpoints from being taken, then go on with spec.requests: [{id: %s, resetBreaker: {}}].", c.freeID())
}

func (c *course) invalidHint() string {
	var b strings.Builder
	if c.m.LastCheckpoint != "" {
		fmt.Fprintf(&b, " Nothing of checkpoint %s that breaks a rule is delivered; all of it is kept.", c.m.LastCheckpoint)
	}
	b.WriteString(" If the change is wanted, widen spec.plan.allowedAreas or the SupervisorPolicy that forbids it.")
	from := "the base revision"
	if c.m.LastValidCheckpoint != "" {
		from = "checkpoint " + c.m.LastValidCheckpoint
	}
	fmt.Fprintf(&b, " Then, or to let the agent try again from %s, ask with %s.", from, c.retryHint())
	return b.String()
}

func (c *course) retryHint() string {
	return fmt.Sprintf("spec.requests: [{id: %s, retry: {}}]", c.freeID())
}

// sentence ends a text that comes from elsewhere like a sentence, so that another one can follow.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".?!") {
		return text
	}
	return text + "."
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// bounded cuts a message to what a condition takes.
func bounded(message string) string { return clip.Bytes(message, maxMessage) }
