// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// workspaceSize bounds what an agent can make the node hold and the watchdog look at, files that Git ignores included.
func workspaceSize() Rule {
	small := policy.Effective{Changes: policy.Changes{MaxWorkspaceSize: 1000, MaxWorkspaceFiles: 10}}
	return Rule{
		ID:         "workspace-size",
		Reason:     "WorkspaceTooLarge",
		Doc:        "All files of the workspace together, including files that Git ignores, must stay within the policy's bytes and number. A file that Git ignores counts with what it takes on the volume. If the files that Git does not ignore are too much, the watchdog reads none of them and promotes nothing.",
		Severity:   "always Error; the limits are changes.maxWorkspaceSize (by default 1Gi) and changes.maxWorkspaceFiles (by default 200000) of the policy",
		Suggestion: "remove what is not needed, for example build output and caches",
		check: func(v *view) []breach {
			limits := v.Policy.Changes
			var found []breach
			more := ""
			if v.Workspace.Uncounted {
				more = "more than "
			}
			if v.Workspace.Bytes > limits.MaxWorkspaceSize {
				found = append(found, breach{severity: policy.Error, message: fmt.Sprintf(
					"the workspace has %s%d bytes, the policy allows %d", more, v.Workspace.Bytes, limits.MaxWorkspaceSize)})
			}
			if v.Workspace.Files > limits.MaxWorkspaceFiles {
				found = append(found, breach{severity: policy.Error, message: fmt.Sprintf(
					"the workspace has %s%d files, the policy allows %d", more, v.Workspace.Files, limits.MaxWorkspaceFiles)})
			}
			if v.Workspace.Uncounted && len(found) == 0 {
				found = append(found, breach{severity: policy.Error, message: fmt.Sprintf(
					"the workspace has more files and directories, or longer paths, than a checkpoint looks at: it stopped after %d", v.Workspace.Files)})
			}
			return found
		},
		Reject: []Sample{
			{"too many bytes", Input{Policy: small, Workspace: Workspace{Files: 1, Bytes: 1001}}},
			{"too many files", Input{Policy: small, Workspace: Workspace{Files: 11, Bytes: 1}}},
			{"more than were counted", Input{Policy: small, Workspace: Workspace{Files: 5, Bytes: 1, Uncounted: true}}},
		},
		Accept: []Sample{
			{"just within", Input{Policy: small, Workspace: Workspace{Files: 10, Bytes: 1000}}},
		},
	}
}
