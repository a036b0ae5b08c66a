// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// scripted is a breakpoint, what a model answers, and what comes of it.
type scripted struct {
	About, Request, Task, Milestone string
	Done                            []review.Done
	Ahead                           []review.Ahead
	// Files of the tree, and Changes in it, as lines.
	Files   map[string][]string
	Changes []struct {
		Path string
		Kind judge.Kind
		Diff []string
	}
	Open []protocol.Directive
	// Answered directives, of which those of StillThere count as still there.
	Answered   []review.Answered
	StillThere []string
	// Known are findings that there were directives for.
	Known []review.Finding
	// Found is what other reviewers have said, for the assessor, and Outcome that of its verdict.
	Found   []protocol.ReviewStatus
	Outcome string
	// Existing are files of the repository, as lines, for a reviewer that establishes.
	Existing map[string][]string
	// Writes: the reviewer can write documents. Base has the documents of the base, as lines, and Mended are failures that were corrected.
	Writes bool
	Base   map[string][]string
	Mended []review.Mended
	Answer json.RawMessage
	// Objection to the answer; otherwise the Directives, the Discarded findings as "rule: reason", and the Words for users.
	Objection  string
	Directives []struct{ Priority, Description string }
	Discarded  []string
	Words      string
	// Documents that are written, as lines, and the causes why others are Refused.
	Documents map[string][]string
	Refused   []string
}

// store has the documents of the base.
func (c scripted) store(t *testing.T) (s knowledge.Store) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(c.Base)) {
		text := strings.Join(c.Base[name], "\n") + "\n"
		d, err := knowledge.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(name, err)
		}
		s.Base, s.Files = append(s.Base, d), append(s.Files, knowledge.File{Path: name, Size: int64(len(text)), Regular: true})
	}
	return s
}

// writes compares the documents that are written, and returns their number.
func (c scripted) writes(t *testing.T, r review.Reviewer, a review.Answer) int {
	t.Helper()
	if !c.Writes {
		return 0
	}
	changed, _, refused := c.store(t).Write(a.Documents, knowledge.Author{Reviewer: r.Name, Kinds: r.Knows, Feature: "add-login", Task: c.Task})
	var documents map[string][]string
	for i := range changed {
		if documents == nil {
			documents = map[string][]string{}
		}
		documents[changed[i].Path] = strings.Split(strings.TrimSuffix(changed[i].Text(), "\n"), "\n")
	}
	var causes []string
	for _, cause := range refused {
		causes = append(causes, string(cause))
	}
	if diff := cmp.Diff(c.Documents, documents); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Refused, causes); diff != "" {
		t.Errorf("documents that do not count (-want +got):\n%s", diff)
	}
	return len(changed)
}

func (c scripted) text(name string) (string, bool) {
	lines, is := c.Files[name]
	return strings.Join(lines, "\n") + "\n", is
}

// seen are the lines that a question shows of files, without their numbers and signs.
func seen(question string) string {
	var b strings.Builder
	_, changes, _ := strings.Cut(question, "<changes ")
	for line := range strings.Lines(changes) {
		if len(line) > 7 {
			b.WriteString(line[7:])
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// TestRStyleScripted, TestRDesignScripted, TestRIntScripted and TestRLScripted play breakpoints: a reviewer finds what it should, is silent on good work, and what others have
// written does not make a directive.
func TestRStyleScripted(t *testing.T)  { playAll(t, reviewer(t, style), style) }
func TestRDesignScripted(t *testing.T) { playAll(t, reviewer(t, design), design) }
func TestRIntScripted(t *testing.T)    { playAll(t, reviewer(t, knower), knower) }
func TestRLScripted(t *testing.T)      { playAll(t, reviewer(t, assessor), assessor) }

// TestCustomScripted plays the same for a reviewer of migrations, which sees files of its paths only.
func TestCustomScripted(t *testing.T) {
	p := policy.Effective{Reviewers: policy.Reviewers{Custom: []policy.CustomReviewer{
		{Name: "migrations", Instructions: "No migration rewrites a whole table.", Paths: []string{"db/migrations"}, Priority: policy.ReviewNormal},
	}}}
	r, _ := review.Find("custom/migrations", p)
	playAll(t, r, "custom")
}

// TestEveryReviewerIsScripted: each one has a folder with its name, and cases of every kind in it.
func TestEveryReviewerIsScripted(t *testing.T) {
	for _, r := range review.All(writing()) {
		for _, kind := range []string{"finds", "silent", "steered"} {
			if files, err := filepath.Glob(filepath.Join("testdata", r.Name, kind+"*.json")); err != nil || len(files) == 0 {
				t.Errorf("testdata/%s has no case whose name begins with %s: %v", r.Name, kind, err)
			}
		}
	}
}

// playAll plays the cases of a reviewer, which are in a folder of testdata.
func playAll(t *testing.T, r review.Reviewer, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d cases: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c scripted
			in := json.NewDecoder(bytes.NewReader(text))
			in.DisallowUnknownFields()
			if err := in.Decode(&c); err != nil {
				t.Fatal(err)
			}
			c.play(t, r)
		})
	}
}

func (c scripted) play(t *testing.T, r review.Reviewer) {
	s := review.Scene{Reviewer: r, Request: c.Request, Task: c.Task, Milestone: c.Milestone, Done: c.Done, Ahead: c.Ahead, Directives: c.Open, Answered: c.Answered, Found: c.Found, Nonce: secret, Writes: c.Writes, Mended: c.Mended}
	for _, change := range c.Changes {
		s.Changes = append(s.Changes, review.Change{Path: change.Path, Kind: change.Kind, Diff: strings.Join(change.Diff, "\n") + "\n"})
	}
	if c.Existing != nil {
		if !r.Establishes(review.Look{}, c.store(t)) {
			t.Fatal("the reviewer does not establish")
		}
		s.Baseline = baseline(c.Existing)
	}
	q := review.Question(s)
	if wrong := enclosed(q, secret); wrong != "" || size(q) > review.MaxQuestion {
		t.Errorf("%s:\n%s", wrong, q.Text)
	}
	for name, lines := range c.Existing { // a model cannot obey or learn what it is not shown
		if !strings.Contains(q.Text, "== "+name+"\n  "+lines[0]+"\n") {
			t.Errorf("the question does not show %s:\n%s", name, q.Text)
		}
	}
	if r.Assesses {
		c.assess(t, r, q.Text)
		return
	}
	a, objection := review.Read(r, c.Writes, c.Answer)
	if c.Objection != "" {
		if !strings.Contains(objection, c.Objection) {
			t.Errorf("objection %q, want %q", objection, c.Objection)
		}
		return
	}
	if objection != "" {
		t.Fatal(objection)
	}
	text := r.Within(c.text)
	before, _ := review.Keep(r, review.Answer{Findings: described(c.Known)}, text, fresh, len(c.Known))
	known := map[string]bool{}
	for _, d := range before {
		known[d.ID] = true
	}
	kept, discarded := review.Keep(r, a, text, func(id string) bool { return known[id] }, 3)
	still, others := review.StillThere(a, review.Shown(c.Answered), text)
	if discarded = append(discarded, others...); !slices.Equal(still, c.StillThere) {
		t.Errorf("still there: %q, want %q", still, c.StillThere)
	}
	c.holds(t, kept, discarded)
	said := review.Words(r, len(a.Findings), len(kept)) + review.StillWords(len(still), 0)
	if written := c.writes(t, r, a); c.Writes {
		said += review.WrittenWords(r, written)
	}
	if said != c.Words {
		t.Errorf("words %q, want %q", said, c.Words)
	}
	if got := review.Outcome(kept, len(still)); (got == protocol.ReviewAligned) != (len(c.Directives)+len(c.StillThere) == 0) {
		t.Errorf("outcome %s", got)
	}
	for _, f := range a.Findings { // a model cannot find what it is not shown
		for _, d := range kept {
			if quote := strings.Join(strings.Fields(f.Quote), " "); d.Files[0] == f.Path && !strings.Contains(seen(q.Text), quote) && strings.Contains(d.Description, f.Description) {
				t.Errorf("the question does not show %q:\n%s", quote, q.Text)
			}
		}
	}
}

// assess plays the verdict of the assessor.
func (c scripted) assess(t *testing.T, r review.Reviewer, question string) {
	v, objection := review.ReadVerdict(c.Answer)
	if c.Objection != "" || objection != "" {
		if c.Objection == "" || !strings.Contains(objection, c.Objection) {
			t.Errorf("objection %q, want %q", objection, c.Objection)
		}
		return
	}
	outcome, given, discarded := review.Assess(r, v, c.text, fresh)
	c.holds(t, given, discarded)
	if len(given) > 0 {
		if quote := strings.Join(strings.Fields(v.Directive.Quote), " "); !strings.Contains(seen(question), quote) {
			t.Errorf("the question does not show %q:\n%s", quote, question)
		}
	}
	if got := review.VerdictWords(r, v, outcome); outcome != c.Outcome || got != c.Words {
		t.Errorf("outcome %s, words %q, want %s and %q", outcome, got, c.Outcome, c.Words)
	}
}

// holds compares the directives that are given, and what is discarded.
func (c scripted) holds(t *testing.T, given []protocol.Directive, discarded []review.Discarded) {
	t.Helper()
	var said []struct{ Priority, Description string }
	for _, d := range given {
		said = append(said, struct{ Priority, Description string }{d.Priority, d.Description})
	}
	var lost []string
	for _, d := range discarded {
		lost = append(lost, d.Rule+": "+string(d.Reason))
	}
	if diff := cmp.Diff(c.Directives, said); diff != "" {
		t.Errorf("directives (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Discarded, lost); diff != "" {
		t.Errorf("discarded (-want +got):\n%s", diff)
	}
}

// baseline of a repository with some files.
func baseline(files map[string][]string) *review.Baseline {
	names := slices.Sorted(maps.Keys(files))
	b := review.Baseline{Survey: review.NewSurvey(func(yield func(string, int64) bool) {
		for _, name := range names {
			if !yield(name, int64(len(strings.Join(files[name], "\n"))+1)) {
				return
			}
		}
	})}
	for _, name := range b.Survey.Typical {
		b.Texts = append(b.Texts, review.Peer{Path: name, Text: strings.Join(files[name], "\n") + "\n"})
	}
	return &b
}

// described are findings with what else they need.
func described(known []review.Finding) (all []review.Finding) {
	for _, f := range known {
		f.Description = "Known."
		all = append(all, f)
	}
	return all
}
