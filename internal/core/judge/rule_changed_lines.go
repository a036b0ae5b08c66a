// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// changedLines keeps a delivery to what a reviewer can read.
func changedLines() Rule {
	three := policy.Effective{Changes: policy.Changes{MaxLines: 3}}
	texts := contentsOf(map[string]string{sampleID: "a\nb\nc\n", otherID: "a\nx\ny\nc\n"})
	return Rule{
		ID:         "changed-lines",
		Reason:     "TooManyLines",
		Doc:        "The work must not add to and remove from all text files together more lines than the policy allows. A changed line counts twice: once removed, once added.",
		Severity:   "always Error; the limit is changes.maxLines of the policy, by default none",
		Suggestion: "undo changes that the task does not need, or split the work into several Features",
		check: func(v *view) []breach {
			most, lines := v.Policy.Changes.MaxLines, v.lines()
			if most == 0 || lines.Added+lines.Removed <= most {
				return nil
			}
			return []breach{{severity: policy.Error, message: fmt.Sprintf(
				"%d lines added and %d removed, the policy allows %d together", lines.Added, lines.Removed, most)}}
		},
		Reject: []Sample{
			{"one too many in two files", Input{Policy: three, Changes: []Change{modifyFile("a"), addLink("b", "c")}, Contents: texts}},
			{"a file of four lines", Input{Policy: three, Changes: []Change{{Path: "a", Kind: Added, New: Entry{Mode: ModeFile, ID: otherID}}}, Contents: texts}},
		},
		Accept: []Sample{
			{"just within", Input{Policy: three, Changes: []Change{modifyFile("a")}, Contents: texts}},
			{"a file of three lines that is removed", Input{Policy: three, Changes: []Change{deleteFile("a")}, Contents: texts}},
			{"no limit", Input{Changes: []Change{modifyFile("a"), addFile("b")}, Contents: texts}},
			{"a binary", Input{Policy: three, Changes: []Change{addFile("a")}, Contents: contentsOf(map[string]string{sampleID: "\x00\n\n\n\n\n"})}},
		},
	}
}
