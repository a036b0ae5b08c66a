// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// allowedAreas keeps the work where the plan puts it.
func allowedAreas() Rule {
	return Rule{
		ID:         "allowed-areas",
		Reason:     "OutsideAllowedAreas",
		Doc:        "If the plan names allowedAreas, only paths that they match may change. Without any, all paths may change.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "undo the change, or move it into an area that spec.plan.allowedAreas names",
		placement: &placement{
			prepare: func(v *view) closes {
				if len(v.Plan.Allowed) == 0 {
					return closesNothing
				}
				allowed := v.compile(v.Plan.Allowed, false)
				return func(c Change) (string, bool) { return "", allowed.match(c.Path) == "" }
			},
			message: func(_ *view, c Change, _ string) string {
				return fmt.Sprintf("it was %s outside of the allowed areas", c.done())
			},
		},
		Reject: []Sample{
			{"a file elsewhere", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addFile("api/a.go")}}},
			{"a deletion elsewhere", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{deleteFile("README.md")}}},
			{"a path that only begins alike", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addFile("website/a.js")}}},
			{"another case", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addFile("Web/a.js")}}},
			{"a link instead of the area", Input{Plan: protocol.Plan{Allowed: []string{"web/**"}}, Changes: []Change{addLink("web", "api")}}},
		},
		Accept: []Sample{
			{"a file in an area", Input{Plan: protocol.Plan{Allowed: []string{"docs/", "web/**"}}, Changes: []Change{addFile("web/a/b.js"), deleteFile("docs/x.md")}}},
			{"no areas", Input{Changes: []Change{addFile("anything")}}},
			{"what is protected already", Input{
				Plan:    protocol.Plan{Allowed: []string{"web/**"}},
				Policy:  policy.Effective{Paths: policy.Paths{Protected: []string{"CODEOWNERS"}}},
				Changes: []Change{addFile("CODEOWNERS")},
			}},
		},
	}
}
