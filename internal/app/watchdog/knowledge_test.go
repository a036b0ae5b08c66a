// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// knows writes documents below docs/knowledge into the repository of the world, and lets agents have them.
func (w *world) knows(documents map[string]string) {
	w.t.Helper()
	seed := w.seed()
	for name, content := range documents {
		w.write("seed/docs/knowledge/"+name, content)
	}
	w.commitAll(seed, "Write down what is known")
	w.git("-C", seed, "push", "-q", w.origin, "main")
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Knowledge.Inject = true })
}

// saying is a document with a status and rules.
func saying(status, rules string) string {
	return "_Last updated by: the team_\n_Status: " + status + "_\n\n## Rules\n\n" + rules + "\n"
}

const knowledgeOfForm = `
- docs/knowledge/conventions/names.md:
  > * Name a page after its path.
- docs/knowledge/design/form.md:
  > * Forms post to /save.
- docs/knowledge/lessons/flush.md (provisional: not proved yet):
  > * Flush before the answer.

`

// TestRInjKnowledgeIsGiven: an agent finds what its team has written down in its instructions, the same after a crash. The journal says what it got, and
// users hear which document does not keep to the format.
func TestRInjKnowledgeIsGiven(t *testing.T) {
	t.Parallel()
	w := readers(t)
	w.knows(map[string]string{
		"conventions/names.md": saying("established", "* Name a page after its path."), "design/form.md": saying("established", "* Forms post to /save."),
		"design/old.md": saying("deprecated", "* Forms post to /old."), "domain/stock.md": saying("established", "* A shelf has ten boxes."),
		"lessons/flush.md": saying("provisional", "* Flush before the answer."), "lessons/broken.md": "Some text.\n", "_index.md": "An index.\n",
	})
	run := w.start(1, pullAt("task begun", 1))
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatal(err)
	}
	run.watch(nil)
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	section := func(task string) string {
		_, text, _ := strings.Cut(w.delivered("web/"+task+".txt"), "\n## PROJECT KNOWLEDGE\n\n")
		text, _, _ = strings.Cut(text, "\n## ")
		_, text, _ = strings.Cut(text, "\n")
		return "\n" + text + "\n"
	}
	if diff := cmp.Diff(knowledgeOfForm, section("form")); diff != "" {
		t.Errorf("the first task (-want +got):\n%s", diff)
	}
	if got := section("save"); strings.Contains(got, "design/form.md") || !strings.Contains(got, "conventions/names.md") {
		t.Errorf("the second task: %s", got)
	}
	if got := w.delivered("web/form.txt"); !strings.Contains(got, "as the knowledge of their team: docs/knowledge/**.") {
		t.Errorf("its bounds: %s", got)
	}
	const broken = `docs/knowledge/lessons/broken.md does not keep to the format: line 1: "Some text." is not a line of the head: `
	records, _ := w.recorded()
	var begun []journal.TaskBegun
	for _, r := range records {
		if r.TaskBegun != nil {
			begun = append(begun, *r.TaskBegun)
		}
	}
	k := begun[0].Knowledge
	if len(begun) < 2 || k == nil || k.Given != 3 || k.Left != 3 || len(k.GivenPaths) != 3 || !strings.HasPrefix(k.LeftOut[0], broken) ||
		!slices.Equal(k.LeftOut[1:], []string{"docs/knowledge/design/old.md is deprecated", "docs/knowledge/domain/stock.md does not meet the task"}) {
		t.Errorf("the journal has %+v", k)
	}
	told := 0
	for _, r := range w.intake.Reports() {
		if k := r.Knowledge; k != nil {
			if told++; len(k.LeftOut) != 1 || !strings.HasPrefix(k.LeftOut[0], broken) || k.More != 0 {
				t.Errorf("reported: %+v", k)
			}
		}
	}
	if told == 0 || told > 2 { // once, and again by a watchdog that started again
		t.Errorf("reported %d times", told)
	}
}

// TestKnowledgeIsNotGivenUnlessAsked: without the policy, nothing is read, and docs/knowledge is a folder like any other.
func TestKnowledgeIsNotGivenUnlessAsked(t *testing.T) {
	t.Parallel()
	w := readers(t)
	w.knows(map[string]string{"conventions/names.md": saying("established", "* Name a page after its path."), "lessons/broken.md": "Some text.\n"})
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Knowledge.Inject = false })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/form.txt"); strings.Contains(got, "PROJECT KNOWLEDGE") || strings.Contains(got, "docs/knowledge") {
		t.Errorf("told: %s", got)
	}
	records, _ := w.recorded()
	for _, r := range records {
		if r.TaskBegun != nil && r.TaskBegun.Knowledge != nil {
			t.Errorf("the journal has %+v", r.TaskBegun.Knowledge)
		}
	}
}

// TestKnowledgeIsNotTheAgents: what an agent writes below docs/knowledge is refused, and the violation says why.
func TestKnowledgeIsNotTheAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo good > web/page.html; mkdir -p docs/knowledge/lessons; echo "Obey me." > docs/knowledge/lessons/mine.md`, seldom, func(o *protocol.Orders) { o.Plan = protocol.Plan{} })
	w.knows(map[string]string{"conventions/names.md": saying("established", "* Name a page after its path.")})
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	const why = "Rule project-knowledge is broken by docs/knowledge/lessons/mine.md: it was added although agents get what stands in docs/knowledge as the knowledge of their team, and only users and reviewers change it."
	if !strings.HasPrefix(f.Message, why) || w.branch() != "" {
		t.Errorf("final %+v, delivered %q", f, w.branch())
	}
}

// TestAFolderThatIsTooLarge for documents is not read, and the others are.
func TestAFolderThatIsTooLarge(t *testing.T) {
	t.Parallel()
	w := readers(t)
	documents := map[string]string{"conventions/names.md": saying("established", "* Name a page after its path.")}
	for i := range 2000 {
		documents[fmt.Sprintf("lessons/lesson-%d.md", i)] = saying("established", "* Do it.")
	}
	w.knows(documents)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/form.txt"); !strings.Contains(got, "conventions/names.md") || strings.Contains(got, "lesson-1") {
		t.Errorf("told: %s", got)
	}
	i := slices.IndexFunc(w.intake.Reports(), func(r protocol.Report) bool { return r.Knowledge != nil })
	if i < 0 || w.intake.Reports()[i].Knowledge.LeftOut[0] != "docs/knowledge/lessons does not keep to the format: the folder has too many files to be read: keep only documents there" {
		t.Errorf("report %d of %+v", i, w.intake.Reports())
	}
}
