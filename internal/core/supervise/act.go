// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Restore says how much of the workspace goes back.
type Restore string

// Restores.
const (
	RestoreNothing Restore = ""
	// RestorePaths takes the violating paths back to the last promoted tree.
	RestorePaths Restore = "ViolatingPaths"
	// RestoreAll takes everything back to it.
	RestoreAll Restore = "All"
	// RestoreChosen takes back what a person asked for, to the tree that the person chose.
	RestoreChosen Restore = "Chosen"
)

// Consequence is what is done about a judged tree.
type Consequence struct {
	// Action is one of the contract's.
	Action string
	// Promote: the tree goes to the delivery branch.
	Promote bool
	// Restore the workspace.
	Restore Restore
}

// Act decides what is done about a judged tree. Whatever is not known to be good is held: an unsettled tree may be half
// written, and no verdict but Valid promotes, except in an audit.
func Act(j judge.Judgement, p policy.Effective, settled bool) Consequence {
	held := Consequence{Action: contract.ActionHeld}
	promoted := Consequence{Action: contract.ActionPromoted, Promote: true}
	switch {
	case !settled:
		return held
	case j.Verdict == judge.Skipped:
		return Consequence{Action: contract.ActionNone}
	case j.Verdict == judge.Valid, j.Verdict == judge.Invalid && p.Enforcement == policy.Audit:
		return promoted
	case j.Verdict != judge.Invalid:
		return held
	case p.Execution.Strategy == policy.StrategyShadow:
		return Consequence{Action: contract.ActionReverted, Restore: RestoreAll}
	case j.Severity != policy.Critical:
		return held
	case p.Execution.RevertOnViolation == policy.RevertFull:
		return Consequence{Action: contract.ActionReverted, Restore: RestoreAll}
	case p.Execution.RevertOnViolation == policy.RevertViolatingPaths:
		return Consequence{Action: contract.ActionReverted, Restore: RestorePaths}
	}
	return held
}
