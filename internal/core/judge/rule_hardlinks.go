// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/tidewaiter/tidewaiter/internal/core/policy"

// hardlinks exists because a file with a name elsewhere can be changed through that one, unseen by the watcher, after
// its checkpoint and by the holder of the name. The capture reads such files every time, so none is missed; yet there
// is hardly a good reason for one.
func hardlinks() Rule {
	linked := []Found{{Path: "a", Kind: FoundHardlink}}
	permit := func(p policy.Permission) policy.Effective {
		return policy.Effective{Changes: policy.Changes{Hardlinks: p}}
	}
	return Rule{
		ID:         "hardlinks",
		Reason:     "Hardlink",
		Doc:        "No file should have another name outside of what the checkpoint captures: under a path that Git ignores, or outside of the workspace. If the checkpoint captures all names of one file, they are several files to Git, and the rule does not apply.",
		Severity:   "changes.hardlinks of the policy, by default Warn",
		Suggestion: "replace the file by a copy of it, for example with cp and mv",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.Hardlinks.Severity()
			if !broken {
				return nil
			}
			var found []breach
			for _, f := range v.Found {
				if f.Kind == FoundHardlink {
					found = append(found, breach{path: f.Path, severity: severity, message: "it is a hard link: the file has another name that the watchdog does not capture"})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a file with another name", Input{Found: linked}},
			{"a policy with an unknown value", Input{Policy: permit("Perhaps"), Found: linked}},
		},
		Accept: []Sample{
			{"if allowed", Input{Policy: permit(policy.Allow), Found: linked}},
			{"a file", Input{Changes: []Change{addFile("a")}}},
		},
	}
}
