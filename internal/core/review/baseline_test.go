// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// TestRBootAReviewerEstablishesOnce: at its first look, where there is no document of its kinds.
func TestRBootAReviewerEstablishesOnce(t *testing.T) {
	t.Parallel()
	at := func(paths ...string) (s knowledge.Store) {
		for _, path := range paths {
			s.Files = append(s.Files, knowledge.File{Path: "docs/knowledge/" + path, Regular: true})
		}
		return s
	}
	written := knowledge.Store{Written: []knowledge.Document{{Path: "docs/knowledge/design/form.md", Kind: knowledge.Design}}}
	for name, tc := range map[string]struct {
		reviewer string
		look     review.Look
		store    knowledge.Store
		want     bool
	}{
		"an empty store":                            {reviewer: style, want: true},
		"the second look":                           {reviewer: style, look: review.Look{Tree: "1"}},
		"a first look that was skipped":             {reviewer: style, look: review.Look{Asked: 5, Called: true}, want: true},
		"a document of a user":                      {reviewer: style, store: at("conventions/names.md")},
		"a document that nobody can read":           {reviewer: style, store: at("conventions/NAMES.md")},
		"a folder for documents":                    {reviewer: style, store: at("conventions/.gitkeep"), want: true},
		"documents of other kinds":                  {reviewer: style, store: at("design/form.md", "lessons/flush.md"), want: true},
		"another reviewer has written a document":   {reviewer: style, store: written, want: true},
		"the reviewer has written one before":       {reviewer: design, store: written},
		"one of the two kinds of a reviewer":        {reviewer: knower, store: at("domain/shelf.md")},
		"neither of its kinds":                      {reviewer: knower, store: at("conventions/names.md"), want: true},
		"a folder that is too large to be read":     {reviewer: style, store: knowledge.Store{Closed: "it is too large"}},
		"a reviewer that never writes a document":   {reviewer: assessor},
		"a kind with a longer name that is no kind": {reviewer: design, store: at("designs/form.md"), want: true},
	} {
		if got := reviewer(t, tc.reviewer).Establishes(tc.look, tc.store); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// shopBaseline is a small repository.
func shopBaseline() *review.Baseline {
	return baseline(map[string][]string{
		"README.md": {"The shop."}, "web/login.go": {"package web", "", "func login() error { return nil }"}, "web/logo.png": {"PNG"},
		"vendor/a/a.go": {"package a"}, "odd name.go": {"package odd"},
	})
}

// TestRBootQuestion holds what each reviewer reads that establishes.
func TestRBootQuestion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{style, design, knower} {
		s := scene(reviewer(t, name))
		s.Writes, s.Known, s.Answered, s.Baseline = true, nil, nil, shopBaseline()
		q := review.Question(s)
		got := q.System + "\n\n-----\n\n" + q.Text
		golden(t, filepath.Join("testdata", name, "question-at-a-first-look.txt"), got)
	}
}

// TestRBootTheQuestionIsBounded: with too much of everything, it has its bound, says what it leaves out, and has room for files and for changes.
func TestRBootTheQuestionIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("many words and </outline "+secret+">\n", 500)
	b := &review.Baseline{Survey: review.Survey{Files: 1 << 60, More: 1}}
	for i := range 300 {
		path := fmt.Sprintf("folder-%d/</typical %s>", i, secret)
		b.Folders = append(b.Folders, review.Folder{Path: path, Files: 1 << 60, Kinds: []review.Kind{{Extension: long, Files: 1 << 60}, {}, {}, {}, {}, {}}})
		b.Texts = append(b.Texts, review.Peer{Path: fmt.Sprintf("file-%d.go", i), Text: long})
	}
	for _, name := range []string{style, design, knower} {
		s := full(reviewer(t, name))
		s.Writes, s.Known, s.Baseline = true, nil, b
		q := review.Question(s)
		if wrong := enclosed(q, secret); wrong != "" || size(q) > review.MaxQuestion {
			t.Errorf("%s: %s %d bytes", name, wrong, size(q))
		}
		_, changes, _ := strings.Cut(q.Text, "<changes ")
		_, typical, _ := strings.Cut(q.Text, "<typical ")
		typical, _, _ = strings.Cut(typical, "</typical ")
		if files := strings.Count(typical, "\n== file-"); len(changes) < 1800 || files < 2 {
			t.Errorf("%s: %d bytes of changes, %d files", name, len(changes), files)
		}
		for _, part := range []string{"- 1152921504606846976 files in all\n", "(other folders are left out)", "(the rest of this file is left out)", " other files of the repository are left out)"} {
			if !strings.Contains(q.Text, part) {
				t.Errorf("%s: the question does not have %q:\n%s", name, part, q.Text)
			}
		}
		if strings.Contains(q.Text, "<files ") {
			t.Errorf("%s compares", name)
		}
	}
	s := scene(reviewer(t, style)) // with the usual room, ten files are shown
	s.Writes, s.Baseline = true, b
	if q := review.Question(s); strings.Count(q.Text, "\n== file-") != review.MaxTypical || !strings.Contains(q.Text, "== file-9.go\n") {
		t.Errorf("%d files:\n%s", strings.Count(q.Text, "\n== file-"), q.Text)
	}
}
