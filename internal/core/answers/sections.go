// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"strings"
)

// sections are Markdown headings of any level.
func sections(c Checks, text string) []Violation {
	if len(c.Sections) == 0 {
		return nil
	}
	have := headings(text)
	var found []Violation
	for _, s := range c.Sections {
		if !have[key(s)] {
			found = append(found, Violation{MissingRequiredSection, Major, fmt.Sprintf("The section %q is missing: add a heading \"## %s\" with its content.", title(s), title(s))})
		}
	}
	return found
}

// headings of a text, outside of its fenced code.
func headings(text string) map[string]bool {
	have := map[string]bool{}
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch mark := fenceOf(line); {
		case fence == "" && mark != "":
			fence = mark
		case fence != "" && strings.HasPrefix(mark, fence) && strings.Trim(line, fence[:1]) == "":
			fence = ""
		case fence == "" && strings.HasPrefix(line, "#"):
			have[key(line)] = true
		}
	}
	return have
}

// fenceOf is the run of at least three marks that a fence of code begins with; empty for any other line.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= len("```") && (mark == "~" || !strings.Contains(rest, mark)) { // else it is code in a line
			return line[:n]
		}
	}
	return ""
}

// title of a section, without the marks of a heading.
func title(section string) string {
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(section), "#"))
}

// key under which a section is found: its title, whatever its case, with or without a colon.
func key(section string) string {
	return strings.ToLower(strings.Trim(title(section), "*_: "))
}
