// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// writesDown is the rule of a reviewer of knowledge that looks after each task, and whose model answers with a turn.
func writesDown(turn string) policy.Reviewer {
	return policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: "```script write_documents\nturns:\n" + turn + "\n```"}
}

// newWriting is a world whose agents write down what they were told, with a document of a status, and in which the reviewer of knowledge plays a script after each task.
func newWriting(t *testing.T, turn, status string, change ...func(*protocol.Orders)) (*world, *provider.Server) {
	t.Helper()
	w := readers(t)
	player := w.serveSupervisor("anthropic")
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Reviewers = policy.Reviewers{UrgencyThreshold: 100, MaxDirectives: 3, Knowledge: writesDown(turn)}
		for _, c := range change {
			c(o)
		}
	})
	w.knows(map[string]string{"lessons/store.md": saying(status, "* The store has ten boxes.")})
	return w, player
}

// oneLesson is a document that an agent gets, one that the reviewer may not change, and one that passes for Tidewaiter's own words.
const oneLesson = `- tool: {name: write_documents, input: {summary: One lesson., documents: [{kind: lessons, name: flush, title: Flush, rules: [Flush before the answer.]}, {kind: lessons, name: store, rules: ["The store is empty."]}]}}`

// lessonText is the document of oneLesson.
const lessonText = `# Flush

_Last updated by: Knowledge, login/page/form_
_Status: provisional_
_Confidence: medium_

## Rules

* Flush before the answer.

## Changelog

* login/page/form: new (text 3bfe40a9)
`

// knowledgeOf a task, as its agent got it.
func (w *world) knowledgeOf(task string) string {
	_, text, _ := strings.Cut(w.delivered("web/"+task+".txt"), "\n## PROJECT KNOWLEDGE\n\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, _ = strings.Cut(text, "\n")
	return strings.TrimSpace(text)
}

const (
	storeGiven = "- docs/knowledge/lessons/store.md:\n  > * The store has ten boxes."
	flushGiven = "- docs/knowledge/lessons/flush.md (provisional: not proved yet):\n  > * Flush before the answer."
)

// TestRIntAReviewerWritesDownWhatTheWorkHasTaught: the next agent of the Feature gets it, also after crashes, and each document is written once.
func TestRIntAReviewerWritesDownWhatTheWorkHasTaught(t *testing.T) {
	t.Parallel()
	for name, crashes := range map[string]bool{"without a crash": false, "with crashes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, player := newWriting(t, oneLesson, "established")
			if crashes {
				plugs := newPlugs(t, after("reviewed", "task begun"))
				wantFinal(t, plugs.processes(w.start(1, plugs.probe())).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			} else {
				wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			}
			if diff := cmp.Diff(storeGiven, w.knowledgeOf("form")); diff != "" {
				t.Errorf("the first task (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(storeGiven+"\n"+flushGiven, w.knowledgeOf("save")); diff != "" {
				t.Errorf("the second task (-want +got):\n%s", diff)
			}
			_, state := w.recorded()
			if diff := cmp.Diff(map[string]string{"docs/knowledge/lessons/flush.md": lessonText}, state.Written); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			records, _ := w.recorded()
			var refused []string
			for _, r := range records {
				if r.Reviewed != nil {
					refused = append(refused, r.Reviewed.Summary+" "+strings.Join(r.Reviewed.Refused, ","))
				}
			}
			want := []string{"Knowledge review: 1 document written; 1 proposed document does not count (Taken). One lesson. Taken",
				"Knowledge review: no documents written; 2 proposed documents do not count (Unchanged, Taken). One lesson. Unchanged,Taken"}
			if diff := cmp.Diff(want, refused); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
			if asked := player.Recorded(); len(asked) != 2 || strings.Contains(asked[0].Body, "Flush before the answer.\\n") || !strings.Contains(asked[1].Body, "docs/knowledge/lessons/flush.md (provisional") {
				t.Errorf("%d questions, or the reviewer does not see what it has written", len(asked))
			}
		})
	}
}

// TestAnOutdatedDesignWithoutADocument: where the document that is to take the place of the outdated one does not count, the status says why, and the finding stays in the
// record of the review.
func TestAnOutdatedDesignWithoutADocument(t *testing.T) {
	t.Parallel()
	w, _ := newWriting(t, "- text: nothing", "established", func(o *protocol.Orders) {
		o.Policy.Reviewers.Knowledge = policy.Reviewer{}
		o.Policy.Reviewers.Design = policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says(`- tool: {name: report_findings, input: {summary: Forms are in the text now., ` +
			`findings: [{path: web/form.txt, line: 1, quote: PROJECT CONTEXT, rule: forms, description: The document names another format, priority: Normal, cause: DesignOutdated}], ` +
			`documents: [{kind: design, name: Forms as text, rules: [Forms are text.], contradicts: {path: docs/knowledge/design/form.md, reason: Forms are text}}]}}`)}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	records, _ := w.recorded()
	i := slices.IndexFunc(records, func(r journal.Record) bool { return r.Reviewed != nil })
	v := records[i].Reviewed
	if len(v.Documents) != 0 || len(v.Discarded) != 1 || v.Discarded[0].String() != "DesignOutdated, rule forms, in web/form.txt" {
		t.Errorf("the record of the review: %+v", v)
	}
	const want = "Design review: 1 problem, no functional directives; 1 proposed document does not count (Unfit). Forms are in the text now."
	if s := w.intake.Status().Reviews; len(s) == 0 || s[0].Summary != want {
		t.Errorf("reviews in the status: %+v", s)
	}
}

// TestRKnowAUserEditsWhatAReviewerWrote: the reviewer rewrites no document of its own that a user has edited since, whatever its head says. Agents get it as an established one.
func TestRKnowAUserEditsWhatAReviewerWrote(t *testing.T) {
	t.Parallel()
	const flush = "docs/knowledge/lessons/flush.md"
	edited := strings.Replace(lessonText, "* Flush before the answer.", "* Flush twice.", 1)
	for name, c := range map[string]struct{ base, want, given, refused string }{
		"as it was written": {strings.ReplaceAll(lessonText, "\n\n", "\n\n\n"), "* Flush once.", "flush.md (provisional: not proved yet):\n  > * Flush before the answer.", ""},
		"edited":            {edited, "* Flush twice.", "flush.md:\n  > * Flush twice.", "Taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := readers(t)
			w.serveSupervisor("anthropic")
			w.intake.Order(func(o *protocol.Orders) {
				o.Tasks, o.Policy.Knowledge.Deliver = o.Tasks[:1], policy.KnowledgeCommit
				o.Policy.Reviewers = policy.Reviewers{UrgencyThreshold: 100, MaxDirectives: 3,
					Knowledge: writesDown("- tool: {name: write_documents, input: {summary: One lesson., documents: [{kind: lessons, name: flush, title: Flush, rules: [Flush once.]}]}}")}
			})
			w.knows(map[string]string{"lessons/flush.md": c.base})
			wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			records, _ := w.recorded()
			i := slices.IndexFunc(records, func(r journal.Record) bool { return r.Reviewed != nil })
			if got := strings.Join(records[i].Reviewed.Refused, ","); got != c.refused {
				t.Errorf("refused %q, want %q", got, c.refused)
			}
			if got := w.delivered(flush); !strings.Contains(got, c.want) {
				t.Errorf("delivered %s", got)
			}
			if got := w.knowledgeOf("form"); !strings.Contains(got, c.given) {
				t.Errorf("the agent got %s", got)
			}
		})
	}
}

// TestAFileInPlaceOfTheDocuments: the reviewer writes nothing, and the status and the report about knowledge name the file and what to do.
func TestAFileInPlaceOfTheDocuments(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"docs/knowledge", "docs/knowledge/lessons"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := readers(t)
			w.serveSupervisor("anthropic")
			w.intake.Order(func(o *protocol.Orders) {
				o.Policy.Knowledge.Inject = true
				o.Policy.Reviewers = policy.Reviewers{UrgencyThreshold: 100, MaxDirectives: 3, Knowledge: writesDown(oneLesson)}
			})
			seed := w.seed()
			w.write("seed/"+file, "What we know.\n")
			w.commitAll(seed, "Write a file")
			w.git("-C", seed, "push", "-q", w.origin, "main")
			wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			why := file + " does not keep to the format: it is not a folder. Move it, and write documents into a folder of that name"
			want := "Knowledge review: no documents written; 2 proposed documents do not count (Closed: " + why + "). One lesson."
			if s := w.intake.Status().Reviews; len(s) == 0 || s[0].Summary != want {
				t.Errorf("reviews in the status: %+v", s)
			}
			var told []string
			for _, r := range w.intake.Reports() {
				if r.Knowledge != nil {
					told = append(told, r.Knowledge.LeftOut...)
				}
			}
			if !slices.Equal(told, []string{why}) {
				t.Errorf("left out: %q", told)
			}
		})
	}
}

// TestADocumentThatNeedsAUser: the next agent does not get it, the status names it, and the delivery has it for a user to merge.
func TestADocumentThatNeedsAUser(t *testing.T) {
	t.Parallel()
	const flush = "docs/knowledge/lessons/flush.md"
	w, _ := newWriting(t, strings.Replace(oneLesson, "name: flush,", "name: flush, needsUserReview: true,", 1), "established", func(o *protocol.Orders) { o.Policy.Knowledge.Deliver = policy.KnowledgeCommit })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff(storeGiven, w.knowledgeOf("save")); diff != "" {
		t.Errorf("the second task (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(lessonText, w.delivered(flush)+"\n"); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	var told []string
	for _, r := range w.intake.Reports() {
		if r.Status != nil && len(r.Status.KnowledgeToReview) > 0 {
			told = r.Status.KnowledgeToReview
		}
	}
	if !slices.Equal(told, []string{flush}) {
		t.Errorf("the status names %q", told)
	}
	records, _ := w.recorded()
	i := slices.IndexFunc(records, func(r journal.Record) bool { return r.TaskBegun != nil && r.TaskBegun.Name == "page/save" })
	if k := records[i].TaskBegun.Knowledge; !slices.Contains(k.LeftOut, flush+" waits until a user has merged it") {
		t.Errorf("the journal has %+v", k)
	}
}

// TestNobodyWritesWhereAgentsGetNoKnowledge: neither does the reviewer of knowledge look, nor do others write.
func TestNobodyWritesWhereAgentsGetNoKnowledge(t *testing.T) {
	t.Parallel()
	w, player := newWriting(t, oneLesson, "established", func(o *protocol.Orders) {
		o.Policy.Reviewers.CodeStyle = policy.Reviewer{Enabled: new(true), EveryTasks: 1, Instructions: says("- tool: {name: report_findings, input: {summary: Nothing., findings: []}}")}
	})
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Knowledge.Inject = false })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if slices.ContainsFunc(player.Recorded(), func(r provider.Recorded) bool { return strings.Contains(r.Body, "documents of the kind") }) {
		t.Error("a reviewer was asked for documents")
	}
	for _, r := range w.reviews() {
		if !strings.Contains(r, "Aligned") {
			t.Errorf("review %s", r)
		}
	}
	if _, state := w.recorded(); state.Written != nil || len(w.reviews()) == 0 {
		t.Errorf("written: %v after %d reviews", state.Written, len(w.reviews()))
	}
}

// TestASecretIsNotWrittenDown, whatever a model proposes.
func TestASecretIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	w, _ := newWriting(t, `- tool: {name: write_documents, input: {summary: A key., documents: [{kind: lessons, name: key, rules: ["The key is `+"AKIA"+`QYLPMN5HHHFPZAM2."]}]}}`, "established")
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	records, state := w.recorded()
	for _, r := range records {
		if v := r.Reviewed; v != nil && !slices.Equal(v.Refused, []string{"Secret"}) {
			t.Errorf("%+v", v)
		}
	}
	if state.Written != nil {
		t.Errorf("written: %v", state.Written)
	}
}

// TestADocumentThatHasProvedItself in 5 tasks is established when its reviewer looks.
func TestADocumentThatHasProvedItself(t *testing.T) {
	t.Parallel()
	w, _ := newWriting(t, "- tool: {name: write_documents, input: {summary: Nothing., documents: []}}", "provisional", func(o *protocol.Orders) {
		o.Policy.Reviewers.Knowledge.EveryTasks = 5
		o.Tasks = nil
		for _, name := range []string{"page/a", "page/b", "page/c", "page/d", "page/e"} {
			o.Tasks = append(o.Tasks, protocol.Task{Name: name, Instructions: "Do it."})
		}
	})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	_, state := w.recorded()
	if text := state.Written["docs/knowledge/lessons/store.md"]; len(state.Written) != 1 || !strings.Contains(text, "_Status: established_") || !strings.Contains(text, "* login/page/e: established: it was followed in 5 tasks (text bb1b2f63)\n") {
		t.Errorf("written: %v, proved %v", state.Written, state.Proved)
	}
}
