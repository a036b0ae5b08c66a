// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Restore says how much of the workspace goes back.
type Restore string

// Restores.
const (
	RestoreNothing Restore = ""
	// RestorePaths takes the violating paths back to the last promoted tree.
	RestorePaths Restore = "ViolatingPaths"
	// RestorePart does so if what is left is valid as a whole, and takes everything back otherwise: Part decides.
	RestorePart Restore = "Part"
	// RestoreAll takes everything back to it.
	RestoreAll Restore = "All"
	// RestoreChosen restores what a user asked for, from the tree that the user chose.
	RestoreChosen Restore = "Chosen"
)

// Consequence is what the watchdog does after the check of a tree.
type Consequence struct {
	// Action is one of the contract's.
	Action string
	// Promote: the tree goes to the delivery branch.
	Promote bool
	// Restore the workspace.
	Restore Restore
}

// Act decides what the watchdog does with a checked tree. It holds everything that is not known to be good: an unsettled tree may be half
// written, and only the verdict Valid promotes, except in an audit.
func Act(j judge.Judgement, p policy.Effective, settled bool) Consequence {
	held := Consequence{Action: protocol.ActionHeld}
	promoted := Consequence{Action: protocol.ActionPromoted, Promote: true}
	switch {
	case !settled:
		return held
	case j.Verdict == protocol.Skipped:
		return Consequence{Action: protocol.ActionNone}
	case j.Verdict == protocol.Valid, j.Verdict == protocol.Invalid && p.Enforcement == policy.Audit:
		return promoted
	case j.Verdict != protocol.Invalid:
		return held
	case p.Execution.Strategy == policy.StrategyShadow && p.Execution.Promotion == policy.PromotionIncremental:
		return Consequence{Action: protocol.ActionReverted, Restore: RestorePart}
	case p.Execution.Strategy == policy.StrategyShadow:
		return Consequence{Action: protocol.ActionReverted, Restore: RestoreAll}
	case j.Severity != policy.Critical:
		return held
	case p.Execution.RevertOnViolation == policy.RevertFull:
		return Consequence{Action: protocol.ActionReverted, Restore: RestoreAll}
	case p.Execution.RevertOnViolation == policy.RevertViolatingPaths:
		return Consequence{Action: protocol.ActionReverted, Restore: RestorePaths}
	}
	return held
}

// Part decides what the watchdog does with the part of an invalid tree that breaks no rule: the tree with the violating paths as they were
// promoted last. The argument j is the result of checking that tree as a whole, and news says whether it differs from the tree promoted
// last. Part promotes only a part that is valid itself: removing paths can break what they belonged to.
func Part(j judge.Judgement, news bool) Consequence {
	if j.Verdict == protocol.Valid && news {
		return Consequence{Action: protocol.ActionPartlyPromoted, Promote: true, Restore: RestorePaths}
	}
	return Consequence{Action: protocol.ActionReverted, Restore: RestoreAll}
}
