// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// maxShown bounds a name or a pattern in a reason, in characters.
const maxShown = 64

// Strategy is the one that an attempt runs by: what the policy says or, where that is Auto, Shadow for a plan that names contracts or that may
// change a path that paths.rules of the policy are about, and Direct for any other. A plan that bounds no paths may change each. The reason
// says why Auto came to it, and is empty where the policy has decided. It errs on the side of Shadow, as Plan.Overlaps does on that of yes.
func Strategy(p Plan, contracts []string, e policy.Effective) (strategy, reason string) {
	if e.Execution.Strategy != policy.StrategyAuto {
		return e.Execution.Strategy, ""
	}
	if len(contracts) > 0 {
		return policy.StrategyShadow, fmt.Sprintf("The plan names the contract %q.", clip(contracts[0], maxShown))
	}
	for _, r := range e.Paths.Rules {
		mine, others, ok := p.Overlaps(Plan{Allowed: r.Paths})
		switch {
		case !ok:
		case mine == "":
			return policy.StrategyShadow, fmt.Sprintf("The plan bounds no paths, so that it may change %q, which paths.rules of the policy are about.", clip(others, maxShown))
		default:
			return policy.StrategyShadow, fmt.Sprintf("The plan may change %q, and paths.rules of the policy are about %q.", clip(mine, maxShown), clip(others, maxShown))
		}
	}
	return policy.StrategyDirect, "The plan names no contracts, and changes nothing that paths.rules of the policy are about."
}
