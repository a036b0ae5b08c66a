// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Whatever is found by paths alone, Judge says as well once it sees the same changes; and what the areas say is found.
func TestCheckPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Policy: policy.Merge(policy.Sources{}), Plan: protocol.Plan{Allowed: []string{"web/**"}, Forbidden: []string{"web/legacy/**"}}}
		for path := range rapid.MapOfN(rapid.SampledFrom([]string{"web/a", "web/legacy/b", "README.md", ".github/x", "AGENTS.md"}), rapid.Bool(), 1, 5).Draw(t, "paths") {
			in.Changes = append(in.Changes, addFile(path))
		}
		said := map[protocol.Violation]bool{}
		for _, v := range judgeAll(in).Violations {
			said[v] = true
		}
		found := map[string]bool{}
		for _, v := range CheckPlacement(in) {
			if found[v.Path] = true; !said[v] {
				t.Errorf("%+v is found, and Judge does not say so", v)
			}
		}
		for _, c := range in.Changes {
			if want := c.Path != "web/a"; found[c.Path] != want {
				t.Errorf("path %s is found to break a rule: %v, want %v", c.Path, found[c.Path], want)
			}
		}
	})
}

// TestPlacementRules: what is written about these rules anywhere else follows from the list, so their samples are enough to
// see that each of them is found, is judged the same, and never joins another one at a path.
func TestPlacementRules(t *testing.T) {
	var placing []string
	for _, rule := range PlacementRules() {
		placing = append(placing, rule.ID)
	}
	if len(placing) < 2 {
		t.Fatalf("placement rules are %v: want areas, protected paths and others", placing)
	}
	for _, rule := range Rules() {
		for _, sample := range slices.Concat(rule.Reject, rule.Accept) {
			in := sound(sample.Input)
			closed := map[string]string{}
			var want []protocol.Violation
			for _, v := range judgeAll(in).Violations {
				if !slices.Contains(placing, v.Rule) {
					continue
				}
				if closed[v.Path] != "" {
					t.Errorf("%s, %s: %s closes %s, and %s does already", rule.ID, sample.Name, v.Rule, v.Path, closed[v.Path])
				}
				closed[v.Path] = v.Rule
				want = append(want, v)
			}
			if diff := cmp.Diff(want, CheckPlacement(in)); diff != "" {
				t.Errorf("%s, %s: what is found differs from what Judge says (-want +got):\n%s", rule.ID, sample.Name, diff)
			}
		}
	}
}
