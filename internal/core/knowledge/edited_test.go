// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
)

// TestRKnowEditsOfUsersStay: a reviewer rewrites a provisional document of its own only as long as nobody has edited it. It can still supersede or deprecate it.
func TestRKnowEditsOfUsersStay(t *testing.T) {
	replaced := func(old, by string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, by, 1) }
	}
	for name, c := range map[string]struct {
		edit func(text string) string
		want knowledge.Status
	}{
		"as it was written":      {func(text string) string { return text }, knowledge.StatusProvisional},
		"other empty lines":      {replaced("## Rules\n\n", "\n\n## Rules\n"), knowledge.StatusProvisional},
		"another rule":           {replaced("no secrets", "no names"), knowledge.StatusEstablished},
		"another example":        {replaced(`log("saved")`, `log("done")`), knowledge.StatusEstablished},
		"another reason":         {replaced("Searches", "Users"), knowledge.StatusEstablished},
		"another title":          {replaced("# Logs", "# Logging"), knowledge.StatusEstablished},
		"other paths":            {replaced("`*.go`, ", ""), knowledge.StatusEstablished},
		"another confidence":     {replaced("medium", "low"), knowledge.StatusEstablished},
		"one more change":        {func(text string) string { return text + "* Ada: read it\n" }, knowledge.StatusEstablished},
		"no mark":                {replaced(" (text 56bb7ffe)", ""), knowledge.StatusEstablished},
		"another mark":           {replaced("(text 56bb7ffe)", "(text 56bb7fff)"), knowledge.StatusEstablished},
		"no changelog":           {func(text string) string { before, _, _ := strings.Cut(text, "\n## Changelog"); return before }, knowledge.StatusEstablished},
		"deprecated":             {replaced("_Status: provisional_", "_Status: deprecated_"), knowledge.StatusDeprecated},
		"provisional, of a user": {replaced("CodeStyle, add-login/page/form", "Ada, platform"), knowledge.StatusProvisional},
	} {
		const file = "docs/knowledge/conventions/logs.md"
		d, err := knowledge.Parse(file, []byte(c.edit(logsText)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := known()
		s.Base = append(s.Base, knowledge.Adopt([]knowledge.Document{d})...)
		if got := s.Base[len(s.Base)-1].Status; got != c.want {
			t.Errorf("%s: it is %s, want %s", name, got, c.want)
		}
		ours := c.want == knowledge.StatusProvisional && strings.HasPrefix(d.Author, "CodeStyle, ")
		if _, cause := s.Apply(note(), style); (cause == "") != ours || cause != "" && cause != knowledge.Taken {
			t.Errorf("%s: rewritten with the cause %q", name, cause)
		}
		if _, cause := s.Apply(note(func(n *knowledge.Note) { n.Name, n.Supersedes = "logging", []string{file} }), style); cause != "" {
			t.Errorf("%s: superseded with the cause %q", name, cause)
		}
	}
}

// TestWrittenDocumentsAreNotEdited: whatever reviewers write, the next Feature finds as it was written.
func TestWrittenDocumentsAreNotEdited(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab `~_*#.()0123456789:text\n")), 0, 60, -1)
	rapid.Check(t, func(r *rapid.T) {
		s := knowledge.Store{}
		for range rapid.IntRange(1, 14).Draw(r, "changes") {
			changed, cause := s.Apply(note(func(n *knowledge.Note) {
				n.Rules, n.Good, n.Rationale = append(n.Rules, text.Draw(r, "rule")), text.Draw(r, "good"), text.Draw(r, "rationale")
			}), style)
			if cause != "" {
				continue
			}
			if s.Written = changed; strings.Count(changed[0].Text(), " (text ") < 1 {
				r.Fatalf("no mark in\n%s", changed[0].Text())
			}
			read, err := knowledge.Parse(changed[0].Path, []byte(changed[0].Text()))
			if err != nil {
				r.Fatal(err)
			}
			if got := knowledge.Adopt([]knowledge.Document{read}); !slices.EqualFunc(got, changed, func(a, b knowledge.Document) bool { return a.Status == b.Status }) {
				r.Fatalf("it counts as edited:\n%s", changed[0].Text())
			}
		}
	})
}
