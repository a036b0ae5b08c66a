// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// readableContent exists because what could not be read would otherwise break no rule about content.
func readableContent() Rule {
	large := addFile("a")
	large.New.Size = maxContent + 1
	old := deleteFile("a")
	old.Old.Size = maxContent + 1
	none := func(ids []string, _ int64, visit func(int, []byte, bool)) {
		for i := range ids {
			visit(i, nil, false)
		}
	}
	return Rule{
		ID:         "readable-content",
		Reason:     "ContentNotJudged",
		Doc:        fmt.Sprintf("The content of every new or changed file must be readable and have at most %d bytes, whatever size the policy allows. Otherwise the rules about content cannot check it.", maxContent),
		Severity:   "always Error",
		Suggestion: "remove the file or make it smaller; if it is small, this is a fault of Tidewaiter or of its volume: see the watchdog's log",
		check: func(v *view) []breach {
			var found []breach
			for i, f := range v.facts {
				if f.fault != "" {
					found = append(found, breach{path: v.changes[i].Path, severity: policy.Error, message: f.fault})
				}
			}
			return found
		},
		Reject: []Sample{
			{"a content that cannot be read", Input{Changes: []Change{addFile("a")}, Contents: none}},
			{"an old content that cannot be read", Input{Changes: []Change{deleteFile("a")}, Contents: none}},
			{"a content that is never brought", Input{Changes: []Change{modifyFile("a")}, Contents: func([]string, int64, func(int, []byte, bool)) {}}},
			{"a content that is too large", Input{Changes: []Change{large}}},
		},
		Accept: []Sample{
			{"a content that can be read", Input{Changes: []Change{addFile("a")}}},
			{"a large file that is removed", Input{Changes: []Change{old}}},
			{"a file that became executable", Input{Contents: none, Changes: []Change{{
				Path: "a", Kind: Modified, Old: Entry{Mode: ModeFile, ID: sampleID}, New: Entry{Mode: ModeExecutable, ID: sampleID},
			}}}},
		},
	}
}

// tooLarge is the fault of a content that is not looked at for its size.
func tooLarge(size int64) string {
	return fmt.Sprintf("the watchdog cannot check its content: it has %d bytes, and the limit is %d", size, maxContent)
}
