// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// nextRun is the run that a Feature without a current attempt wants, were nothing in the way.
type nextRun struct {
	// run is empty for none.
	run RunKind
	// gate of a gate run.
	gate Gate
	// at is where the Feature stands with it.
	at summary
	// granted says that it rests on requests to retry. refusal answers them otherwise; empty where they stay open.
	granted bool
	refusal string
	// lost says that a lock was taken away from the last attempt; unsure that only live facts can tell.
	lost, unsure bool
	// again is when another run may be wanted without any event; zero for never.
	again time.Time
}

// wantedRun says which run should come next.
func (s situation) wantedRun() nextRun {
	if s.m.Attempt == 0 || s.m.Job == nil {
		return nextRun{run: RunAgent, at: summary{phase: Pending, reason: ReasonPreparing, message: "The first attempt is about to start."}}
	}
	f := s.final()
	switch {
	case f == nil && s.m.Job.Errand:
		return nextRun{run: RunSeal, at: s.remembered()}
	case s.m.Job.Errand && s.o.Spec.AskRestart && s.awaitsRestart() && !s.deadlineOver():
		// What an errand ends with says nothing of the agent whose pod was lost.
		return s.ifAsked(nextRun{run: RunAgent, at: s.remembered()})
	case f != nil && f.Outcome == protocol.OutcomeReadyToMerge:
		return s.afterReady(f)
	case s.m.Phase == Failed:
		return s.afterFailure()
	case f == nil:
		return s.afterLoss()
	}
	switch f.Outcome {
	case protocol.OutcomeAgentFailed:
		if failures.Excuses(f.Failure) && s.m.Unserved != nil {
			return s.afterUnserved(f)
		}
		return s.afterAgentFailed(f)
	case protocol.OutcomeParked:
		return s.afterParked()
	case protocol.OutcomePlanProposed:
		return s.afterProposed()
	case protocol.OutcomeSwitched:
		return s.agentUnlessOver(nextRun{granted: s.retryNow(), at: summary{phase: Preparing, reason: protocol.ReasonModeSwitched, message: fmt.Sprintf(
			"%s Attempt %d is about to start; it counts as no retry.", sentence(f.Message), s.m.Attempt+1)}})
	case protocol.OutcomeProving:
		return s.afterProving(f)
	case protocol.OutcomeUnfinished:
		return s.agentUnlessOver(nextRun{granted: s.retryNow(), at: summary{phase: Preparing, reason: protocol.ReasonCorrecting, message: fmt.Sprintf(
			"%s Attempt %d is about to start; it counts as no retry.", sentence(f.Message), s.m.Attempt+1)}})
	case protocol.OutcomeSuspended, protocol.OutcomeStopped:
		return s.agentUnlessOver(nextRun{granted: s.retryNow(), at: summary{phase: Preparing, reason: ReasonPreparing, message: fmt.Sprintf(
			"Attempt %d is about to start: the work continues.", s.m.Attempt+1)}})
	default:
		// Blocked, and anything that a newer watchdog may say: a user decides.
		return s.afterBlocked(f)
	}
}

// wantedUnderLocks is wantedRun for a Feature that lost a lock, or could not have one: a user decides how it continues.
func (s situation) wantedUnderLocks() nextRun {
	n := s.wantedRun()
	if n.at.phase == Failed {
		return n
	}
	lost, known := s.lockLost()
	n.lost, n.unsure = lost, !known
	switch {
	case lost:
		n.at = s.lockLostSummary()
	case s.locksWere(ReasonLockNotFree):
		n.at = s.lockNotFreeSummary(n.granted)
	default:
		return n
	}
	n.run = cmp.Or(n.run, RunAgent)
	return s.ifAsked(n)
}

// raiseFirst answers a retry for which there is no running time left.
const raiseFirst = "The running time is over spec.activeDeadline: raise it first, then ask again with a new id."

// agentUnlessOver wants an agent, if there is running time left.
func (s situation) agentUnlessOver(n nextRun) nextRun {
	if s.deadlineOver() {
		return nextRun{at: s.deadlineSummary(), refusal: raiseFirst}
	}
	n.run = RunAgent
	return n
}

// retryInTime reports whether a user asks for the next agent, and there is running time left for it.
func (s situation) retryInTime() bool { return !s.deadlineOver() && len(s.openRetries()) > 0 }

// retryNow is retryInTime where the agent is about to start: one that is suspended waits for no retry.
func (s situation) retryNow() bool { return !s.o.Spec.suspended() && s.retryInTime() }

// ifAsked wants a run if a user asked for it, and otherwise leaves the Feature where it stands.
func (s situation) ifAsked(n nextRun) nextRun {
	n.granted = n.refusal == "" && len(s.openRetries()) > 0
	switch {
	case !n.granted:
		n.run = ""
	case n.run == RunSeal:
		n.at = summary{phase: ReadyToMerge, reason: ReasonDelivering, message: "The watchdog is about to push the branch again, as requested."}
	default:
		n.at = summary{phase: Preparing, reason: ReasonPreparing, message: fmt.Sprintf("Attempt %d is about to start, as requested.", s.m.Attempt+1)}
	}
	return n
}

// awaitsRestart reports whether the Feature waited for a user to start its agent when the status was written last.
func (s situation) awaitsRestart() bool {
	return s.o.Memory.Condition(ConditionSucceeded).Reason == ReasonAwaitingRestart
}

func (s situation) afterLoss() nextRun {
	seal := s.m.Job.Run == RunSeal
	n := nextRun{granted: (seal || !s.deadlineOver()) && len(s.openRetries()) > 0}
	n.at = summary{phase: Preparing, reason: ReasonPodLost, message: fmt.Sprintf(
		"Attempt %d ended without a final report; attempt %d follows from the last valid checkpoint%s", s.m.Attempt, s.m.Attempt+1, s.follows(n.granted))}
	if seal {
		n.run, n.at.phase = RunSeal, ReadyToMerge
		return n
	}
	if s.endsTooOften() {
		return s.ifAsked(nextRun{run: RunAgent, at: s.podEndedSummary()})
	}
	if s.m.Job.Run == RunGate { // its agent is done: what is known of the gates says what follows
		n.run, n.granted = RunSeal, len(s.openRetries()) > 0
		n.at.message = fmt.Sprintf("Attempt %d ended without a final report, and ran a gate %s; attempt %d follows%s", s.m.Attempt, s.proves(), s.m.Attempt+1, s.follows(n.granted))
		return n
	}
	if s.o.Spec.AskRestart && !s.deadlineOver() && s.m.Job.StopRequestedAt.IsZero() { // nothing was lost if the agent had orders to end
		return s.ifAsked(nextRun{run: RunAgent, at: s.restartSummary()})
	}
	return s.agentUnlessOver(n)
}

// endsTooOften reports whether pods that ended by themselves, or without the result of their gates, have spent all retries: a user decides then.
func (s situation) endsTooOften() bool {
	return s.m.Unordered > freeEnds && s.m.Failures > s.o.Spec.Retries
}

func (s situation) afterAgentFailed(f *Final) nextRun {
	if s.retriesSpent(f) {
		return s.ifAsked(nextRun{run: RunAgent, at: s.agentFailedSummary(f)})
	}
	n := nextRun{granted: s.retryInTime()}
	failed := s.failures(f)
	message := fmt.Sprintf("Attempt %d: %s Retry %d of %d follows%s", s.m.Attempt, sentence(f.Message), failed, s.o.Spec.Retries, s.follows(n.granted))
	if failed > s.o.Spec.Retries { // a user has lowered them since
		message = fmt.Sprintf("Attempt %d: %s It failed %s in its task and spec.maxRetries is %d: if it fails again, the task is aborted. Attempt %d follows%s",
			s.m.Attempt, sentence(f.Message), times(failed), s.o.Spec.Retries, s.m.Attempt+1, s.follows(n.granted))
	}
	n.at = summary{phase: Preparing, reason: ReasonRetrying, message: message}
	return s.agentUnlessOver(n)
}

// failures of the agent that count for the retries: in its task if the watchdog aborts it after them, in the Feature otherwise.
func (s situation) failures(f *Final) int {
	if f.TaskFailures > 0 {
		return f.TaskFailures
	}
	return s.m.Failures
}

// retriesSpent says whether only a user starts an agent again that has failed. Failures in tasks that the watchdog aborts are among those of the Feature
// only if they fail it.
func (s situation) retriesSpent(f *Final) bool {
	if f.TaskFailures > 0 {
		tooMany := s.m.TaskFailures > s.o.Spec.maxTaskFailures()
		return tooMany || f.TaskFailures > s.o.Spec.Retries && s.m.Failures >= f.TaskFailures
	}
	return s.m.Failures > s.o.Spec.Retries
}

// afterFailure keeps a Feature that failed where it is until a user asks for more: neither a raised deadline nor
// more retries start anything by themselves.
func (s situation) afterFailure() nextRun {
	at := s.deadlineSummary()
	was := s.o.Memory.Condition(ConditionSucceeded).Reason
	switch f := s.final(); {
	case f != nil && f.Outcome == protocol.OutcomeAgentFailed && was != protocol.ReasonDeadlineExceeded:
		at = s.agentFailedSummary(f)
	case f == nil && was == ReasonPodEnded:
		at = s.podEndedSummary()
	case was == ReasonPodEnded: // a gate had no result, or an errand has repeated an older report
		at = s.remembered()
	}
	if s.deadlineOver() {
		return nextRun{at: at, refusal: raiseFirst}
	}
	return s.ifAsked(nextRun{run: RunAgent, at: at})
}

// deliveryReasons are the reasons of work that is done and could not be delivered: another delivery needs no agent.
var deliveryReasons = []string{
	protocol.ReasonPushConflict, protocol.ReasonPushRejected, protocol.ReasonPushFailed, protocol.ReasonAuthenticationFailed, protocol.ReasonHistoryInvalid,
	protocol.ReasonRepositoryNotAllowed, protocol.ReasonBranchNotAllowed,
}

func (s situation) afterBlocked(f *Final) nextRun {
	run := RunAgent
	if slices.Contains(deliveryReasons, f.Reason) && !s.o.Spec.Ephemeral {
		run = RunSeal
	}
	if run == RunAgent && s.deadlineOver() {
		return nextRun{at: s.blockedSummary(f), refusal: raiseFirst}
	}
	return s.ifAsked(nextRun{run: run, at: s.blockedSummary(f)})
}

// proves says in words what a gate is for that runs in a pod of its own.
func (s situation) proves() string {
	if task := s.gating(); task != "" {
		return "of task " + task
	}
	return "before the delivery"
}

// gating is the name of the task whose gates are to pass, as far as reports say; empty if there is none.
func (s situation) gating() string {
	if s.o.Run == nil {
		return ""
	}
	return s.o.Run.Gating
}

// afterProving runs the gate that the report names. If this gate of a task is not listed any more, or the delivery requires no gate any more, a seal
// run reports what is next, or delivers.
func (s situation) afterProving(f *Final) nextRun {
	n := nextRun{run: RunGate, granted: len(s.openRetries()) > 0}
	n.at = summary{phase: Preparing, reason: protocol.ReasonProving, message: fmt.Sprintf("%s Attempt %d is about to start.", sentence(f.Message), s.m.Attempt+1)}
	if pause(s, n.granted) > 0 {
		n.at.message = fmt.Sprintf("%s Attempt %d follows%s", sentence(f.Message), s.m.Attempt+1, s.follows(n.granted))
	}
	gate, is := s.o.Spec.gate(f)
	switch {
	case s.o.Spec.Ephemeral:
		return nextRun{at: summary{phase: Blocked, reason: ReasonVolumesRequired, stalled: true, message: fmt.Sprintf(
			"%s With spec.workspace.ephemeral the work went with its pod: create the Feature again without that field.", sentence(f.Message))}}
	case s.unanswered(f) && s.endsTooOften():
		return s.ifAsked(nextRun{run: RunAgent, at: s.unansweredSummary()})
	case !is && f.Task != "":
		n.run = RunSeal
	case !is:
		n.run, n.at.phase = RunSeal, ReadyToMerge
	default:
		n.gate = gate
	}
	return n
}

// afterReady delivers what is ready once it is approved. Gates that are required since then must pass first.
func (s situation) afterReady(f *Final) nextRun {
	head := cmp.Or(f.Head, s.m.Head)
	spec, more := s.o.Spec, notDone(f)+squashed(f)
	switch {
	case spec.Ephemeral:
		return nextRun{at: summary{phase: Blocked, reason: ReasonVolumesRequired, stalled: true, message: fmt.Sprintf(
			"Commit %s was ready and needed an approval%s. With spec.workspace.ephemeral it went with its pod: create the Feature again without that field.", head, requiredBy(spec))}}
	case spec.ProvedBy != f.ProvedBy && spec.ProvedBy != "":
		return nextRun{run: RunSeal, at: summary{phase: Preparing, reason: protocol.ReasonProving, message: fmt.Sprintf(
			"The gates before the delivery have changed since commit %s was proved: the watchdog is about to look which of them must run.", head)}}
	case !spec.RequireApproval || spec.ApprovedCommit == head && head != "":
		return nextRun{run: RunSeal, at: summary{phase: ReadyToMerge, reason: ReasonDelivering, message: fmt.Sprintf(
			"Commit %s has its approval, and the watchdog will push it to branch %s.", head, spec.Branch)}}
	case spec.ApprovedCommit == "":
		return nextRun{at: summary{phase: ReadyToMerge, reason: protocol.ReasonApprovalRequired, message: fmt.Sprintf(
			"Commit %s waits for approval%s: set spec.delivery.approvedCommit to it, and the watchdog pushes it to branch %s.", head, requiredBy(spec), spec.Branch) + more}}
	default:
		return nextRun{at: summary{phase: ReadyToMerge, reason: protocol.ReasonApprovalMismatch, message: fmt.Sprintf(
			"spec.delivery.approvedCommit is %s, but the commit that is ready is %s: look at it and approve that one.", spec.ApprovedCommit, head) + more}}
	}
}

// requiredBy names the policy that requires an approval; nothing where the Feature does so by itself.
func requiredBy(s Spec) string {
	if s.ApprovalBy == "" {
		return ""
	}
	return ", which the policy requires (delivery.approval in " + s.ApprovalBy + ")"
}

// notDone names the tasks that were aborted, which whoever approves the rest has to know.
func notDone(f *Final) string {
	_, names, found := strings.Cut(f.Message, protocol.TasksNotDone)
	if !found {
		return ""
	}
	names, _, _ = strings.Cut(names, "; "+protocol.HistorySquashed)
	return " Aborted tasks are not part of it: " + sentence(names)
}

// squashed says why the commit to approve is not the one that was reported before.
func squashed(f *Final) string {
	if _, why, found := strings.Cut(f.Message, protocol.HistorySquashed); found {
		return " Its history is one commit on the base: " + sentence(why)
	}
	return ""
}
