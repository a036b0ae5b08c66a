// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// learned notes a review that wrote documents, while no watchdog runs.
func (w *world) learned(documents map[string]string) {
	w.t.Helper()
	noteIn(w.t, w.paths.Trusted, reviewOf(documents))
}

// reviewOf is a review that wrote documents.
func reviewOf(documents map[string]string) journal.Record {
	v := journal.Reviewed{Reviewer: protocol.SourceCodeStyle, Outcome: protocol.ReviewAligned}
	for name, text := range documents {
		v.Documents = append(v.Documents, journal.Written{Path: "docs/knowledge/" + name, Text: text})
	}
	return journal.Record{Reviewed: &v}
}

// noteIn writes records into the journal of a volume, while no watchdog runs.
func noteIn(t *testing.T, dir string, records ...journal.Record) {
	t.Helper()
	j, err := trusted.OpenJournal(trusted.Dir(dir), 1<<30, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, r := range records {
		if r.Reviewed != nil {
			r.Reviewed.Tree = j.State().Promoted.Tree
		}
		if err := j.Note(r); err != nil {
			t.Fatal(err)
		}
	}
}

// newLearned is a world whose reviewers have written documents while the agent worked. Its agent makes one page.
func newLearned(t *testing.T, documents map[string]string, change func(*protocol.Orders), probe func(string) error, scripts ...string) (*world, *pod) {
	t.Helper()
	w := newProved(t, `echo good > web/page.html`, scripts...)
	w.knows(map[string]string{"conventions/names.md": saying("established", "* Name a page after its path.")})
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Knowledge.Deliver = policy.KnowledgeCommit })
	if change != nil {
		w.intake.Order(change)
	}
	return w, w.learning(documents, probe)
}

// learning starts a watchdog of a world, and has reviewers write documents while the agent works.
func (w *world) learning(documents map[string]string, probe func(string) error) *pod {
	w.t.Helper()
	run := w.start(1, pullAt("task begun", 1))
	if err := run.wait(); !errors.Is(err, errPulled) {
		w.t.Fatal(err)
	}
	w.learned(documents)
	run.watch(probe)
	return run
}

// TestAnIndexOfAUserStays: the documents are delivered without an index of Tidewaiter, and the final report says why.
func TestAnIndexOfAUserStays(t *testing.T) {
	t.Parallel()
	const theirs = "# Our documents\n\nRead names first."
	w := newProved(t, `echo good > web/page.html`)
	w.knows(map[string]string{"conventions/names.md": saying("established", "* Name a page after its path."), "_index.md": theirs + "\n"})
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Knowledge.Deliver = policy.KnowledgeCommit })
	f := w.learning(map[string]string{"lessons/flush.md": saying("provisional", "* Flush before the answer.")}, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.delivered("docs/knowledge/_index.md") != theirs || !strings.Contains(w.delivered("docs/knowledge/lessons/flush.md"), "Flush before") {
		t.Errorf("the index is %q", w.delivered("docs/knowledge/_index.md"))
	}
	if want := "has a document of reviewers in docs/knowledge; docs/knowledge/_index.md is left out: it has lines that Tidewaiter does not write; delete the file to get an index"; !strings.Contains(f.Message, want) {
		t.Errorf("the report lacks %q: %s", want, f.Message)
	}
}

// TestRKnowDocumentsAreTheLastCommit of the delivery: gates and approval are about it, a crash makes the same one, and no checkpoint of the agent has the documents.
func TestRKnowDocumentsAreTheLastCommit(t *testing.T) {
	t.Parallel()
	flush := saying("provisional", "* Flush before the answer.")
	w, run := newLearned(t, map[string]string{"lessons/flush.md": flush}, approval, pullAt("knowledge committed", 1),
		`grep -q "Flush before" docs/knowledge/lessons/flush.md && grep -q "(lessons/flush.md)" docs/knowledge/_index.md && [ -z "$(git status --porcelain)" ]`)
	for _, probe := range []func(string) error{pullAt("knowledge journaled", 1), nil} {
		if err := run.wait(); !errors.Is(err, errPulled) {
			t.Fatal(err)
		}
		run.watch(probe)
	}
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeProving, protocol.ReasonProving)
	g := w.prove(2, f.Gate, nil).finish()
	wantFinal(t, g, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	if g.Head != f.Head || !strings.Contains(g.Message, "; its last commit has a document of reviewers in docs/knowledge") {
		t.Errorf("head %s, then %s: %s", f.Head, g.Head, g.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = g.Head })
	wantFinal(t, w.seal(3), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != g.Head || w.delivered("docs/knowledge/lessons/flush.md")+"\n" != flush {
		t.Errorf("branch %s, want %s", w.branch(), g.Head)
	}
	if diff := cmp.Diff("Tidewaiter\n\nA\tdocs/knowledge/_index.md\nA\tdocs/knowledge/lessons/flush.md", w.git("-C", w.origin, "show", "--format=%an", "--name-status", g.Head)); diff != "" {
		t.Errorf("the last commit (-want +got):\n%s", diff)
	}
	const index = "# Knowledge of the project\n\n* [conventions/names.md](conventions/names.md): names (established)\n* [lessons/flush.md](lessons/flush.md): flush (provisional)"
	if diff := cmp.Diff(index, w.delivered("docs/knowledge/_index.md")); diff != "" {
		t.Errorf("the index (-want +got):\n%s", diff)
	}
	records, state := w.recorded()
	for _, r := range records {
		if r.Intent != nil && strings.Contains(w.trusted("ls-tree", "-r", "--name-only", r.Intent.Tree), "lessons") {
			t.Errorf("checkpoint %d has the document", r.Intent.Sequence)
		}
	}
	if state.Promoted.Commit != w.git("-C", w.origin, "rev-parse", g.Head+"^") {
		t.Errorf("promoted %s", state.Promoted.Commit)
	}
}

// TestDocumentsThatCannotBeDelivered are left out, and the final report says why.
func TestDocumentsThatCannotBeDelivered(t *testing.T) {
	t.Parallel()
	token := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a" // in two parts, so that no scanner of this repository finds it
	w, run := newLearned(t, map[string]string{
		"lessons/token.md": saying("provisional", "* The token is "+token+"."), "domain/odd.md": "Some text.\n", "design/form.md": saying("provisional", "* Forms post to /save."),
	}, nil, nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	for _, want := range []string{"has a document of reviewers", "docs/knowledge/lessons/token.md is left out: line 6 looks like a secret (github-pat)", `docs/knowledge/domain/odd.md is left out: line 1: "Some text."`} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("the report lacks %q: %s", want, f.Message)
		}
	}
	if diff := cmp.Diff("docs/knowledge/_index.md\ndocs/knowledge/conventions/names.md\ndocs/knowledge/design/form.md", w.git("-C", w.origin, "ls-tree", "-r", "--name-only", f.Head, "docs")); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

// TestAPolicyTakesTheDocumentsBack: the work is delivered without them, and an approval of the commit with them does not count for it.
func TestAPolicyTakesTheDocumentsBack(t *testing.T) {
	t.Parallel()
	w, run := newLearned(t, map[string]string{"design/form.md": saying("provisional", "* Forms post to /save.")}, approval, nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Knowledge.Deliver, o.Policy.Hash, o.Delivery.ApprovedCommit = policy.KnowledgeOff, "off", f.Head
	})
	without := w.seal(2)
	wantFinal(t, without, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalMismatch)
	if without.Head != w.trusted("rev-parse", f.Head+"^") || strings.Contains(without.Message, "documents") {
		t.Errorf("head %s: %s", without.Head, without.Message)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = without.Head })
	wantFinal(t, w.seal(3), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != without.Head {
		t.Errorf("branch %s, want %s", w.branch(), without.Head)
	}
	w.recorded()
}

// TestALinkInPlaceOfTheDocuments: nothing is written through it.
func TestALinkInPlaceOfTheDocuments(t *testing.T) {
	t.Parallel()
	w := newProved(t, `echo good > web/page.html`)
	seed := w.seed()
	w.write("seed/docs/real/keep.txt", "keep\n")
	if err := os.Symlink("real", filepath.Join(seed, "docs/knowledge")); err != nil {
		t.Fatal(err)
	}
	w.commitAll(seed, "Link the knowledge")
	w.git("-C", seed, "push", "-q", w.origin, "main")
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Knowledge = policy.Knowledge{Inject: true, Deliver: policy.KnowledgeCommit}
	})
	run := w.start(1, pullAt("task begun", 1))
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatal(err)
	}
	w.learned(map[string]string{"design/form.md": saying("provisional", "* Forms post to /save.")})
	run.watch(nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if !strings.Contains(f.Message, "; docs/knowledge/design/form.md is left out: docs/knowledge is not a directory") || w.git("-C", w.origin, "rev-list", "--count", "main.."+f.Head) != "1" {
		t.Errorf("head %s: %s", f.Head, f.Message)
	}
}

// TestEarlierCommitsWithDocumentsStay: pruning drops none that the journal speaks of, so that the record of the Feature stays whole.
func TestEarlierCommitsWithDocumentsStay(t *testing.T) {
	t.Parallel()
	w, run := newLearned(t, map[string]string{"design/form.md": saying("provisional", "* Forms post to /save.")}, approval, nil)
	first := run.finish()
	wantFinal(t, first, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	w.learned(map[string]string{"lessons/flush.md": saying("provisional", "* Flush before the answer.")})
	second := w.seal(2)
	wantFinal(t, second, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	if first.Head == second.Head {
		t.Fatalf("another document makes another commit, and not %s", first.Head)
	}
	w.tidy = true
	w.intake.Order(func(o *protocol.Orders) { o.Delivery.ApprovedCommit = second.Head })
	wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	code, out := verify(t, w.paths.Trusted, "--json")
	if code != 0 || !strings.Contains(out, second.Head) {
		t.Errorf("code %d, want the delivery %s\n%s", code, second.Head, out)
	}
}

// TestADocumentOfTheWorkStays: an agent has written it while agents got no knowledge, and a reviewer takes the name later.
func TestADocumentOfTheWorkStays(t *testing.T) {
	t.Parallel()
	w := newProved(t, `mkdir -p docs/knowledge/lessons && echo mine > docs/knowledge/lessons/flush.md`)
	w.intake.Order(func(o *protocol.Orders) { o.Plan.Allowed = append(o.Plan.Allowed, "docs/**") })
	w.intake.Order(approval)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	w.learned(map[string]string{"lessons/flush.md": saying("provisional", "* Flush before the answer."), "design/form.md": saying("provisional", "* Forms post to /save.")})
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Enforcement, o.Policy.Knowledge = policy.Audit, policy.Knowledge{Inject: true, Deliver: policy.KnowledgeCommit}
	})
	f := w.seal(2)
	wantFinal(t, f, protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired)
	if got := w.trusted("show", f.Head+":docs/knowledge/lessons/flush.md"); got != "mine" {
		t.Errorf("the work is %q", got)
	}
	if want := "has a document of reviewers in docs/knowledge; docs/knowledge/lessons/flush.md is left out: the work adds, changes or deletes that file"; !strings.Contains(f.Message, want) {
		t.Errorf("the report lacks %q: %s", want, f.Message)
	}
}

// TestVerifyComparesDocumentsWithReviews: a commit with documents has what reviewers have written, and changes nothing else. Somebody who can write to the volume
// makes one that does, and a journal to it whose lines name each other.
func TestVerifyComparesDocumentsWithReviews(t *testing.T) {
	t.Parallel()
	w, run := newLearned(t, map[string]string{"design/form.md": saying("provisional", "* Forms post to /save.")}, nil, nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	on := w.trusted("rev-parse", f.Head+"^")
	for name, c := range map[string]struct {
		tree  string
		notes []journal.Record
		want  string
	}{
		"the work without a file": {"main^{tree}", nil, "changes web/page.html, and no reviewer has written that"},
		"another text": {f.Head + "^{tree}", []journal.Record{reviewOf(map[string]string{"design/form.md": saying("provisional", "* Forms post to /form.")})},
			"changes docs/knowledge/design/form.md, and no reviewer has written that"},
	} {
		dir := copyOf(t, w.paths.Trusted)
		tree := w.git("-C", w.origin, "rev-parse", c.tree)
		commit := w.git("-C", filepath.Join(dir, "repo.git"), "-c", "user.name=A", "-c", "user.email=a@example.com", "commit-tree", tree, "-p", on, "-m", "Learned")
		noteIn(t, dir, append(c.notes, journal.Record{KnowledgeCommitted: &journal.KnowledgeCommitted{On: on, Commit: commit, Tree: tree}})...)
		if code, out := verify(t, dir); code != 1 || !strings.Contains(out, "commit "+commit+" "+c.want) {
			t.Errorf("%s: code %d, want %q\n%s", name, code, c.want, out)
		}
	}
}
