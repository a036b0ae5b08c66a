// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// usablePatterns exists because a pattern that cannot be read would otherwise guard nothing, silently.
func usablePatterns() Rule {
	return Rule{
		ID:         "usable-patterns",
		Reason:     "InvalidPattern",
		Doc:        "Every pattern of plan and policy must be able to match. A pattern that cannot would leave open what its author wanted to guard.",
		Severity:   "always Error",
		Suggestion: "correct the pattern in the Feature's plan or the SupervisorPolicy",
		check: func(v *view) []breach {
			slices.Sort(v.unusable)
			var found []breach
			for _, message := range slices.Compact(v.unusable) {
				found = append(found, breach{severity: policy.Error, message: message})
			}
			return found
		},
		Reject: []Sample{
			{"a forbidden area with an open bracket", Input{Plan: protocol.Plan{Forbidden: []string{"web/[a"}}}},
			{"a protected path that is a negation", Input{Policy: policy.Effective{Paths: policy.Paths{Protected: []string{"!web/**"}}}}},
			{"an allowed area that climbs", Input{Plan: protocol.Plan{Allowed: []string{"../**"}}}},
			{"a planned file with braces", Input{Plan: protocol.Plan{Files: &protocol.FilePlan{Create: []string{"web/*.{js,ts}"}}}}},
		},
		Accept: []Sample{
			{"patterns as in .gitignore", Input{Plan: protocol.Plan{
				Allowed:   []string{"web/**", "/docs/", "*.md", "src/**/test_[a-z].py", `a\[1\]`},
				Forbidden: []string{"web/legacy"},
			}}},
		},
	}
}
