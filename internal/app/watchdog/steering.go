// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/handover"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/host/trusted"
)

// steeringRecord is the journal, from which steps are handed over to the gateway.
type steeringRecord struct {
	journal  *trusted.Journal
	handover *handover.Service
}

var _ steer.Recorder = steeringRecord{}

// Recorded implements steer.Recorder.
func (r steeringRecord) Recorded() journal.Steered { return r.journal.State().Steered }

// Steered implements steer.Recorder.
func (r steeringRecord) Steered(x protocol.Steering) error {
	if err := r.journal.Note(journal.Record{Steered: &x}); err != nil {
		return err
	}
	r.handover.Steered(x)
	return nil
}
