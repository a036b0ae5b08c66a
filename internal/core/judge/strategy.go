// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// mostSteps bounds the comparison of a plan with paths.rules, in bytes that are read and names that are compared, with more for a name that is compared with
// many wildcards: it takes some 0.2 s at most. Four hundred
// files and as many paths of rules take two thirds of them.
const mostSteps = 512 << 10

// maxShown bounds a name or a pattern in a reason, in characters.
const maxShown = 64

// Strategy is the strategy of an attempt: the policy's unless that is Auto. Auto means Shadow for a plan that names contracts or that may
// change a path in the policy's paths.rules, and Direct for any other. A plan without areas may change every path. The reason says why Auto
// chose it, and is empty if the policy decides. In doubt the result is Shadow, as Plan.Overlaps is true in doubt. Rules that close paths
// are guards, so Strategy also compares names as guards do. It treats what takes too long to compare as a match.
func Strategy(p protocol.Plan, contracts []string, e policy.Effective) (strategy, reason string) {
	if e.Execution.Strategy != policy.StrategyAuto {
		return e.Execution.Strategy, ""
	}
	if len(contracts) > 0 {
		return policy.StrategyShadow, fmt.Sprintf("The plan names the contract %q.", plain.CutRunes(contracts[0], maxShown))
	}
	c := comparison{guards: true, left: mostSteps}
	mine := c.read(p)
	for _, r := range e.Paths.Rules {
		path, others, ok := c.overlap(mine, c.read(protocol.Plan{Allowed: r.Paths}))
		switch {
		case !ok:
		case c.left < 0:
			return policy.StrategyShadow, "The plan and paths.rules of the policy have too many paths to be compared."
		case path == "":
			return policy.StrategyShadow, fmt.Sprintf("The plan bounds no paths, so that it may change %q, which paths.rules of the policy are about.", plain.CutRunes(others, maxShown))
		default:
			return policy.StrategyShadow, fmt.Sprintf("The plan may change %q, and paths.rules of the policy are about %q.", plain.CutRunes(path, maxShown), plain.CutRunes(others, maxShown))
		}
	}
	return policy.StrategyDirect, "The plan names no contracts, and changes nothing that paths.rules of the policy are about."
}
