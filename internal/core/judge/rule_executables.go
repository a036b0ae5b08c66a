// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/tidewaiter/tidewaiter/internal/core/policy"

// executables makes people look twice at what a build, a hook or a colleague may run without knowing.
func executables() Rule {
	permit := func(p policy.Permission) policy.Effective {
		return policy.Effective{Changes: policy.Changes{Executables: p}}
	}
	change := func(before, now uint32) []Change {
		c := Change{Path: "run", Kind: Modified, Old: Entry{Mode: before, ID: sampleID}, New: Entry{Mode: now, ID: otherID}}
		if before == 0 {
			c.Kind, c.Old = Added, Entry{}
		}
		return []Change{c}
	}
	return Rule{
		ID:         "executables",
		Reason:     "NewExecutable",
		Doc:        "No new or changed file should become executable. Files that are executable in the base may change.",
		Severity:   "changes.executables of the policy, by default Warn",
		Suggestion: "take the executable bit away (chmod a-x), or let the policy allow executables",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.Executables.Severity()
			if !broken {
				return nil
			}
			var found []breach
			for _, c := range v.changes {
				if c.New.Mode == ModeExecutable && c.Old.Mode != ModeExecutable {
					found = append(found, breach{path: c.Path, severity: severity, message: "it is executable and was not before"})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a new executable", Input{Changes: change(0, ModeExecutable)}},
			{"a file that became executable", Input{Changes: change(ModeFile, ModeExecutable)}},
			{"a link that became an executable", Input{Changes: []Change{{
				Path: "run", Kind: TypeChanged, Old: Entry{Mode: ModeSymlink, Target: "a"}, New: Entry{Mode: ModeExecutable, ID: otherID},
			}}}},
			{"a policy with an unknown value", Input{Policy: permit("Perhaps"), Changes: change(0, ModeExecutable)}},
		},
		Accept: []Sample{
			{"an executable of the base", Input{Changes: change(ModeExecutable, ModeExecutable)}},
			{"a file that stopped being executable", Input{Changes: change(ModeExecutable, ModeFile)}},
			{"if allowed", Input{Policy: permit(policy.Allow), Changes: change(0, ModeExecutable)}},
			{"a new file", Input{Changes: change(0, ModeFile)}},
		},
	}
}
