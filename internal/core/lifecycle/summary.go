// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// maxMessage bounds a message of a condition, in bytes; the API allows 32768, people read less.
const maxMessage = 2000

// summary is where a Feature stands, in one phase, reason and message.
type summary struct {
	phase   Phase
	reason  string
	message string
	// stalled is true when only a user can help.
	stalled bool
	// reconciling is true while the controller still works on the spec itself. A Feature that is accepted is
	// reconciled: the rest is its work, which takes hours and which no GitOps sync shall wait for.
	reconciling bool
}

// runningSummary is where a Feature stands whose attempt continues.
func (s situation) runningSummary() summary {
	if s.m.Job.Run == RunSeal {
		return s.sealSummary()
	}
	if s.m.Job.Run == RunGate {
		return s.gateSummary()
	}
	at := summary{phase: Preparing, reason: ReasonPreparing, message: fmt.Sprintf("Attempt %d: Tidewaiter is creating the volumes, the pod and the workspace.", s.m.Attempt)}
	r := s.report()
	if r != nil && r.WorkspaceReady {
		at = summary{phase: Running, reason: ReasonRunning, message: s.runningMessage(r)}
	}
	if p := s.problem(); p != nil {
		at.reason, at.message = p.Reason, p.Message
		switch {
		case s.podProblem() != nil:
			at.phase = Preparing
		case p.Reason == protocol.ReasonBreakerOpen:
			at.phase, at.stalled = Blocked, true
			at.message = sentence(p.Message) + s.breakerHint()
		case p.Reason == protocol.ReasonBudgetExceeded:
			at.phase, at.stalled = Blocked, true
			at.message = sentence(p.Message) + " The watchdog has frozen the agent. The agent continues by itself when there is more budget; or end it with spec.suspend."
		case p.Reason == protocol.ReasonAgentHeld:
			at.phase, at.stalled = Blocked, true
			at.message = sentence(p.Message) + fmt.Sprintf(" Look at what it does. Then let it continue with spec.requests: [{id: %s, release: {}}], or end it with spec.suspend.", s.freeID())
		}
	} else if r != nil && r.Question != "" && !r.Guess {
		at = summary{phase: AwaitingInput, reason: protocol.ReasonAwaitingInput, message: r.asks()}
	}
	return at
}

// asks is the question of an agent, and how to answer it.
func (r *Run) asks() string {
	return fmt.Sprintf("The agent asks: %s Answer with spec.answers: [{question: %s, text: …}].", sentence(r.Question), r.QuestionID)
}

func (s situation) runningMessage(r *Run) string {
	message := fmt.Sprintf("Attempt %d: the agent works on task %s.", s.m.Attempt, r.Task)
	if r.Task == "" {
		message = fmt.Sprintf("Attempt %d: the agent works.", s.m.Attempt)
	}
	if r.Question != "" {
		message += fmt.Sprintf(" It continues with its best guess about what it asked: %s It reads an answer that comes later by spec.answers: [{question: %s, text: …}].", sentence(r.Question), r.QuestionID)
	}
	return message
}

func (s situation) sealSummary() summary {
	at := summary{phase: ReadyToMerge, reason: ReasonDelivering, message: fmt.Sprintf("The watchdog is pushing branch %s.", s.m.Branch)}
	switch task := s.gating(); {
	case task != "":
		at = summary{phase: Running, reason: protocol.ReasonProving, message: fmt.Sprintf("Attempt %d: the watchdog looks which gate of task %s must run.", s.m.Attempt, task)}
	case len(s.o.Spec.Gates) > 0:
		at.message = fmt.Sprintf("The watchdog looks whether each gate before the delivery has passed, and then pushes branch %s.", s.m.Branch)
	}
	if p := s.problem(); p != nil {
		at.reason, at.message = p.Reason, p.Message
	}
	return at
}

func (s situation) gateSummary() summary {
	at := summary{phase: Running, reason: protocol.ReasonProving, message: fmt.Sprintf("Attempt %d: a gate %s runs on a fresh checkout of the work.", s.m.Attempt, s.proves())}
	if p := s.problem(); p != nil {
		at.reason, at.message = p.Reason, p.Message
	}
	return at
}

func refusedSummary(r *Refusal) summary {
	phase := Pending
	if r.ByUser {
		phase = Blocked
	}
	return summary{phase: phase, reason: r.Reason, message: r.Message, stalled: r.ByUser, reconciling: !r.ByUser}
}

func (s situation) deliveredSummary() summary {
	f := s.final()
	if f == nil {
		was := s.o.Memory.Condition(ConditionSucceeded)
		return summary{phase: Delivered, reason: cmp.Or(was.Reason, protocol.ReasonDelivered), message: was.Message}
	}
	message := f.Message
	if message == "" {
		message = fmt.Sprintf("Branch %s is at commit %s.", s.m.Branch, cmp.Or(f.Head, s.m.Head))
	}
	return summary{phase: Delivered, reason: cmp.Or(f.Reason, protocol.ReasonDelivered), message: message}
}

func (s situation) deadlineSummary() summary {
	over := fmt.Sprintf("The running time is over spec.activeDeadline (%s). Tidewaiter keeps the work: raise the deadline and start", s.o.Spec.Deadline)
	if !s.deadlineOver() { // a user has raised it since
		over = "The running time was over spec.activeDeadline. Tidewaiter keeps the work: start"
		if s.o.Spec.Deadline > 0 {
			over = fmt.Sprintf("The running time was over spec.activeDeadline, which is %s now. Tidewaiter keeps the work: start", s.o.Spec.Deadline)
		}
	}
	return summary{phase: Failed, reason: protocol.ReasonDeadlineExceeded, stalled: true, message: over + fmt.Sprintf(" the agent again with %s.", s.retryHint())}
}

func (s situation) agentFailedSummary(f *Final) summary {
	return summary{phase: Failed, reason: cmp.Or(f.Reason, protocol.ReasonAgentFailed), stalled: true, message: fmt.Sprintf(
		"%s It failed %s and spec.maxRetries is %d. Tidewaiter keeps the work: start the agent again with %s.",
		sentence(f.Message), times(s.m.Failures), s.o.Spec.Retries, s.retryHint())}
}

// podEndedSummary is for an agent whose pods end by themselves.
func (s situation) podEndedSummary() summary {
	return summary{phase: Failed, reason: ReasonPodEnded, stalled: true, message: fmt.Sprintf(
		"Attempt %d: the pod ended by itself before its final report, as did %d before it: neither a user nor the cluster asked it to. From the %dth on each spends a retry, and spec.maxRetries is %d. "+
			"See the Event PodLost for how it ended; mostly the agent used more memory or disk than spec.agent.resources and the volumes allow. Tidewaiter keeps the work: start the agent again with %s.",
		s.m.Attempt, s.m.Unordered-1, freeEnds+1, s.o.Spec.Retries, s.retryHint())}
}

// unansweredSummary is for a gate that has no result again and again.
func (s situation) unansweredSummary() summary {
	return summary{phase: Failed, reason: ReasonPodEnded, stalled: true, message: fmt.Sprintf(
		"Attempt %d ran a gate %s, and the gate has no result. %d pods before it also had none, or ended by themselves. From the %dth on each spends a retry, and spec.maxRetries is %d. "+
			"The log of the watchdog says why: mostly the gate used more memory or disk than spec.agent.resources and spec.workspace.size allow. Tidewaiter keeps the work: continue with %s.",
		s.m.Attempt, s.proves(), s.m.Unordered-1, freeEnds+1, s.o.Spec.Retries, s.retryHint())}
}

// restartSummary is for an agent whose pod was lost, and that a user starts again.
func (s situation) restartSummary() summary {
	return summary{phase: Blocked, reason: ReasonAwaitingRestart, stalled: true, message: fmt.Sprintf(
		"Attempt %d ended without a final report, and supervision.restartMode of the policy is Ask. Tidewaiter keeps the work up to the last valid checkpoint: look at it, then start the agent again with %s.",
		s.m.Attempt, s.retryHint())}
}

// blockedSummary says what is wrong and each way on.
func (s situation) blockedSummary(f *Final) summary {
	reason := cmp.Or(f.Reason, ReasonInternalError)
	message := sentence(f.Message)
	switch reason {
	case protocol.ReasonCheckpointInvalid:
		message += s.invalidHint()
	case protocol.ReasonBreakerOpen:
		message += s.breakerHint()
	case protocol.ReasonHistoryInvalid:
		message += fmt.Sprintf(" The watchdog pushed nothing and keeps the work. Set delivery.history of the SupervisorPolicy to Squash to deliver one commit, or change the rule. Then deliver with %s.", s.retryHint())
	case protocol.ReasonPushConflict:
		message += fmt.Sprintf(" The watchdog overwrote nothing and keeps the work. Remove or rename branch %s on the server, then push again with %s.", s.m.Branch, s.retryHint())
	case protocol.ReasonPushFailed, protocol.ReasonPushRejected, protocol.ReasonAuthenticationFailed, protocol.ReasonRepositoryNotAllowed, protocol.ReasonBranchNotAllowed:
		message += fmt.Sprintf(" Tidewaiter keeps the work. Fix the cause, then push again with %s.", s.retryHint())
	case protocol.ReasonObjectFormatUnsupported, protocol.ReasonRepositoryDamaged, protocol.ReasonPreparationFailed:
		message += fmt.Sprintf(" The attempt ended before its agent started. Fix the cause, then start the agent with %s.", s.retryHint())
	default:
		message += fmt.Sprintf(" Tidewaiter keeps the work. Fix the cause, then start the agent again with %s.", s.retryHint())
	}
	return summary{phase: Blocked, reason: reason, message: strings.TrimSpace(message), stalled: true}
}

func (s situation) breakerHint() string {
	return fmt.Sprintf(" Remove the cause, then let the agent continue with spec.requests: [{id: %s, resetBreaker: {}}].", s.freeID())
}

func (s situation) invalidHint() string {
	var b strings.Builder
	if s.m.LastCheckpoint != "" {
		fmt.Fprintf(&b, " The watchdog delivers nothing of checkpoint %s that breaks a rule, and keeps all of it.", s.m.LastCheckpoint)
	}
	b.WriteString(" If you want the change, widen spec.plan.allowedAreas or the SupervisorPolicy that forbids it.")
	from := "the base revision"
	if s.m.LastValidCheckpoint != "" {
		from = "checkpoint " + s.m.LastValidCheckpoint
	}
	fmt.Fprintf(&b, " Then, or to let the agent try again from %s, ask with %s.", from, s.retryHint())
	return b.String()
}

// retryHint is a request to retry that people can copy.
func (s situation) retryHint() string {
	return fmt.Sprintf("spec.requests: [{id: %s, retry: {}}]", s.freeID())
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
func bounded(message string) string { return plain.CutBytes(message, maxMessage) }
