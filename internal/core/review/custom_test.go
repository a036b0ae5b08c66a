// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

const licenses = "custom/licenses"

// licensed are the rules with reviewers that a policy defines.
func licensed() policy.Effective {
	p := assessed()
	p.Reviewers.Custom = []policy.CustomReviewer{
		{Name: "licenses", Instructions: "Each file names its license.", EveryTasks: 2, Paths: []string{"*.go"}, Priority: policy.ReviewLow},
		{Name: "queries", Instructions: "Queries have a limit.", OnMilestone: true, Priority: policy.ReviewNormal},
	}
	return p
}

// TestCustomReviewers run without a word about it, after the reviewers of Tidewaiter and before the assessor, and each by its own triggers.
func TestCustomReviewers(t *testing.T) {
	p := licensed()
	p.Models = nil
	if diff := cmp.Diff([]string{licenses}, names(review.History{}, p, review.Breakpoint{Over: 2})); diff != "" {
		t.Errorf("without a model for reviewers (-want +got):\n%s", diff)
	}
	p = licensed()
	if diff := cmp.Diff([]string{style, design, licenses, "custom/queries", assessor}, names(review.History{}, p, review.Breakpoint{Over: 5, Milestone: true})); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{licenses}, names(review.History{}, p, review.Breakpoint{Over: 2})); diff != "" {
		t.Errorf("after two tasks (-want +got):\n%s", diff)
	}
	h := review.History{}.Happened(review.TaskAborted, p)
	if diff := cmp.Diff([]string{style, design, licenses, "custom/queries", assessor}, names(h, p, review.Breakpoint{Over: 1})); diff != "" {
		t.Errorf("urgency (-want +got):\n%s", diff)
	}
}

// TestAReviewerThatPasses looks at the next breakpoint at which it would look otherwise: neither its interval nor its urgency changes.
func TestAReviewerThatPasses(t *testing.T) {
	p := licensed()
	h := review.History{}.Looked(licenses, 1, "tree", true).Happened(review.GateFailed, p)
	h = h.Passed(licenses, 3)
	if diff := cmp.Diff(review.Look{Asked: 3, Looked: 1, Tree: "tree", Urgency: 30}, h[licenses]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if due := names(h, p, review.Breakpoint{Over: 3}); due != nil {
		t.Errorf("due twice at one breakpoint: %q", due)
	}
	if diff := cmp.Diff([]string{licenses}, names(h, p, review.Breakpoint{Over: 4})); diff != "" {
		t.Errorf("after the next task (-want +got):\n%s", diff)
	}
}

// TestCustomDirectives: a reviewer with Normal priority gives Functional directives, and one with Low priority Cleanup directives. None is Critical.
func TestCustomDirectives(t *testing.T) {
	for name, want := range map[string]string{licenses: "Cleanup: Low, Low", "custom/queries": "Functional: Normal, Low"} {
		r, is := review.Find(name, licensed())
		if !is {
			t.Fatal("no reviewer", name)
		}
		grave, minor := finding(), finding()
		grave.Priority, minor.Rule = "Critical", "another"
		kept, discarded := review.Keep(r, review.Answer{Findings: []review.Finding{minor, grave}}, tree, fresh, 3)
		if len(kept) != 2 || len(discarded) != 0 {
			t.Fatalf("%s: kept %+v, discarded %+v", name, kept, discarded)
		}
		if got := kept[0].Type + ": " + kept[0].Priority + ", " + kept[1].Priority; got != want || kept[0].Source != name {
			t.Errorf("%s gives %s of source %s, want %s", name, got, kept[0].Source, want)
		}
	}
	r, _ := review.Find(licenses, licensed())
	if got := review.Words(r, 2, 1); got != "licenses review: 2 findings, 1 cleanup directive" {
		t.Errorf("words %q", got)
	}
}

// TestCustomPaths: a reviewer with paths sees files of these only.
func TestCustomPaths(t *testing.T) {
	for name, want := range map[string]bool{licenses: false, "custom/queries": true} {
		r, _ := review.Find(name, licensed())
		if sees := r.Sees(); !sees("web/login.go") || sees("web/login.html") != want {
			t.Errorf("%s sees what it should not, or too little", name)
		}
	}
}

// TestACustomReviewerThatIsGone: what a journal says of it still has a meaning.
func TestACustomReviewerThatIsGone(t *testing.T) {
	const gone = "custom/gone"
	if _, is := review.Find(gone, licensed()); is || !review.Is(gone) || review.Title(gone) != "gone" || review.Assesses(gone) {
		t.Error("it is found, or is no reviewer any more")
	}
	h := review.History{}.Looked(gone, 1, "tree", true).Skipped(gone, 2).Heeded(gone).Back(1).Happened(review.TaskAborted, licensed())
	if due := names(h, rules(), review.Breakpoint{Over: 2}); len(due) != 2 {
		t.Errorf("due: %q", due)
	}
	for _, source := range []string{"custom/", "custom/No", "custom/a/b", "Custom/a", "custom/" + strings.Repeat("a", 41), "licenses", protocol.SourcePerson, ""} {
		if review.Is(source) {
			t.Errorf("%q is a reviewer", source)
		}
	}
}

// TestTheQuestionOfACustomReviewer has the instructions of its team behind the rules for every reviewer.
func TestTheQuestionOfACustomReviewer(t *testing.T) {
	p := licensed()
	r, _ := review.Find(licenses, p)
	s := scene(r)
	s.Team = r.Rule(p).Instructions
	q := review.Question(s)
	if wrong := enclosed(q, secret); wrong != "" || size(q) > review.MaxQuestion || q.Tool.Name != "report_findings" {
		t.Errorf("%s: %d bytes", wrong, size(q))
	}
	if !strings.Contains(q.System, "for one concern of the team") || !strings.HasSuffix(q.System, "The team that owns the repository adds:\nEach file names its license.") {
		t.Errorf("system prompt:\n%s", q.System)
	}
}
