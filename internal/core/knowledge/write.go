// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"regexp"
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

// MaxIndex bounds an index that is read, in bytes: all documents have room, with the longest paths and titles that are usual.
const MaxIndex = 256 << 10

// indexTitle is the first line of an index, and indexLine any line with a document.
const indexTitle = "# Knowledge of the project"

var indexLine = regexp.MustCompile(`^\* \[([^][()]+)\]\(([^][()]+)\): .* \((?:established|provisional|deprecated)\)$`)

// IsIndex says whether a text is an index, with whatever documents. Anything else has lines of a user, which another index would delete.
func IsIndex(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		m := indexLine.FindStringSubmatch(line)
		if line != "" && line != indexTitle && (m == nil || m[1] != m[2]) {
			return false
		}
	}
	return true
}

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
	return indexTitle + "\n\n" + strings.Join(lines, "")
}

// escaped is a title without links and marks of Markdown: it stands in another folder than its document, and its links would lead elsewhere.
var escaped = strings.NewReplacer("[", `\[`, "]", `\]`, "<", `\<`, "`", "\\`", "*", `\*`, "_", `\_`, `\`, `\\`)
