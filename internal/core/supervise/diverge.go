// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Divergence is a verdict of the assessor that the work does not lead to what the request asks.
type Divergence struct {
	// Request for another plan, by its id.
	Request string
	// Reason of the verdict.
	Reason string
	// Last: the assessor has had as many plans made as it can.
	Last bool
}

// replans is the request for the plan that a divergence needs, unless a model has made it or could not.
func (s State) replans() (protocol.Request, bool) {
	d := s.Breakpoint.Diverged
	if d == nil || d.Last || s.Planning.Made.Request == d.Request || s.Planning.Failed != nil && s.Planning.Failed.Request == d.Request {
		return protocol.Request{}, false
	}
	return protocol.Request{ID: d.Request, Kind: protocol.RequestReplan, Directive: d.Reason}, true
}

// diverged is the final report of an attempt whose work diverges and has no other plan: a user decides.
func (s State) diverged() (protocol.FinalReport, bool) {
	d := s.Breakpoint.Diverged
	if d == nil || s.Planning.Made.Request == d.Request {
		return protocol.FinalReport{}, false
	}
	const byThisPlan = "To continue by the plan as it is, send a request retry."
	message := fmt.Sprintf("the assessor finds that the work diverges from the request or the plan: %s. The work so far is kept", strings.TrimRight(d.Reason, ". "))
	switch failed := s.Planning.Failed; {
	case !s.Planning.On:
		message += ". Change spec.plan, and send a request retry. " + byThisPlan
	case failed != nil && failed.Request == d.Request:
		message += ", and no model has proposed another plan that can be used: " + strings.TrimRight(failed.Missing, ". ") + ". To have one made, send a request replan and a request retry. " + byThisPlan
	default:
		message += ", and the assessor has had as many plans made as it can. To have another one made, send a request replan and a request retry. " + byThisPlan
	}
	return protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonPlanDiverged, Message: message, Head: s.Delivery.Head}, true
}
