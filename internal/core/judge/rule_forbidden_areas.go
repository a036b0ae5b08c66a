// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// forbiddenAreas comes before all other rules about areas: what the plan forbids, nothing else opens.
func forbiddenAreas() Rule {
	return Rule{
		ID:         "forbidden-areas",
		Reason:     "InForbiddenArea",
		Doc:        "No path that the plan's forbiddenAreas match may change, even inside an allowed area. Case, Unicode composition, invisible characters and what NTFS drops from the end of a name make no difference. The agent may replace no directory on the way.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "put the path back as it was, or remove the area from spec.plan.forbiddenAreas of a new Feature",
		placement: &placement{
			prepare: func(v *view) closes { return closesBy(v.compile(v.Plan.Forbidden, true).match) },
			message: func(_ *view, c Change, pattern string) string {
				return fmt.Sprintf("it was %s in the forbidden area %s", c.done(), quoteName(pattern))
			},
		},
		Reject: []Sample{
			{"a file in it", Input{Plan: protocol.Plan{Forbidden: []string{"web/legacy/**"}}, Changes: []Change{addFile("web/legacy/a.js")}}},
			{"a deletion in it", Input{Plan: protocol.Plan{Forbidden: []string{"web/legacy/"}}, Changes: []Change{deleteFile("web/legacy/a.js")}}},
			{"although allowed", Input{
				Plan:    protocol.Plan{Allowed: []string{"web/**"}, Forbidden: []string{"web/legacy/**"}},
				Changes: []Change{modifyFile("web/legacy/a.js")},
			}},
			{"in another case", Input{Plan: protocol.Plan{Forbidden: []string{"web/legacy/**"}}, Changes: []Change{addFile("Web/LEGACY/a.js")}}},
			{"a link instead of it", Input{Plan: protocol.Plan{Forbidden: []string{"web/legacy/**"}}, Changes: []Change{addLink("web/legacy", "new")}}},
			{"a link instead of its parent", Input{Plan: protocol.Plan{Forbidden: []string{"web/legacy/**"}}, Changes: []Change{addLink("web", "new")}}},
		},
		Accept: []Sample{
			{"a file next to it", Input{Plan: protocol.Plan{Forbidden: []string{"web/legacy/**"}}, Changes: []Change{addFile("web/a.js"), addFile("legacy/a.js")}}},
			{"nothing forbidden", Input{Changes: []Change{addFile("web/a.js")}}},
		},
	}
}
