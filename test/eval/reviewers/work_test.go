// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package reviewers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// Stages of a chore: its model knows nothing of the convention, has the document of it, and addresses the directives of a reviewer.
const (
	untaught = "untaught"
	taught   = "taught"
	reviewed = "reviewed"
)

// addedFile is what the model writes, and besideFile what the reviewer compares it with.
const addedFile, besideFile = "added.go", "beside.go"

// worker does chores: the model that is asked, and what stands behind the words to it and to the reviewer, for a scripted model.
type worker struct {
	ask    func(q speech.Question) answered
	script func(c chore, stage string) string
}

// done is what came of a chore in a stage.
type done struct {
	code       string
	directives int
	// tokens that the stage took, with those of the stage before it for a reviewed one.
	tokens int64
}

// writeFile is the tool that the model has.
var writeFile = speech.Tool{
	Name: "write_file", Description: "Writes the file " + addedFile + " of the package.",
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["content"],"properties":{"content":{"type":"string","minLength":1,"maxLength":20000}}}`),
}

// write asks the model for the file.
func (w worker) write(c chore, facts instructions.Facts, work, stage string) done {
	facts.Feature, facts.Current = c.name, c.name
	text := facts.Text(work + "\n\nThe package has these declarations, besides others:\n\n" + c.declared + w.script(c, stage))
	a := w.ask(speech.Question{System: "You write Go. Answer with one call of " + writeFile.Name + ", with the whole file.", Text: text, Tool: writeFile, MaxOutput: 4000})
	var file struct{ Content string }
	_ = json.Unmarshal(a.arguments, &file) // no file is work that its gate refuses
	return done{code: file.Content, tokens: a.tokens}
}

// bare has the model do a chore without knowing of the convention.
func (w worker) bare(c chore) done {
	return w.write(c, instructions.Facts{}, c.request, untaught)
}

// told has the model do it with the document of the convention.
func (w worker) told(t *testing.T, c chore) done {
	t.Helper()
	file := "docs/knowledge/conventions/" + c.name + ".md"
	d, err := knowledge.Parse(file, []byte("# "+c.name+"\n\n_Last updated by: a user_\n_Status: established_\n\n## Rules\n\n* "+c.convention+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := knowledge.Select([]knowledge.Document{d}, knowledge.Task{Text: c.request}, instructions.KnowledgeRoom())
	return w.write(c, instructions.Facts{Knowledge: s.Lines}, c.request, taught)
}

// review has the reviewer of code style look at work that is done, and the model address its directives.
func (w worker) review(t *testing.T, c chore, before done) done {
	t.Helper()
	r, known := review.Find(style, policy.Effective{})
	if !known {
		t.Fatalf("no reviewer %q", style)
	}
	a := w.ask(review.Question(review.Scene{
		Reviewer: r, Request: c.request, Task: c.name, Milestone: c.name, Nonce: nonce, MaxFindings: most, Team: w.script(c, reviewed),
		Done:    []review.Done{{Name: c.name, Instructions: c.request}},
		Changes: []review.Change{{Path: addedFile, Kind: judge.Added, Size: int64(len(before.code)), Diff: added(strings.Split(strings.TrimSuffix(before.code, "\n"), "\n"))}},
		Peers:   []review.Peer{{Path: besideFile, Text: c.neighbour}},
	}))
	after := done{code: before.code, tokens: before.tokens + a.tokens}
	said, objection := review.Read(r, false, a.arguments)
	if objection != "" {
		t.Logf("%s: the answer of the reviewer is not used: %s", c.name, objection)
		return after
	}
	files := map[string]string{addedFile: before.code, besideFile: c.neighbour}
	kept, _ := review.Keep(r, said, func(path string) (string, bool) { text, is := files[path]; return text, is }, func(string) bool { return false }, most)
	if len(kept) == 0 {
		return after
	}
	facts := instructions.Facts{Directives: directives.Book{}.Given(kept, 0).Instructions()}
	again := w.write(c, facts, "The work is done. Address each directive of ACTIVE DIRECTIVES. The request was: "+c.request+"\n\n"+addedFile+" is now:\n\n"+before.code, reviewed)
	return done{code: again.code, directives: len(kept), tokens: after.tokens + again.tokens}
}

// chores of all stages, by stage and in the sequence of the list.
func (w worker) chores(t *testing.T, list []chore) map[string][]done {
	t.Helper()
	all := map[string][]done{}
	for _, c := range list {
		before := w.bare(c)
		all[untaught] = append(all[untaught], before)
		all[taught] = append(all[taught], w.told(t, c))
		all[reviewed] = append(all[reviewed], w.review(t, c, before))
	}
	return all
}

// refused by the gate, which is go vet: it compiles what the model has written, and does not run it. The keys have the form of folder.
func refused(t *testing.T, list []chore, all map[string][]done) map[string]bool {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module chores\n\ngo 1.26\n"}
	for stage, work := range all {
		for i, c := range list {
			at := folder(stage, i)
			for name, text := range map[string]string{"declared.go": c.declared, besideFile: c.neighbour, "uses.go": "package p\n\n" + c.uses + "\n", addedFile: work[i].code} {
				files[filepath.Join(at, name)] = text
			}
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil { //nolint:gosec // a folder of the test
			t.Fatal(err)
		}
	}
	gate := exec.CommandContext(t.Context(), "go", "vet", "./...")
	gate.Dir, gate.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	out, err := gate.CombinedOutput()
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# (?:\[)?chores/([a-z]+/[0-9]+)`).FindAllStringSubmatch(string(out), -1) {
		names[m[1]] = true
	}
	if (err != nil) != (len(names) > 0) {
		t.Fatalf("go vet: %v\n%s", err, out)
	}
	if len(names) > 0 {
		t.Logf("%s", out)
	}
	return names
}

// folder of a package.
func folder(stage string, i int) string { return fmt.Sprintf("%s/%d", stage, i) }

// figures of a stage.
type figures struct {
	chores, passed, kept, directives int
	tokens                           int64
}

// measure the stages.
func measure(t *testing.T, list []chore, all map[string][]done) map[string]figures {
	t.Helper()
	bad, sums := refused(t, list, all), map[string]figures{}
	for stage, work := range all {
		sum := figures{chores: len(list)}
		for i, w := range work {
			if !bad[folder(stage, i)] {
				sum.passed++
			}
			if list[i].keepsTo(w.code) {
				sum.kept++
			}
			sum.directives, sum.tokens = sum.directives+w.directives, sum.tokens+w.tokens
		}
		sums[stage] = sum
	}
	return sums
}

// tables of the figures.
func tables(sums map[string]figures) string {
	var b strings.Builder
	b.WriteString("### Conventions that are written down\n\n| what the model gets | tasks | keep to the convention | pass their gate |\n|--|--|--|--|\n")
	for _, row := range []struct{ stage, words string }{{untaught, "the request"}, {taught, "the request, and the convention as a document"}} {
		s := sums[row.stage]
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", row.words, s.chores, s.kept, s.passed)
	}
	b.WriteString("\n### Work with and without reviewers\n\n| reviewers | tasks | pass their gate | depart from the convention | directives | tokens |\n|--|--|--|--|--|--|\n")
	for _, row := range []struct{ stage, words string }{{untaught, "none"}, {reviewed, style}} {
		s := sums[row.stage]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", row.words, s.chores, s.passed, s.chores-s.kept, s.directives, s.tokens)
	}
	return b.String()
}

// script of a model for a chore: at first it departs from the convention, and it keeps to the convention as soon as a document or a directive names it.
func (c chore) script(stage string) string {
	code := c.follows
	if stage == untaught {
		code = c.departs
	}
	line := slices.IndexFunc(strings.Split(c.departs, "\n"), func(l string) bool { return strings.Contains(l, c.at) })
	var text strings.Builder
	for tool, input := range map[string]any{
		writeFile.Name: map[string]any{"content": code},
		"report_findings": map[string]any{"summary": "A departure.", "findings": []map[string]any{{
			"path": addedFile, "line": line + 1, "quote": strings.TrimSpace(strings.Split(c.departs, "\n")[line]),
			"rule": c.name, "description": plain.Line(c.convention, review.MaxDescription), "priority": protocol.PriorityLow,
		}}},
	} {
		said, err := json.Marshal(input)
		if err != nil {
			return err.Error() // which is no script
		}
		fmt.Fprintf(&text, "\n\n```script %s\nturns:\n- tool: {name: %s, input: %s}\n```", tool, tool, said)
	}
	return text.String()
}

// TestChores: the tables say what documents and reviewers change. The model is the scripted provider.
func TestChores(t *testing.T) {
	const key = "key-of-the-eval"
	server := httptest.NewServer(provider.New(key))
	defer server.Close()
	client, list := model{url: server.URL, key: key, name: "large", dialect: "anthropic"}.client(t), chores()
	var tokens int64
	w := worker{script: chore.script, ask: func(q speech.Question) answered {
		a := ask(t, client, q)
		tokens += a.tokens
		return a
	}}
	all := w.chores(t, list)
	for i, c := range list {
		if all[untaught][i].code != c.departs || all[taught][i].code != c.follows || all[reviewed][i].code != c.follows {
			t.Errorf("%s: the model has written\n%s\n%s\n%s", c.name, all[untaught][i].code, all[taught][i].code, all[reviewed][i].code)
		}
	}
	sums := measure(t, list, all)
	if n := len(list); sums[untaught].kept != 0 || sums[taught].kept != n || sums[reviewed].kept != n || sums[reviewed].directives != n {
		t.Errorf("figures %+v", sums)
	}
	for stage, s := range sums {
		if s.chores != 20 || s.passed != 20 || s.tokens == 0 || s.tokens >= tokens {
			t.Errorf("%s: %+v", stage, s)
		}
	}
	// A gate refuses what does not compile, and says nothing of the other packages.
	all[taught][3].code, all[reviewed][5].code = "package p\n\nfunc {\n", "package p\n\nvar unused = Missing\n"
	if bad := refused(t, list, all); len(bad) != 2 || !bad[folder(taught, 3)] || !bad[folder(reviewed, 5)] {
		t.Errorf("refused: %v", bad)
	}
	sums[untaught], sums[reviewed] = figures{chores: 20, passed: 19, kept: 6, tokens: 20000}, figures{chores: 20, passed: 20, kept: 17, directives: 12, tokens: 61000}
	if text := tables(sums); !strings.Contains(text, "| none | 20 | 19 | 14 | 0 | 20000 |\n| CodeStyle | 20 | 20 | 3 | 12 | 61000 |") {
		t.Errorf("tables:\n%s", text)
	}
}
