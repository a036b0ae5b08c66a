// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/json"
	"strings"
)

// Placeholder stands for the answer in the text of an Output template.
const Placeholder = "{{OUTPUT}}"

// format puts templates around a text, one after the other: where the placeholder stands, or before it with an empty line between.
func (r Rules) format(text string) string {
	for _, f := range r.Formats {
		if before, after, has := strings.Cut(f, Placeholder); has {
			text = before + text + after
		} else {
			text = f + "\n\n" + text
		}
	}
	return text
}

// correct a text. What is corrected already stays as it is.
func (c Checks) correct(text string) string {
	if c.Correct.TrimSpace {
		text = strings.TrimSpace(text)
	}
	if c.Correct.StripFence {
		text = withoutFence(text)
	}
	if !c.Correct.AddSections || strings.TrimSpace(text) == "" {
		return text
	}
	have := headings(text)
	for _, s := range c.Sections {
		if !have[key(s)] {
			text = strings.TrimRight(text, "\n") + "\n\n## " + title(s)
			have[key(s)] = true
		}
	}
	return text
}

// withoutFence is the JSON in a fence, where a text is nothing else; any other text as it is.
func withoutFence(text string) string {
	inner := strings.TrimSpace(text)
	first, rest, more := strings.Cut(inner, "\n")
	mark := fenceOf(first)
	if mark == "" || !more {
		return text
	}
	inner, closed := strings.CutSuffix(strings.TrimRight(rest, " \t\r\n"), mark)
	if !closed || !json.Valid([]byte(inner)) {
		return text
	}
	return strings.TrimSpace(inner)
}
