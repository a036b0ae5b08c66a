// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// hiddenCharacters exists because a reviewer sees another program than the compiler where text turns its direction
// (CVE-2021-42574), and because an agent reads instructions in tags that no person sees.
func hiddenCharacters() Rule {
	with := func(path, content string) Input {
		return Input{
			Changes:  []Change{{Path: path, Kind: Added, New: Entry{Mode: ModeFile, ID: otherID}}},
			Contents: contentsOf(map[string]string{otherID: content}),
		}
	}
	allowed := with("a.go", "a\u202eb")
	allowed.Policy.Changes.HiddenCharacters = policy.Allow
	changed := func(before, now string) Input {
		return Input{Changes: []Change{modifyFile("a.go")}, Contents: contentsOf(map[string]string{sampleID: before, otherID: now})}
	}
	return Rule{
		ID:     "hidden-characters",
		Reason: "HiddenCharacter",
		Doc: "No source code, configuration or file that steers agents (AGENTS.md, .claude and the like) should get invisible characters that change what a reader reads. They turn the direction of text, have no width, or are tags (U+E0000 to U+E007F). " +
			"They are also variation selectors and joiners that neither writing nor emoji need. A byte order mark at the beginning does not count.",
		Severity:   "changes.hiddenCharacters of the policy, by default Warn",
		Suggestion: "remove the character; in a string that needs it, write its escape, such as \\u200b",
		check: func(v *view) []breach {
			severity, broken := v.Policy.Changes.HiddenCharacters.Severity()
			if !broken {
				return nil
			}
			var found []breach
			for i, f := range v.facts {
				if f.hidden.count > 0 {
					found = append(found, breach{
						path: v.changes[i].Path, severity: severity,
						message: fmt.Sprintf("line %d has the hidden character %U", f.hidden.line, f.hidden.rune),
					})
				}
			}
			return found
		},
		Reject: []Sample{
			{"text that turns its direction", with("a.go", "if access != \"user\u202e \u2066// admin\u2069 \u2066\" {")},
			{"a space without a width", with("a.py", "pass\u200bword = 1")},
			{"an instruction in tags", with("AGENTS.md", "Be kind.\U000e0069\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065")},
			{"a file of a directory that steers", with(".claude/commands/a.txt", "a\u2060b")},
			{"bytes in variation selectors", with("a.ts", "x\ufe01\U000e0120")},
			{"a joiner in an identifier", with("a.js", "ab\u200dc")},
			{"a byte order mark in the middle", with("a.c", "a\ufeffb")},
			{"one more than before", changed("a\u202eb", "a\u202eb\u202ec")},
		},
		Accept: []Sample{
			{"plain text", with("a.go", "package a // naïve, 漢字, שלום\n")},
			{"a byte order mark at the beginning", with("a.cs", "\ufeffclass A {}")},
			{"emoji", with("a.go", "// 👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f\n")},
			{"Persian", with("a.go", "// می\u200cخواهم\n")},
			{"prose", with("docs/arabic.txt", "a\u200fb")},
			{"a character that was there before", changed("a\u202eb", "\na\u202eb")},
			{"if allowed", allowed},
		},
	}
}
