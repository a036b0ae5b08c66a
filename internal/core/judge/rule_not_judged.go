// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// hardText is too hard to check: nearly a secret, again and again.
var hardText = strings.Repeat("jfrog: x7Kq92mZp\n", 20_000)

// notJudged exists because a search without a bound is one that an agent can keep from ending, and a search that ends
// early finds nothing.
func notJudged() Rule {
	add := []Change{{Path: "a", Kind: Added, New: Entry{Mode: ModeFile, ID: otherID}}}
	return Rule{
		ID:     "not-judged",
		Reason: "TooHardToJudge",
		Doc: "Checking a file must take a bounded amount of work, and so must checking all changed files together. The watchdog counts the work and does not time it, so that a verdict never depends on how busy a machine is. The work is what the search for secrets looks at closely, the surroundings of words like \"key\". " +
			"Files that hold such words many thousand times exceed it; content that did not change since the base does not count.",
		Severity:   "Error, or Critical if changes.secrets of the policy is Critical; none if it is Allow",
		Suggestion: "split the file, generate it in the build, or leave out what looks like many keys and tokens",
		check: func(v *view) []breach {
			if _, broken := v.Policy.Changes.Secrets.Severity(); !broken {
				return nil
			}
			var found []breach
			for i, f := range v.facts {
				if f.hard != "" {
					found = append(found, breach{path: v.changes[i].Path, severity: v.Policy.Changes.Secrets.AtLeastError(), message: f.hard})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a file of nothing but what could be secrets", Input{Changes: add, Contents: contentsOf(map[string]string{otherID: hardText})}},
		},
		Accept: []Sample{
			{"a few of them", Input{Changes: add, Contents: contentsOf(map[string]string{otherID: hardText[:1000]})}},
			{"where secrets are allowed", Input{
				Policy:  policy.Effective{Changes: policy.Changes{Secrets: policy.Allow}},
				Changes: add, Contents: contentsOf(map[string]string{otherID: hardText}),
			}},
		},
	}
}
