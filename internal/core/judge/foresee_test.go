// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Whatever is foreseen, Judge says as well once it sees the same changes; and what the areas say is foreseen.
func TestForesee(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Policy: policy.Merge(policy.Sources{}), Plan: Plan{Allowed: []string{"web/**"}, Forbidden: []string{"web/legacy/**"}}}
		for path := range rapid.MapOfN(rapid.SampledFrom([]string{"web/a", "web/legacy/b", "README.md", ".github/x", "AGENTS.md"}), rapid.Bool(), 1, 5).Draw(t, "paths") {
			in.Changes = append(in.Changes, addFile(path))
		}
		said := map[Violation]bool{}
		for _, v := range judgeAll(in).Violations {
			said[v] = true
		}
		foreseen := map[string]bool{}
		for _, v := range Foresee(in) {
			if foreseen[v.Path] = true; !said[v] {
				t.Errorf("%+v is foreseen, and Judge does not say so", v)
			}
		}
		for _, c := range in.Changes {
			if want := c.Path != "web/a"; foreseen[c.Path] != want {
				t.Errorf("path %s is foreseen to break a rule: %v, want %v", c.Path, foreseen[c.Path], want)
			}
		}
	})
}
