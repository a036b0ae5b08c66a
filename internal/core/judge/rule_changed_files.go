// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// changedFiles keeps a delivery to a size that a reviewer can handle.
func changedFiles() Rule {
	two := policy.Effective{Changes: policy.Changes{MaxFiles: 2}}
	return Rule{
		ID:         "changed-files",
		Reason:     "TooManyFiles",
		Doc:        "No more paths may differ from the base than the policy allows.",
		Severity:   "always Error; the limit is changes.maxFiles of the policy, by default none",
		Suggestion: "undo changes that the task does not need, or split the work into several Features",
		check: func(v *view) []breach {
			most := v.Policy.Changes.MaxFiles
			if most == 0 || int64(len(v.Changes)) <= most {
				return nil
			}
			return []breach{{severity: policy.Error, message: fmt.Sprintf(
				"%d paths differ from the base, the policy allows %d", len(v.Changes), most)}}
		},
		Reject: []Sample{
			{"one too many", Input{Policy: two, Changes: []Change{addFile("a"), modifyFile("b"), deleteFile("c")}}},
		},
		Accept: []Sample{
			{"just within", Input{Policy: two, Changes: []Change{addFile("a"), deleteFile("c")}}},
			{"no limit", Input{Changes: []Change{addFile("a"), addFile("b"), addFile("c")}}},
		},
	}
}
