// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/tidewaiter/tidewaiter/internal/core/policy"

// binaries exists because nobody can review what no diff shows.
func binaries() Rule {
	permit := func(p policy.Permission) policy.Effective {
		return policy.Effective{Changes: policy.Changes{Binaries: p}}
	}
	binary := contentsOf(map[string]string{sampleID: "text\n", otherID: "\x89PNG\x00\x01"})
	return Rule{
		ID:         "binaries",
		Reason:     "BinaryFile",
		Doc:        "No new file, and no file with new content, should be binary: have a NUL byte anywhere.",
		Severity:   "changes.binaries of the policy, by default Warn",
		Suggestion: "remove the file, keep what it is made from instead, or let the policy allow binaries",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.Binaries.Severity()
			if !broken {
				return nil
			}
			var found []breach
			for i, f := range v.facts {
				if f.binary {
					found = append(found, breach{path: v.changes[i].Path, severity: severity, message: "it is binary: its content has NUL bytes"})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a text that became binary", Input{Changes: []Change{modifyFile("a")}, Contents: binary}},
			{"a NUL at the very end", Input{Changes: []Change{addFile("a")}, Contents: contentsOf(map[string]string{sampleID: longText + "\x00"})}},
			{"a policy with an unknown value", Input{Policy: permit("Perhaps"), Changes: []Change{modifyFile("a")}, Contents: binary}},
		},
		Accept: []Sample{
			{"text", Input{Changes: []Change{addFile("a")}}},
			{"a binary that is removed", Input{Changes: []Change{{Path: "a", Kind: Deleted, Old: Entry{Mode: ModeFile, ID: otherID}}}, Contents: binary}},
			{"if allowed", Input{Policy: permit(policy.Allow), Changes: []Change{modifyFile("a")}, Contents: binary}},
		},
	}
}
