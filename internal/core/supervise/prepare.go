// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Preparation of a workspace, with the tries that failed.
type Preparation struct {
	// fault of the last try.
	fault protocol.Fault
	// tries that failed, and how many of the last ones in a row did for no reason that has a name.
	tries, unknown int
}

// Failed is the preparation after another try that failed.
func (p Preparation) Failed(fault protocol.Fault) Preparation {
	p.fault = fault
	p.tries++
	p.unknown++
	if fault.Reason != protocol.ReasonPreparationFailed {
		p.unknown = 0
	}
	return p
}

// Pause until the next try.
func (p Preparation) Pause() time.Duration {
	return min(lastRetry, firstRetry<<min(max(p.tries-1, 0), 10))
}

// Final is the final report of a preparation that is not tried again. Tidewaiter cannot work on the repository, or the failure is of an
// unknown kind that may never pass.
func (p Preparation) Final() (protocol.FinalReport, bool) {
	f := protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: p.fault.Reason, Message: p.fault.Message}
	switch p.fault.Reason {
	case protocol.ReasonObjectFormatUnsupported, protocol.ReasonRepositoryDamaged:
		return f, true
	}
	if p.unknown >= maxPreparations {
		f.Message = fmt.Sprintf("the watchdog tried the preparation %d times and failed, the last time with: %s", p.unknown, p.fault.Message)
		return f, true
	}
	return protocol.FinalReport{}, false
}

// maxPreparations is how often a preparation is tried that fails for an unknown reason, before a user must act: with these pauses, for an hour.
const maxPreparations = maxDeliveries
