// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"slices"
	"strings"
)

// Text of a document, as its file has it. A document that Parse has read is the same when Parse reads its text, if the text has at most MaxSize bytes.
func (d Document) Text() string {
	var b strings.Builder
	if d.Title != "" {
		b.WriteString("# " + d.Title + "\n\n")
	}
	field := func(name, value string) {
		if value != "" {
			b.WriteString("_" + name + ": " + value + "_\n")
		}
	}
	field(fieldAuthor, d.Author)
	field(fieldStatus, string(d.Status))
	field(fieldSupersedes, strings.Join(d.Supersedes, ", "))
	field(fieldConfidence, string(d.Confidence))
	if len(d.Paths) > 0 {
		field(fieldPaths, "`"+strings.Join(d.Paths, "`, `")+"`")
	}
	section := func(name string, lines []string) {
		if len(lines) > 0 {
			b.WriteString("\n## " + name + "\n\n" + strings.Join(lines, "\n") + "\n")
		}
	}
	section(sectionRules, d.Rules)
	section(sectionExamples, d.Examples)
	section(sectionRationale, d.Rationale)
	section(sectionChangelog, d.Changelog)
	return b.String()
}

// IndexPath is the file with the index of the documents.
const IndexPath = Dir + "/_index.md"

// Index is the text of the index: one line for each document, sorted by path. It has neither dates nor totals, so that branches with other documents merge.
func Index(documents []Document) string {
	lines := make([]string, 0, len(documents))
	for i := range documents {
		d := &documents[i]
		below, title := strings.TrimPrefix(d.Path, Dir+"/"), d.Title
		if title == "" {
			title = d.Name
		}
		lines = append(lines, "* ["+below+"]("+below+"): "+escaped.Replace(title)+" ("+string(d.Status)+")\n")
	}
	slices.Sort(lines)
	return "# Knowledge of the project\n\n" + strings.Join(lines, "")
}

// escaped is a title without links and marks of Markdown: it stands in another folder than its document, and its links would lead elsewhere.
var escaped = strings.NewReplacer("[", `\[`, "]", `\]`, "<", `\<`, "`", "\\`", "*", `\*`, "_", `\_`, `\`, `\\`)
