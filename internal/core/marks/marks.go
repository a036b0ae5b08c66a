// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marks finds in a text what only Tidewaiter writes to agents. A text of others that has it could pass for Tidewaiter's own.
package marks

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// directive is how the lines about a directive begin.
const directive = "DIRECTIVE "

// Find returns a mark of Tidewaiter that the text has; empty if it has none. Its cost is linear in the text.
func Find(text string) string {
	upper := strings.ReplaceAll(words(strings.ToUpper(text)), "# ", "#")
	if strings.Contains(upper, steering.Tag) {
		return steering.Tag
	}
	for _, title := range instructions.Titles() {
		if strings.Contains(text, title) && strings.Contains(title, " ") || strings.Contains(upper, "#"+title) {
			return title
		}
	}
	if strings.Contains(text, directive) {
		return strings.TrimSpace(directive)
	}
	return compose.Marker(text)
}

// words of a text, with one space between them.
func words(text string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}
