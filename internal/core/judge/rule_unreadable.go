// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// unreadable exists because what cannot be read cannot be checked, and because test suites take permissions away and forget
// to give them back: the agent has to learn which path it is.
func unreadable() Rule {
	return Rule{
		ID:         "unreadable",
		Reason:     "Unreadable",
		Doc:        "The owner must be able to read every file and directory that Git does not ignore. No directory may be too deep to look at. The watchdog cannot check what it cannot read, and promotes the checkpoint only when it can read everything.",
		Severity:   "always Error",
		Suggestion: "give the owner the permission to read it (chmod u+rwX), or remove it",
		check: func(v *view) []breach {
			var found []breach
			for _, f := range v.Found {
				switch f.Kind {
				case FoundUnreadable:
					found = append(found, unreadableAt(f.Path))
				case FoundTooDeep:
					found = append(found, breach{path: f.Path, severity: policy.Error,
						message: "it is too deep or its path is too long to be looked at", suggestion: "remove it"})
				default: // of other rules
				}
			}
			return found
		},
		Reject: []Sample{
			{"a directory without permissions", Input{Found: []Found{{Path: "x", Kind: FoundUnreadable}}}},
			{"the root of the workspace", Input{Found: []Found{{Kind: FoundUnreadable}}}},
			{"a directory that is too deep", Input{Found: []Found{{Path: "a/b", Kind: FoundTooDeep}}}},
		},
		Accept: []Sample{
			{"a named pipe", Input{Found: []Found{{Path: "a", Kind: FoundFIFO}}}},
			{"a file", Input{Changes: []Change{addFile("a")}}},
		},
	}
}

func unreadableAt(path string) breach {
	b := breach{path: path, severity: policy.Error, message: "its permissions keep it from being read"}
	switch {
	case path == "":
		b.message = "the permissions of the workspace's root directory keep it from being read"
		b.suggestion = "run in the root of the workspace: chmod u+rwx ."
	case plainWord(path):
		// The capital X makes a directory searchable, and no file executable.
		b.suggestion = fmt.Sprintf("run in the root of the workspace: chmod u+rwX %s", path)
	}
	return b
}

// plainWord tells whether a shell takes a path as it is, for one that people and agents may copy into one.
func plainWord(path string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+@%-"
	return len(path) <= 100 && !strings.HasPrefix(path, "-") && strings.Trim(path, plain) == ""
}
