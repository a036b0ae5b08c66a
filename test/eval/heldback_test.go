// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// set of scenarios from which nothing is drawn. docs/evaluation.md says which are tuned to. What came of each run is compared rather than judged: no goal
// holds for these runs, and none gets worse unseen.
type set struct {
	// name of the set in the titles of its tables, which stand between marks of the page.
	name  string
	runs  []Run
	marks between
	// record is the file with what came of each run.
	record string
}

// TestHeldBack plays the scenarios that are held back under each configuration. Their tables stand beside those of the corpus.
func TestHeldBack(t *testing.T) {
	set{name: "scenarios held back", runs: heldBack(), marks: others, record: "testdata/heldback.txt"}.compare(t)
}

// compare what comes of the set under each configuration with its tables and its record, or write both.
func (s set) compare(t *testing.T) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var list []string
	var b strings.Builder
	for _, c := range configurations() {
		p := part{name: c.name + ": " + s.name, verdicts: plays(c, s.runs, c.directly)}
		list = append(list, p.table())
		p.print()
		for _, v := range p.verdicts {
			fmt.Fprintf(&b, "%s: %s: %s\n", c.name, v.run.Name, v.outcome())
		}
	}
	s.marks.compare(t, strings.Join(list, "\n"))
	if *update {
		if err := os.WriteFile(s.record, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a record that everybody reads
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(s.record)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	for line := range strings.SplitSeq(string(was), "\n") {
		before[line] = true
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if !before[line] {
			t.Errorf("%s does not have: %s", s.record, line)
		}
	}
	if string(was) != b.String() && !t.Failed() {
		t.Errorf("%s has other runs, or another order", s.record)
	}
	if t.Failed() {
		t.Log("Where a run got worse, supervision did; else write what came now: hack/eval.sh -update.")
	}
}

// outcome of a run, in some words: what is wrong with it and what was reported, and when.
func (v verdict) outcome() string {
	var words []string
	r, ok := v.seen()
	switch {
	case ok && v.hung:
		words = append(words, fmt.Sprintf("seen as %s, %.0f minutes late", r.kind, r.at.Sub(v.at).Minutes()))
	case ok:
		words = append(words, fmt.Sprintf("seen as %s, %d turns late", r.kind, r.turn-v.turn))
	case v.sick():
		words = append(words, fmt.Sprintf("MISSED, is %s", v.run.kinds[0]))
	case len(v.reports) == 0:
		words = append(words, "silent, as it should be")
	}
	for _, r := range v.alarms() {
		what := "also reported"
		if !v.sick() {
			what = "FALSE ALARM"
		}
		words = append(words, fmt.Sprintf("%s %s at turn %d of %d", what, r.kind, r.turn, v.turns))
	}
	if problem := v.nags(); problem != "" {
		words = append(words, "NAGGED")
	}
	if len(v.strays) > 0 {
		words = append(words, "LOST ITS CONVERSATION")
	}
	return strings.Join(words, "; ")
}
