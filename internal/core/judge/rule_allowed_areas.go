// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// allowedAreas keeps the work where the plan puts it.
func allowedAreas() Rule {
	return Rule{
		ID:         "allowed-areas",
		Reason:     "OutsideAllowedAreas",
		Doc:        "If the plan names allowedAreas, only paths that they match may change. Without any, all paths may change. If a planner has proposed areas too, a path must be in one of each list.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "undo the change, or move it into an area that spec.plan.allowedAreas names",
		placement: &placement{
			prepare: func(v *view) closes {
				var lists []*matcher
				for _, areas := range v.Plan.Areas() {
					lists = append(lists, v.compile(areas, false))
				}
				if len(lists) == 0 {
					return closesNothing
				}
				return func(c Change) (string, bool) {
					return "", slices.ContainsFunc(lists, func(allowed *matcher) bool { return allowed.match(c.Path) == "" })
				}
			},
			message: func(_ *view, c Change, _ string) string {
				return fmt.Sprintf("it was %s outside of the allowed areas", c.done())
			},
		},
		Reject: []Sample{
			{"outside of the areas of a proposed plan", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}, Proposed: []string{"web/login/**"}}, Changes: []Change{addFile("web/a.js")}}},
			{"in a proposed area that the user does not allow", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}, Proposed: []string{"**"}}, Changes: []Change{addFile("api/a.go")}}},
			{"a file elsewhere", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addFile("api/a.go")}}},
			{"a deletion elsewhere", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{deleteFile("README.md")}}},
			{"a path that only begins alike", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addFile("website/a.js")}}},
			{"another case", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addFile("Web/a.js")}}},
			{"a link instead of the area", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addLink("web", "api")}}},
		},
		Accept: []Sample{
			{"a file in an area", Input{Plan: protocol.Plan{Allowed: []string{"docs/", "web/**"}}, Changes: []Change{addFile("web/a/b.js"), deleteFile("docs/x.md")}}},
			{"in an area of the user and of a proposed plan", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}, Proposed: []string{"**/login/"}}, Changes: []Change{addFile("web/login/a.js")}}},
			{"no areas", Input{Changes: []Change{addFile("anything")}}},
			{"what is protected already", Input{
				Plan:    protocol.Plan{Allowed: []string{"web/**"}},
				Policy:  policy.Effective{Paths: policy.Paths{Protected: []string{"CODEOWNERS"}}},
				Changes: []Change{addFile("CODEOWNERS")},
			}},
		},
	}
}
