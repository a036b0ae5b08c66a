// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// fileSize exists because what is once in a Git history stays there, and because a file beyond the limit of the capture
// is not in the tree at all.
func fileSize() Rule {
	const limit = 1000
	small := policy.Effective{Changes: policy.Changes{MaxFileSize: limit}}
	sized := func(size int64) Change {
		return Change{Path: "a", Kind: Added, New: Entry{Mode: ModeFile, ID: sampleID, Size: size}}
	}
	return Rule{
		ID:         "file-size",
		Reason:     "FileTooLarge",
		Doc:        "No new file, and no file with new content, may be larger than the policy allows.",
		Severity:   "always Error; the limit is changes.maxFileSize of the policy, by default 50Mi",
		Suggestion: "remove the file, make it smaller, or add it to .gitignore before the Feature starts",
		check:      largeFiles,
		Reject: []Sample{
			{"one byte too many", Input{Policy: small, Changes: []Change{sized(limit + 1)}}},
			{"too large to be captured", Input{Policy: small, Found: []Found{{Path: "a", Kind: FoundTooLarge, Size: 1 << 40}}}},
			{"a file that grew", Input{Policy: small, Changes: []Change{{
				Path: "a", Kind: Modified,
				Old: Entry{Mode: ModeFile, ID: sampleID, Size: limit}, New: Entry{Mode: ModeFile, ID: otherID, Size: limit + 1},
			}}}},
		},
		Accept: []Sample{
			{"just within", Input{Policy: small, Changes: []Change{sized(limit)}}},
			{"a large file of the base that became executable", Input{Policy: small, Changes: []Change{{
				Path: "a", Kind: Modified,
				Old: Entry{Mode: ModeFile, ID: sampleID, Size: limit + 1}, New: Entry{Mode: ModeExecutable, ID: sampleID, Size: limit + 1},
			}}}},
			{"a large file that is removed", Input{Policy: small, Changes: []Change{{
				Path: "a", Kind: Deleted, Old: Entry{Mode: ModeFile, ID: sampleID, Size: limit + 1},
			}}}},
		},
	}
}

// largeFiles finds files beyond the limit, in the tree and left out of it.
func largeFiles(v *view) []breach {
	most := v.Policy.Changes.MaxFileSize
	var found []breach
	report := func(path string, size int64) {
		found = append(found, breach{
			path: path, severity: policy.Error,
			message: fmt.Sprintf("it has %d bytes, the policy allows %d", size, most),
		})
	}
	for _, f := range v.Found {
		if f.Kind == FoundTooLarge {
			report(f.Path, f.Size)
		}
	}
	for _, c := range v.changes {
		if c.New.Size > most && (c.New.ID != c.Old.ID || c.added()) {
			report(c.Path, c.New.Size)
		}
	}
	return found
}
