// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// specialFiles exists because Git cannot hold them: what is checked and delivered would not be what the agent made.
func specialFiles() Rule {
	allow := policy.Effective{Changes: policy.Changes{SpecialFiles: policy.Allow}}
	kinds := map[FoundKind]string{FoundFIFO: "a named pipe", FoundSocket: "a socket", FoundDevice: "a device"}
	return Rule{
		ID:         "special-files",
		Reason:     "SpecialFile",
		Doc:        "The workspace must not hold named pipes, sockets or devices, except under paths that Git ignores: Git cannot deliver them, and reading them can block.",
		Severity:   "changes.specialFiles of the policy, by default Deny",
		Suggestion: "remove it, or put it into a directory that .gitignore names, or under /tmp",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.SpecialFiles.Severity()
			if !broken {
				return nil
			}
			var found []breach
			for _, f := range v.Found {
				if kind, ok := kinds[f.Kind]; ok {
					found = append(found, breach{path: f.Path, severity: severity, message: fmt.Sprintf("it is %s", kind)})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a named pipe", Input{Found: []Found{{Path: "a", Kind: FoundFIFO}}}},
			{"a socket", Input{Found: []Found{{Path: "a", Kind: FoundSocket}}}},
			{"a device", Input{Found: []Found{{Path: "a", Kind: FoundDevice}}}},
		},
		Accept: []Sample{
			{"if allowed", Input{Policy: allow, Found: []Found{{Path: "a", Kind: FoundFIFO}}}},
			{"a file", Input{Changes: []Change{addFile("a")}}},
		},
	}
}
