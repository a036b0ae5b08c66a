// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
)

// wholeAgain is the document whole as Tidewaiter writes it.
const wholeAgain = `# Errors

_Last updated by: Code style reviewer, add-login/page/form_
_Status: provisional_
_Supersedes: docs/knowledge/conventions/old.md, docs/knowledge/lessons/panics.md_
_Confidence: high_
_Paths: ` + "`*.go`, `web/**`" + `_

## Rules

* Wrap errors with %w.
* See [the handler](../../../web/handler.go#L4).

## Examples

Good:

` + "```go\n## Not a section\nreturn fmt.Errorf(\"save: %w\", err)\n```" + `

## Rationale

Callers compare errors.

## Changelog

* add-login/page/form: new
`

func TestText(t *testing.T) {
	d, err := knowledge.Parse(where, []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wholeAgain, d.Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRKnowADocumentThatWasWrittenIsReadAsItWas, whatever it has.
func TestRKnowADocumentThatWasWrittenIsReadAsItWas(t *testing.T) {
	line := rapid.StringOfN(rapid.SampledFrom([]rune("ab `~_*#[]():,/.\t\\<ü")), 0, 40, -1)
	lines := func(r *rapid.T, name string) []string { return rapid.SliceOfN(line, 0, 8).Draw(r, name) }
	read := 0
	rapid.Check(t, func(r *rapid.T) {
		content := "# " + line.Draw(r, "title") + "\n" + head
		if paths := rapid.SliceOfN(line, 0, 3).Draw(r, "paths"); len(paths) > 0 {
			content += "_Paths: " + strings.Join(paths, ",") + "_\n"
		}
		for _, section := range []string{"Rationale", "Rules", "Changelog", "Examples"} {
			content += "## " + section + "\n" + strings.Join(lines(r, section), "\n") + "\n"
		}
		d, err := knowledge.Parse(where, []byte(content))
		if err != nil {
			r.Skip(err)
		}
		read++
		again, err := knowledge.Parse(where, []byte(d.Text()))
		if diff := cmp.Diff(d, again); err != nil || diff != "" {
			r.Errorf("%v (-written +read):\n%s\nof %q", err, diff, content)
		}
	})
	if read == 0 {
		t.Error("no document was read")
	}
}

func TestRKnowIndex(t *testing.T) {
	titled := func(title string) func(*knowledge.Document) { return func(d *knowledge.Document) { d.Title = title } }
	documents := []knowledge.Document{
		document(knowledge.Lessons, "flush", with(knowledge.StatusProvisional, knowledge.Low)),
		document(knowledge.Conventions, "old", with(knowledge.StatusDeprecated, knowledge.Low), titled("Old names")),
		document(knowledge.Design, "api", titled("The [API](a.md) <b>")), document(knowledge.Conventions, "errors", titled("Errors")),
	}
	const want = `# Knowledge of the project

* [conventions/errors.md](conventions/errors.md): Errors (established)
* [conventions/old.md](conventions/old.md): Old names (deprecated)
* [design/api.md](design/api.md): The \[API\](a.md) \<b> (established)
* [lessons/flush.md](lessons/flush.md): flush (provisional)
`
	for range 2 {
		if diff := cmp.Diff(want, knowledge.Index(documents)); diff != "" || !knowledge.IsIndex(want) {
			t.Errorf("is an index: %v (-want +got):\n%s", knowledge.IsIndex(want), diff)
		}
		slices.Reverse(documents)
	}
	for text, is := range map[string]bool{
		"": true, "# Knowledge of the project\r\n": true, want + "* [a.md](a.md): A (established)": true, want + "Read names first.\n": false,
		"# Our documents\n": false, "* [a.md](b.md): A (established)\n": false, want + "<<<<<<< HEAD\n": false,
	} {
		if knowledge.IsIndex(text) != is {
			t.Errorf("%q is an index: %v, want %v", text, !is, is)
		}
	}
	if _, _, err := knowledge.Locate(knowledge.IndexPath); err == nil {
		t.Error("the index is read as a document")
	}
}
