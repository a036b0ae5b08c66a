// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// protectedPaths guards what steers CI, reviews, Git and other agents: the author of these decides what runs next with
// more rights than the agent has. They are guarded where they do not exist yet, too.
func protectedPaths() Rule {
	guard := func(patterns ...string) policy.Effective {
		return policy.Effective{Paths: policy.Paths{Protected: patterns}}
	}
	return Rule{
		ID:         "protected-paths",
		Reason:     "ProtectedPath",
		Doc:        "No path that the policy protects may change, even inside an allowed area, and even if it does not exist yet. The comparison of names is as for forbidden-areas.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "put the path back as it was; ask a user to make this change",
		placement: &placement{
			prepare: func(v *view) closes { return closesBy(v.compile(v.Policy.Paths.Protected, true).match) },
			message: func(_ *view, c Change, pattern string) string {
				return fmt.Sprintf("it was %s although %s is protected", c.done(), quoteName(pattern))
			},
		},
		Reject: []Sample{
			{"a workflow", Input{Policy: guard(".github/**"), Changes: []Change{addFile(".github/workflows/ci.yaml")}}},
			{"a workflow in another case", Input{Policy: guard(".github/**"), Changes: []Change{addFile(".GitHub/workflows/ci.yaml")}}},
			{"at any depth", Input{Policy: guard("CODEOWNERS"), Changes: []Change{modifyFile("docs/CODEOWNERS")}}},
			{"with an invisible character", Input{Policy: guard("CLAUDE.md"), Changes: []Change{addFile("CLAUDE\u200b.md")}}},
			{"with what NTFS drops", Input{Policy: guard("CODEOWNERS"), Changes: []Change{addFile("CODEOWNERS. .")}}},
			{"although planned", Input{
				Policy:  guard("AGENTS.md"),
				Plan:    protocol.Plan{Allowed: []string{"**"}, Files: &protocol.FilePlan{Create: []string{"AGENTS.md"}}},
				Changes: []Change{addFile("AGENTS.md")},
			}},
			{"a link instead of its directory", Input{Policy: guard(".claude/**"), Changes: []Change{addLink(".claude", "mine")}}},
		},
		Accept: []Sample{
			{"a path that only begins alike", Input{Policy: guard(".github/**", "CODEOWNERS"), Changes: []Change{addFile(".github.md"), addFile("CODEOWNERS.md")}}},
			{"what the plan forbids already", Input{
				Policy:  guard("AGENTS.md"),
				Plan:    protocol.Plan{Forbidden: []string{"AGENTS.md"}},
				Changes: []Change{addFile("AGENTS.md")},
			}},
		},
	}
}
