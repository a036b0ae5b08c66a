// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Choice is the mode that an agent runs in.
type Choice struct {
	// Mode is one of the policy's modes; empty if the runtime supports none.
	Mode string
	// Notice tells users why it is not the requested mode; empty if it is.
	Notice string
}

// Choose returns the mode that a runtime runs in when policy and Feature together ask for one. Interactive falls back to
// Deterministic, which is the stricter of the two. Deterministic never falls back: an agent that does not support it must not get write
// access to the workspace instead.
func Choose(asked string, r Runtime) Choice {
	switch {
	case asked == policy.ModeDeterministic && r.Deterministic, asked == policy.ModeInteractive && r.Interactive:
		return Choice{Mode: asked}
	case asked == policy.ModeInteractive && r.Deterministic:
		return Choice{Mode: policy.ModeDeterministic, Notice: fmt.Sprintf("Runtime %s does not support %s mode, falling back to %s.",
			r.Name, policy.ModeInteractive, policy.ModeDeterministic)}
	}
	return Choice{Notice: fmt.Sprintf("Runtime %s does not support %s mode: choose another runtime, or another spec.execution.mode.", r.Name, asked)}
}
