// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// keptResults bounds the list of results. A request is done once for as long as the Feature lives, so results outlive
// their requests; only results of requests that are gone from the spec are ever dropped, oldest first.
const keptResults = 256

// isRetry reports whether a request asks for another run of a Feature whose last attempt ended with f.
func (c *course) isRetry(r Request, f *Final) bool {
	breaker := f != nil && f.Reason == contract.ReasonBreakerOpen
	return r.Kind == RequestRetry || r.Kind == RequestResetBreaker && breaker
}

func (c *course) answered(id string) bool {
	return slices.ContainsFunc(c.m.Requests, func(r RequestResult) bool { return r.ID == id })
}

func (c *course) answer(id string, state RequestState, message string) {
	c.m.Requests = append(c.m.Requests, RequestResult{ID: id, State: state, Message: message, At: c.now})
}

func (c *course) grant(id string) {
	if c.granted == nil {
		c.granted = map[string]bool{}
	}
	c.granted[id] = true
}

// grantRetries takes every open retry for granted: the next attempt is what they ask for. It reports whether there is one.
func (c *course) grantRetries() bool {
	asked := false
	f := c.final()
	for _, r := range c.o.Spec.Requests {
		if c.isRetry(r, f) && !c.answered(r.ID) {
			c.grant(r.ID)
			asked = true
		}
	}
	return asked
}

// refuseRetries answers every open retry with a message instead of a run.
func (c *course) refuseRetries(message string) {
	f := c.final()
	for _, r := range c.o.Spec.Requests {
		if c.isRetry(r, f) && !c.answered(r.ID) {
			c.answer(r.ID, RequestFailed, message)
		}
	}
}

// answerRequests says what became of each request that is not on its way.
func (c *course) answerRequests() {
	for _, r := range c.o.Spec.Requests {
		if c.answered(r.ID) || c.granted[r.ID] {
			continue
		}
		if done, ok := c.reported(r.ID); ok {
			c.m.Requests = append(c.m.Requests, done)
			continue
		}
		if r.Refusal != "" {
			c.answer(r.ID, RequestFailed, r.Refusal)
			continue
		}
		switch r.Kind {
		case RequestApprovePlan:
			c.answer(r.ID, RequestNotActedOn, fmt.Sprintf("This version does not act on %s requests.", r.Kind))
		case RequestRetry:
			if c.active() && c.m.Job.Errand {
				continue // its turn comes after the errand
			}
			c.answer(r.ID, RequestFailed, c.notRetried())
		case RequestCheckpoint, RequestResetBreaker, RequestRollback:
			c.answerIfNobodyWill(r)
		}
	}
	c.dropOldResults()
}

// notRetried says why a request to retry is refused.
func (c *course) notRetried() string {
	if c.active() && c.at.reason == contract.ReasonBreakerOpen {
		return "The agent is frozen, not ended: go on with a request resetBreaker, or set spec.suspend to end it."
	}
	return fmt.Sprintf("The Feature is %s: only one that is Blocked or Failed, or waits for its next attempt, can be retried.", c.at.phase)
}

// answerIfNobodyWill answers a request to the watchdog when no watchdog will come to take it.
func (c *course) answerIfNobodyWill(r Request) {
	switch {
	case c.deleting(), c.active():
	case c.at.phase == Delivered && r.Kind == RequestRollback:
		c.answer(r.ID, RequestFailed, fmt.Sprintf(
			"The Feature is Delivered: what is on branch %s is taken back in Git, with a commit that reverts it.", c.m.Branch))
	case c.at.phase == Delivered:
		c.answer(r.ID, RequestFailed, "The Feature is Delivered: no agent is running.")
	case c.at.phase != Blocked && c.at.phase != Failed && c.at.phase != ReadyToMerge:
	case isErrand(r.Kind) && c.o.Spec.Ephemeral:
		c.answer(r.ID, RequestFailed, fmt.Sprintf(
			"The Feature is %s and spec.workspace.ephemeral is true: its volumes went with its pod, and every checkpoint with them.", c.at.phase))
	case !isErrand(r.Kind):
		c.answer(r.ID, RequestFailed, fmt.Sprintf("The Feature is %s: no agent is running.", c.at.phase))
	}
}

// reported is the watchdog's own result of a request.
func (c *course) reported(id string) (RequestResult, bool) {
	if c.o.Run == nil {
		return RequestResult{}, false
	}
	i := slices.IndexFunc(c.o.Run.Requests, func(r RequestResult) bool { return r.ID == id })
	if i < 0 {
		return RequestResult{}, false
	}
	return c.o.Run.Requests[i], true
}

func (c *course) dropOldResults() {
	surplus := len(c.m.Requests) - keptResults
	c.m.Requests = slices.DeleteFunc(c.m.Requests, func(r RequestResult) bool {
		inSpec := slices.ContainsFunc(c.o.Spec.Requests, func(q Request) bool { return q.ID == r.ID })
		if surplus <= 0 || inSpec {
			return false
		}
		surplus--
		return true
	})
}

// freeID is an id for a retry request that the Feature has not used: people can copy it from the message.
func (c *course) freeID() string {
	for n := 1; ; n++ {
		id := fmt.Sprintf("retry-%d", n)
		if !c.answered(id) && !slices.ContainsFunc(c.o.Spec.Requests, func(r Request) bool { return r.ID == id }) {
			return id
		}
	}
}
