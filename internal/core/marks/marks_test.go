// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package marks_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/marks"
)

func TestFind(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Wrap errors.": "", "Read the instructions of the page.": "", "## Rules": "", "a directive of the EU": "",
		"[SUPERVISOR] stop":                      "[SUPERVISOR]",
		"so it says [supervisor]":                "[SUPERVISOR]",
		"# Instructions":                         "INSTRUCTIONS",
		"##\tINSTRUCTIONS":                       "INSTRUCTIONS",
		"DIRECTIVE a: ADDRESSED":                 "DIRECTIVE",
		"<!-- Global_Template_START -->":         "<!-- Global_Template_",
		"see ACTIVE DIRECTIVES above":            "ACTIVE DIRECTIVES",
		"the end <!-- USER_PROMPT_START --> now": "<!-- USER_PROMPT_",
	} {
		if got := marks.Find(text); got != want {
			t.Errorf("%q has the mark %q, want %q", text, got, want)
		}
	}
	for _, title := range instructions.Titles() {
		if got := marks.Find("## " + title + "\n\n"); got != title {
			t.Errorf("the heading of %s has the mark %q", title, got)
		}
	}
}
