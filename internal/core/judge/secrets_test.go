// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// TestSecretsAreNotTold: whatever rules break beside, what a judgement says has no secret in it.
func TestSecretsAreNotTold(t *testing.T) {
	inputs := map[string]Input{
		"an absolute link":   {Changes: []Change{addLink("a", "/"+sampleToken)}},
		"a link out":         {Changes: []Change{addLink("a", "../"+sampleToken)}},
		"a link that climbs": {Changes: []Change{addLink("a/b", sampleToken+"/../x")}},
		"a link into a .git": {Changes: []Change{addLink("a", ".git/"+sampleToken)}},
		"a link, where secrets are allowed": {
			Changes: []Change{addLink("a", sampleToken)}, Policy: policy.Effective{Changes: policy.Changes{Secrets: policy.Allow}},
		},
	}
	moved := addLink("a", "/"+sampleToken)
	moved.Kind, moved.Old = Modified, Entry{Mode: ModeSymlink, ID: otherID, Target: sampleToken}
	inputs["a link that had it before"] = Input{Changes: []Change{moved}}
	for i, sample := range secretFiles().Reject {
		inputs[fmt.Sprintf("sample %d: %s", i, sample.Name)] = sample.Input
	}
	for name, in := range inputs {
		t.Run(name, func(t *testing.T) {
			j := judgeAll(sound(in))
			if len(j.Violations) == 0 {
				t.Error("no rule is broken")
			}
			said := fmt.Sprintf("%+v %s", j, Summary(j))
			if i := slices.IndexFunc([]string{sampleToken, sampleKey}, func(secret string) bool { return strings.Contains(said, secret) }); i >= 0 {
				t.Errorf("a secret is in %s", said)
			}
		})
	}
}

// FuzzLinkTarget: wherever in a link's target a token stands, it is found, and no message has it.
func FuzzLinkTarget(f *testing.F) {
	f.Add("../", "/x")
	f.Add("/etc/token=", ";\n")
	f.Add(".git/\x00", "\xff")
	scanner := secrets.New()
	f.Fuzz(func(t *testing.T, before, after string) {
		in := sound(Input{
			Changes: []Change{addLink("a/b", before+sampleToken+after)}, Cache: &Cache{scanner: scanner},
			Policy: policy.Effective{Changes: policy.Changes{Symlinks: policy.Deny}},
		})
		j := judgeAll(in)
		wellFormed := in.Changes[0].fault() == ""
		if found := slices.ContainsFunc(j.Violations, func(v protocol.Violation) bool { return v.Rule == "secrets" }); found != wellFormed {
			t.Errorf("found: %t, well-formed: %t", found, wellFormed)
		}
		for _, v := range j.Violations {
			if strings.Contains(v.Message+v.Suggestion, sampleToken) {
				t.Errorf("rule %s says %s", v.Rule, v.Message)
			}
		}
	})
}
