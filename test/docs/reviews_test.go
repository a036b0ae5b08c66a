// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/reviews.md")

// rowsOfReviewers are the requirements that reviewers meet. The tests of a row have names that begin with TestR and the name of the row.
var rowsOfReviewers = []struct{ name, asks string }{
	{"Exec", "Reviewers look between two tasks, and the assessor looks after them."},
	{"Trig", "Each reviewer has its own triggers: a number of tasks, milestones and events."},
	{"In", "A question has at most 20,000 bytes. It is made of the request, the tasks, the gates, the directives and the changes."},
	{"Style", "The reviewer of code style compares changes with the repository. It gives Cleanup directives where they differ, and none where they match."},
	{"Design", "The reviewer of design finds parts that do not fit together, and gives Functional directives."},
	{"Int", "The reviewer of knowledge writes down lessons, and words and rules of the domain. It gives no directives."},
	{"Dir", "Critical directives come before the next task, Normal ones with it, and Low and Cleanup ones at the end. Each one needs an answer, and its reviewer checks it."},
	{"Urg", "Failed gates, aborted tasks, other plans and drift pull a review forward. A review sets the urgency to 0."},
	{"State", "The journal has the open directives, how far each reviewer is, and the last reviews."},
	{"Know", "Documents stand in four folders with an index, say who wrote them and whether they are proved, and are delivered as the last commit."},
	{"Inj", "An agent gets the documents that meet its task, within a budget, proved ones first."},
	{"Route", "The model of the role supervisor answers reviewers."},
	{"Cost", "A team turns each reviewer on or off, and reviewers cost nothing unless it asks for them."},
	{"Degr", "The work continues when the model of a reviewer is away or gives no usable answer."},
	{"Conv", "Intervals double when nothing new is found. Cleanup directives become too old, at most ten are open, and a bounded number of polish tasks ends the work."},
	{"Boot", "If there are no documents of its kinds, the first look of a reviewer establishes and does not compare. Users can write documents before that."},
	{"Val", "Answers that do not keep to the schema are not used, and neither are findings without a quote that stands in the tree."},
	{"Own", "Each kind of documents has one reviewer, which changes only what it has written itself."},
	{"Obs", "The status and Events say what each reviewer found, and what it gave."},
	{"L", "The assessor gives a verdict on the whole. Its verdicts set its interval, from 3 to 10 tasks."},
}

// tableOfReviewers names the tests of each row. The error is about rows without a test.
func tableOfReviewers(tests map[string][]string) (string, error) {
	var b strings.Builder
	var bare []string
	b.WriteString("\n| row | what it asks | tests |\n|---|---|---|\n")
	for _, row := range rowsOfReviewers {
		var named []string
		for _, name := range slices.Sorted(maps.Keys(tests)) {
			rest, is := strings.CutPrefix(name, "TestR"+row.name)
			if !is || rest == "" || rest[0] < 'A' || rest[0] > 'Z' {
				continue
			}
			for _, folder := range slices.Compact(slices.Sorted(slices.Values(tests[name]))) {
				named = append(named, fmt.Sprintf("`%s` (`%s`)", name, folder))
			}
		}
		if len(named) == 0 {
			bare = append(bare, row.name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.name, row.asks, strings.Join(named, ", "))
	}
	if len(bare) > 0 {
		return "", fmt.Errorf("no test has a name that begins with TestR and one of %v, followed by a capital letter", bare)
	}
	return b.String(), nil
}

// TestRowsOfReviewers holds the table of docs/reviews.md to the names of the tests.
func TestRowsOfReviewers(t *testing.T) {
	const mark = "<!-- tests of reviewers -->\n"
	page := filepath.Join(root, "docs", "reviews.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	written, got, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no line %q", page, strings.TrimSpace(mark))
	}
	want, err := tableOfReviewers(tests(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(written+mark+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the table in docs/reviews.md is not that of the tests: run go test ./test/docs -run TestRowsOfReviewers -update")
	}
}

// TestTableOfReviewers: a test counts for the row whose name it begins with, and a row without a test is an error.
func TestTableOfReviewers(t *testing.T) {
	tests := map[string][]string{"TestRLong": {"x"}, "TestRInjected": {"x"}, "TestRIn": {"x"}}
	if _, err := tableOfReviewers(tests); err == nil || !strings.Contains(err.Error(), "[Exec Trig In Style Design Int Dir Urg State Know Inj Route Cost Degr Conv Boot Val Own Obs L]") {
		t.Errorf("without a test of any row: %v", err)
	}
	for _, row := range rowsOfReviewers {
		tests["TestR"+row.name+"Works"] = []string{"b", "a", "b"}
	}
	got, err := tableOfReviewers(tests)
	if err != nil || strings.Contains(got, "Long") || strings.Contains(got, "TestRInjected") || !strings.Contains(got, "| `TestRInWorks` (`a`), `TestRInWorks` (`b`) |\n") {
		t.Errorf("%v\n%s", err, got)
	}
}
