// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// keptResults bounds the list of results. A request is done once for as long as the Feature lives, so results outlive
// their requests; only results of requests that are gone from the spec are ever dropped, oldest first.
const keptResults = 256

// answered reports whether a request has its result.
func (s situation) answered(id string) bool { return hasResult(s.m.Requests, id) }

func hasResult(list []RequestResult, id string) bool {
	return slices.ContainsFunc(list, func(r RequestResult) bool { return r.ID == id })
}

// openRetries are the requests for another run that have no result.
func (s situation) openRetries() []string {
	f := s.final()
	breaker := f != nil && f.Reason == protocol.ReasonBreakerOpen
	var ids []string
	for _, r := range s.o.Spec.Requests {
		if (r.Kind == RequestRetry || r.Kind == RequestResetBreaker && breaker) && !s.answered(r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// answers are results of requests.
func (s situation) answers(ids []string, state RequestState, message string) []RequestResult {
	var list []RequestResult
	for _, id := range ids {
		list = append(list, RequestResult{ID: id, State: state, Message: message, At: s.now})
	}
	return list
}

// refused answers every open retry with a message instead of a run; no message leaves them open.
func (s situation) refused(message string) []RequestResult {
	if message == "" {
		return nil
	}
	return s.answers(s.openRetries(), RequestFailed, message)
}

// reported is the watchdog's own result of a request.
func (s situation) reported(id string) (RequestResult, bool) {
	if s.o.Run == nil {
		return RequestResult{}, false
	}
	i := slices.IndexFunc(s.o.Run.Requests, func(r RequestResult) bool { return r.ID == id })
	if i < 0 {
		return RequestResult{}, false
	}
	return s.o.Run.Requests[i], true
}

// freeID is an id for a retry request that the Feature has not used: people can copy it from the message.
func (s situation) freeID() string { return s.freeIDOf("retry") }

// freeIDOf is such an id for another kind of request.
func (s situation) freeIDOf(kind string) string {
	for n := 1; ; n++ {
		id := fmt.Sprintf("%s-%d", kind, n)
		if !s.answered(id) && !slices.ContainsFunc(s.o.Spec.Requests, func(r Request) bool { return r.ID == id }) {
			return id
		}
	}
}

// answerRequests gives the result of each request that is not on its way: all results that are kept.
func (s situation) answerRequests(p plan) []RequestResult {
	results := slices.Concat(s.m.Requests, s.refused(p.refusal))
	granted := s.granted
	if p.granted {
		granted = slices.Concat(granted, s.openRetries())
	}
	for _, r := range s.o.Spec.Requests {
		if hasResult(results, r.ID) || slices.Contains(granted, r.ID) {
			continue
		}
		if done, ok := s.reported(r.ID); ok {
			results = append(results, done)
			continue
		}
		if message, state := s.answerTo(p.at, r); message != "" {
			results = append(results, RequestResult{ID: r.ID, State: state, Message: message, At: s.now})
		}
	}
	return withoutOldest(results, s.o.Spec.Requests)
}

// answerTo is the answer to a request of which nothing was reported; empty while it is on its way.
func (s situation) answerTo(at summary, r Request) (message string, state RequestState) {
	switch {
	case r.Refusal != "":
		return r.Refusal, RequestFailed
	case r.Kind != RequestRetry:
		return s.unlessTaken(at, r), RequestFailed
	case s.active() && s.m.Job.Errand:
		return "", "" // Its turn comes after the errand.
	default:
		return s.notRetried(at), RequestFailed
	}
}

// notRetried says why a request to retry is refused.
func (s situation) notRetried(at summary) string {
	if s.active() && at.reason == protocol.ReasonBreakerOpen {
		return "The agent is frozen, not ended: let it continue with a request resetBreaker, or set spec.suspend to end it."
	}
	if s.active() && at.reason == protocol.ReasonBudgetExceeded {
		return "The agent is frozen, not ended: raise the budget that condition WithinBudget names, or set spec.suspend to end it."
	}
	if s.active() && at.reason == protocol.ReasonAgentHeld {
		return "The agent waits and has not ended: let it continue with a request release, or set spec.suspend to end it."
	}
	return fmt.Sprintf("The Feature is %s: you can retry only one that is Blocked or Failed, or waits for its next attempt.", at.phase)
}

// unlessTaken refuses a request to the watchdog when no watchdog will come to take it; empty while one will.
func (s situation) unlessTaken(at summary, r Request) string {
	switch {
	case s.deleting(), s.active():
	case r.Kind == RequestApprovePlan && at.phase == AwaitingInput:
		return s.notApproved(r)
	case at.phase == Delivered && r.Kind == RequestRollback:
		return fmt.Sprintf("The Feature is Delivered: take back what is on branch %s in Git, with a commit that reverts it.", s.m.Branch)
	case at.phase == Delivered:
		return "The Feature is Delivered: no agent is running."
	case at.phase != Blocked && at.phase != Failed && at.phase != ReadyToMerge:
	case isErrand(r.Kind) && s.o.Spec.Ephemeral:
		return fmt.Sprintf("The Feature is %s and spec.workspace.ephemeral is true: its volumes went with its pod, and every checkpoint with them.", at.phase)
	case r.Kind == RequestReplan && at.phase != ReadyToMerge && !slices.Contains(deliveryReasons, at.reason): // a retry of a delivery starts no agent
		return fmt.Sprintf("The Feature is %s, and no agent is running. To start one that works by another plan, send this request together with a request to retry, both with new ids.", at.phase)
	case !isErrand(r.Kind):
		return fmt.Sprintf("The Feature is %s: no agent is running.", at.phase)
	}
	return ""
}

// withoutOldest drops the oldest results of requests that are gone from the spec, where there are too many.
func withoutOldest(results []RequestResult, spec []Request) []RequestResult {
	surplus := len(results) - keptResults
	return slices.DeleteFunc(results, func(r RequestResult) bool {
		inSpec := slices.ContainsFunc(spec, func(q Request) bool { return q.ID == r.ID })
		if surplus <= 0 || inSpec {
			return false
		}
		surplus--
		return true
	})
}
