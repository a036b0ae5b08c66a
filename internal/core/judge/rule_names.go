// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// names keeps new names to ones that mean the same everywhere and to everyone: what a reviewer reads is what is there,
// and two names that look different are two files on every machine. Names of the base are left alone.
func names() Rule {
	return Rule{
		ID:         "names",
		Reason:     "BadName",
		Doc:        "New names must be UTF-8 in composed form (NFC), without control, bidirectional, zero-width or other invisible characters. They must not look like a short name of NTFS (LONGNA~1). They must differ from every other name in their directory by more than case, Unicode compatibility, invisible characters, or dots and spaces at the end.",
		Severity:   "always Error",
		Suggestion: "rename it, plainly",
		check:      badNames,
		Reject: []Sample{
			{"a control character", Input{Changes: []Change{addFile("a\x1b[2J")}}},
			{"a line break", Input{Changes: []Change{addFile("a\nb")}}},
			{"a C1 control character", Input{Changes: []Change{addFile("a\u0085b")}}},
			{"not UTF-8", Input{Changes: []Change{addFile("a\xff")}}},
			{"a reversed name", Input{Changes: []Change{addFile("a\u202egpj.exe")}}},
			{"a zero-width character", Input{Changes: []Change{addFile("con\u200bfig")}}},
			{"a filler", Input{Changes: []Change{addFile("a\u3164")}}},
			{"a decomposed name", Input{Changes: []Change{addFile("cafe\u0301")}}},
			{"a short name", Input{Changes: []Change{addFile("GITMOD~1")}}},
			{"a name that differs by case", Input{Changes: []Change{addFile("readme.md")}, Names: treeOf("README.md", "readme.md")}},
			{"a directory that differs by case", Input{Changes: []Change{addFile("Web/b.js")}, Names: treeOf("web/a.js", "Web/b.js")}},
			{"a name that differs by folding in full", Input{Changes: []Change{addFile("strasse")}, Names: treeOf("straße", "strasse")}},
			{"a name that differs by compatibility", Input{Changes: []Change{addFile("ﬁle")}, Names: treeOf("file", "ﬁle")}},
			{"a name that differs by a dot at the end", Input{Changes: []Change{addFile("a.")}, Names: treeOf("a", "a.")}},
			{"two new names", Input{Changes: []Change{addFile("d/x"), addFile("d/X")}, Names: treeOf("d/x", "d/X")}},
			{"a tree that cannot be listed", Input{Changes: []Change{addFile("a")}, Names: func([]string) map[string][]string { return nil }}},
			{"a tree without the new name", Input{Changes: []Change{addFile("a")}, Names: treeOf("b")}},
		},
		Accept: []Sample{
			{"plain names", Input{Changes: []Change{addFile("web/index.html"), addFile("docs/日本語.md"), addFile("a b/café"), addFile("x~"), addFile("-rf")}}},
			{"a bad name of the base", Input{Changes: []Change{modifyFile("a\x1b"), deleteFile("b\xff")}}},
			{"a name that replaced its twin", Input{Changes: []Change{deleteFile("README"), addFile("readme")}, Names: treeOf("readme")}},
			{"a file next to twins of the base", Input{
				Changes:   []Change{addFile("Web/c.js")},
				Names:     treeOf("web/a.js", "Web/b.js", "Web/c.js"),
				BaseNames: treeOf("web/a.js", "Web/b.js"),
			}},
		},
	}
}

// badNames finds added paths with a name that is bad by itself or together with others.
func badNames(v *view) []breach {
	var found []breach
	for _, c := range v.changes {
		if !c.added() {
			continue
		}
		for name := range strings.SplitSeq(c.Path, "/") {
			if fault := nameFault(name); fault != "" {
				found = append(found, breach{path: c.Path, severity: policy.Error, message: fault})
				break
			}
		}
	}
	return append(found, v.collisions()...)
}

// nameFault says why a new name is bad by itself, or "".
func nameFault(name string) string {
	if !visibleASCII(name) {
		if fault := unicodeFault(name); fault != "" {
			return fault
		}
	}
	if shortName(name) {
		return fmt.Sprintf("the name %s looks like a short name of NTFS, which stands for another file there", quoteName(name))
	}
	return ""
}

// unicodeFault says why a name is not what it looks like, or "".
func unicodeFault(name string) string {
	if !utf8.ValidString(name) {
		return fmt.Sprintf("the name %s is not UTF-8", quoteName(name))
	}
	for _, r := range name {
		if plain.Invisible(r) {
			return fmt.Sprintf("the name %s has the invisible character %U", quoteName(name), r)
		}
	}
	if !norm.NFC.IsNormalString(name) {
		return fmt.Sprintf("the name %s is not in composed form (NFC)", quoteName(name))
	}
	return ""
}

// shortName says whether NTFS could make up a name as the short one of another: up to six characters, a tilde and a
// number, eight characters in all, and an extension of up to three.
func shortName(name string) bool {
	base, extension, _ := strings.Cut(name, ".")
	stem, number, ok := strings.Cut(base, "~")
	return ok && stem != "" && digits(number) && len(base) <= 8 && len(extension) <= 3
}
