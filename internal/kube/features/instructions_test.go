// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	directed "github.com/tidewaiter/tidewaiter/internal/core/session/directives"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

// TestTheManagerHasNoRepository: where the knowledge of a team would stand, a line says who puts it there.
func TestTheManagerHasNoRepository(t *testing.T) {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Spec: v1alpha1.FeatureSpec{Prompt: "Add a login page."}}
	if got := Facts(f, policy.Effective{}, "login").Knowledge; got != nil {
		t.Errorf("without the policy: %q", got)
	}
	if got := Facts(f, policy.Effective{Knowledge: policy.Knowledge{Inject: true}}, "login").Text("Work."); !strings.Contains(got, "\n\n## PROJECT KNOWLEDGE\n\n(Here the watchdog puts the rules of the documents") {
		t.Errorf("told %s", got)
	}
}

// TestFactsAreTheWatchdogs: what a user reads of a Feature and its status is what the watchdog makes of orders and journal, once it has reported.
func TestFactsAreTheWatchdogs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Spec: v1alpha1.FeatureSpec{
			Prompt: "Add a login page.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"}, Plan: &v1alpha1.Plan{AllowedAreas: []string{"web/**"}},
		}}
		f.Status.Attempt = 1
		for i := range rapid.IntRange(0, 5).Draw(r, "directives") {
			f.Spec.Directives = append(f.Spec.Directives, v1alpha1.Directive{ID: fmt.Sprintf("d%d", i), Description: "Do it."})
		}
		j := journal.State{Tasks: map[string]journal.Task{}}
		report := protocol.StatusReport{State: protocol.StateActive}
		for m := range rapid.IntRange(1, 4).Draw(r, "milestones") {
			milestone := v1alpha1.Milestone{Name: fmt.Sprintf("m%d", m)}
			for i := range rapid.IntRange(1, 20).Draw(r, "tasks") {
				milestone.Tasks = append(milestone.Tasks, v1alpha1.Task{Name: fmt.Sprintf("t%d", i)})
			}
			f.Spec.Plan.Milestones = append(f.Spec.Plan.Milestones, milestone)
		}
		o := Orders(f, policy.Effective{}, f.Spec.Prompt, nil)
		for i, task := range o.Tasks {
			have := journal.Task{Done: rapid.Bool().Draw(r, "done")}
			state := protocol.TaskPending
			if !have.Done && rapid.Bool().Draw(r, "aborted") {
				have.Aborted, have.Aborting = true, &journal.TaskAborted{Message: plain.Line(rapid.String().Draw(r, "why"), protocol.MaxTaskMessage)}
			}
			if have.Over() {
				state = protocol.TaskDone
				if have.Aborted {
					state = protocol.TaskAborted
				}
				have.Work = protocol.TaskWork{
					Checkpoint: int64((i*7)%len(o.Tasks) + 1), Promoted: rapid.Int64Range(0, 3).Draw(r, "promoted"), Summary: plain.Line(rapid.String().Draw(r, "summary"), protocol.MaxTaskSummary),
				}
			}
			j.Tasks[task.Name] = have
			report.Tasks = append(report.Tasks, protocol.TaskStatus{Name: task.Name, State: state})
		}
		for i := range rapid.IntRange(0, 14).Draw(r, "found") {
			j.Found = append(j.Found, protocol.Directive{
				ID: fmt.Sprintf("code-style/%d", i), Source: protocol.SourceCodeStyle, Type: rapid.SampledFrom([]string{protocol.DirectiveCleanup, protocol.DirectiveFunctional}).Draw(r, "type"),
				Priority:    rapid.SampledFrom([]string{protocol.PriorityCritical, protocol.PriorityNormal, protocol.PriorityLow}).Draw(r, "priority"),
				Description: plain.Line("Name it "+rapid.String().Draw(r, "description"), 700), Rationale: plain.Line(rapid.String().Draw(r, "rationale"), 200), Files: []string{"web/a b.ts"},
			})
		}
		effective := policy.Effective{Reviewers: policy.Reviewers{PolishTasks: rapid.IntRange(0, 2).Draw(r, "polish tasks")}}
		j.Orders = &protocol.Orders{Policy: effective, Tasks: o.Tasks}
		for i := range rapid.IntRange(0, 2).Draw(r, "polished") { // a user has added tasks then
			name := fmt.Sprint(protocol.PolishPrefix, i+1)
			j.Added, j.Tasks[name] = append(j.Added, journal.TaskAdded{Name: name}), journal.Task{Done: true}
			report.Tasks = append(report.Tasks, protocol.TaskStatus{Name: name, State: protocol.TaskDone})
		}
		listed := o.Tasks
		o = j.Complete(o)
		given := func() directed.List {
			return j.Directives.Given(slices.Concat(o.Directives, j.Found), j.TasksDone()).Hold(j.Holds())
		}
		j.Directives = j.Directives.With(given().Follow())
		for _, d := range slices.Concat(o.Directives, j.Found) {
			if rapid.Bool().Draw(r, "told") {
				j.Directives = j.Directives.With(given().Learn(directed.News{Told: []string{d.ID}, How: "told", Words: []directed.Word{{ID: rapid.SampledFrom(slices.Concat(o.Directives, j.Found)).Draw(r, "said").ID, Outcome: directed.Done}}}))
			}
		}
		report.Directives = given().Status()
		works := j.Works()
		for i := range report.Tasks {
			name := report.Tasks[i].Name
			if report.Tasks[i].Work = works[name]; works[name] != nil && j.Tasks[name].Aborted {
				report.Tasks[i].Message = j.Tasks[name].Aborting.Message
			}
		}
		run := runstatus.Bound(runstatus.Fold(v1alpha1.RunStatus{}, f.Name, 1, []protocol.Report{{Epoch: 1, Sequence: 1, Status: &report}}))
		f.Status.Run = &run
		task := listed[rapid.IntRange(0, len(listed)-1).Draw(r, "task")].Name
		bounds := Bounds(f, policy.Effective{})
		want := instructions.Of(o, task, bounds, func(name string) instructions.Task {
			is := instructions.Task{Done: j.Tasks[name].Done, Aborted: j.Tasks[name].Aborted, Work: works[name]}
			if is.Aborted && is.Work != nil {
				is.Message = j.Tasks[name].Aborting.Message
			}
			return is
		})
		want.Directives = given().Instructions()
		if diff := cmp.Diff(want.Text("Work."), Facts(f, effective, task).Text("Work.")); diff != "" {
			r.Errorf("(-watchdog +features/prompt):\n%s", diff)
		}
	})
}
