// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"errors"
	"slices"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// maxRule bounds the name of a rule, in characters, as the API does.
const maxRule = 64

// validateAcknowledged names the first field that no watchdog of ours would send.
func validateAcknowledged(a protocol.Acknowledgment) error {
	switch {
	case a.Checkpoint < 1:
		return errors.New("acknowledged.checkpoint counts from 1")
	case a.Rule == "":
		return errors.New("acknowledged.rule is missing")
	case a.Turn < 0 || a.Turn > maxNumber:
		return errors.New("acknowledged.turn is not the number of a turn")
	}
	return nil
}

// Acknowledge returns the acknowledgments of a Checkpoint after a report of another one, and whether there is a new one. The first
// acknowledgment of a rule stays. It does not change its arguments.
func Acknowledge(kept []v1alpha1.Acknowledgment, r protocol.Report) (next []v1alpha1.Acknowledgment, more bool) {
	a := v1alpha1.Acknowledgment{Rule: Clean(r.Acknowledged.Rule, maxRule), Turn: r.Acknowledged.Turn, AcknowledgmentTime: *apiTime(r.Time), Text: Clean(r.Acknowledged.Text, maxEvidence)}
	if len(kept) >= protocol.MaxAcknowledgments || slices.ContainsFunc(kept, func(k v1alpha1.Acknowledgment) bool { return k.Rule == a.Rule }) {
		return kept, false
	}
	return append(slices.Clone(kept), a), true
}
