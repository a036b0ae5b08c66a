// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// task of a plan, whose agent plays a script.
func plannedTask(t *testing.T, name, script string, gates ...string) string {
	t.Helper()
	text, err := json.Marshal(protocol.ProposedTask{Name: name, Instructions: scripted("Do "+name+".", script), Gates: gates})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// killManager ends the manager as the loss of its node does, and waits for the next one.
func (p *place) killManager() {
	p.Helper()
	for _, pod := range p.podsOf("manager") {
		p.must(k8s.Delete(p.ctx, &pod, client.GracePeriodSeconds(0)), "delete the manager's pod")
	}
	p.must(cluster.Until(p.ctx, "another manager", func(ctx context.Context) (bool, error) {
		var d appsv1.Deployment
		err := k8s.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "tidewaiter-manager"}, &d)
		return err == nil && d.Status.ReadyReplicas == *d.Spec.Replicas, err
	}), "wait")
}

// TestPlannedFeature: a model divides the work of a real CLI into five tasks of two milestones, and a user approves the plan by its hash. Before them,
// a task of the user cannot be done and is aborted. A gate fails and is mended, another one passes on a clean checkout before the delivery. Watchdog
// and manager are killed twice on the way, and the plan stays the same. It is not parallel: other tests need the manager.
func TestPlannedFeature(t *testing.T) {
	for _, runtime := range []string{"claude-code"} {
		t.Run(runtime, func(t *testing.T) {
			p, about := newPlace(t, 8*time.Minute), "plans of "+runtime
			p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "corrections"}, Spec: v1alpha1.SupervisorPolicySpec{
				Overrides: &v1alpha1.Rules{Supervision: &v1alpha1.SupervisionRules{MaxCorrections: new(int32(1))}},
			}}), "create the policy")
			write := func(file, text string) string {
				return fmt.Sprintf("turns:\n- text: I write it.\n  run: mkdir -p web && echo %s > web/%s\n- text: It is written.", text, file)
			}
			plan := fmt.Sprintf(`{"milestones":[{"name":"page","tasks":[%s,%s,%s]},{"name":"rest","tasks":[%s,%s]}],"allowedAreas":["web/*.html"]}`,
				plannedTask(t, "form", write("form.html", "bad")+"\n- text: I mend it.\n  run: echo good > web/form.html\n- text: It is mended.", "form"),
				plannedTask(t, "save", "turns:\n- text: I wait.\n  run: sleep 20; echo save > web/save.html\n- text: It is written."),
				plannedTask(t, "list", "turns:\n- text: I wait.\n  run: sleep 10; echo list > web/list.html\n- text: It is written."),
				plannedTask(t, "help", write("help.html", "help")), plannedTask(t, "about", write("about.html", "about")))
			session(t, p, runtime, about, "", func(s *v1alpha1.FeatureSpec) {
				s.Planning = v1alpha1.PlanningApprove
				s.Prompt = "Write a page about " + about + ".\n```script propose_plan\nturns:\n- tool: {name: propose_plan, input: " + plan + "}\n```\n"
				s.Gates = []v1alpha1.Gate{gate("form", `grep -q good web/form.html || { echo "the form is bad"; exit 3; }`), gate("all", "test -e web/about.html"), gate("never", "exit 4"), gate("clean", "test -e web/about.html && ! test -e web/never.html && ! test -e .agent")}
				s.Delivery = &v1alpha1.Delivery{Gates: []string{"clean"}}
				s.Plan.Milestones = []v1alpha1.Milestone{{Name: "tries", OnTaskAborted: v1alpha1.TaskAbortedContinue, Tasks: []v1alpha1.Task{
					{Name: "never", Gates: []string{"never"}, Instructions: scripted("Do never.", write("never.html", "never")+"\n- text: I cannot.\n- text: I cannot.")},
				}}}
			})
			f := p.phase("page", v1alpha1.PhaseAwaitingInput, v1alpha1.ReasonPlanApprovalRequired)
			if slices.ContainsFunc(f.Status.Run.Tasks, func(t v1alpha1.TaskStatus) bool { return t.State != protocol.TaskPending }) || f.Status.Run.Plan.Approved {
				t.Errorf("before the approval: %+v", f.Status.Run)
			}
			p.killManager()
			refused := p.request("page", v1alpha1.Request{ID: "guess", ApprovePlan: &v1alpha1.ApprovePlanRequest{Hash: strings.Repeat("0", 64)}})
			if refused.State != "Failed" || !strings.Contains(refused.Message, f.Status.Run.Plan.Hash) {
				t.Errorf("the approval of another plan: %+v", refused)
			}
			p.wantDone(p.request("page", v1alpha1.Request{ID: "approve", ApprovePlan: &v1alpha1.ApprovePlanRequest{Hash: f.Status.Run.Plan.Hash}}), "approved")
			f = p.until("page", "it works on the second task", func(f *v1alpha1.Feature) bool {
				return f.Status.Run != nil && f.Status.Run.Report != nil && f.Status.Run.Report.Task == "page/save" && f.Status.Run.Report.AgentRunning
			})
			p.killWatchdog(f.Status.Job.PodName)
			p.killManager()
			f = p.until("page", "it works on the third task", func(f *v1alpha1.Feature) bool {
				return f.Status.Run != nil && f.Status.Run.Report != nil && f.Status.Run.Report.Task == "page/list" && f.Status.Run.Report.AgentRunning
			})
			p.killWatchdog(f.Status.Job.PodName)
			f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			if got := cluster.Message(f, v1alpha1.ConditionPlanned); got != "Milestones: 2. Tasks: 5. status.run.plan has the plan." {
				t.Errorf("condition Planned: %q", got)
			}
			if n := len(f.Status.Run.Plan.Milestones); n != 2 || !f.Status.Run.Plan.Approved {
				t.Errorf("status.run.plan %+v", f.Status.Run.Plan)
			}
			var names []string
			for _, task := range f.Status.Run.Tasks {
				names = append(names, task.Name+" "+task.State)
			}
			if got, want := strings.Join(names, ", "), "tries/never Aborted, page/form Done, page/save Done, page/list Done, rest/help Done, rest/about Done"; got != want {
				t.Errorf("tasks %s, want %s", got, want)
			}
			if got := cluster.Message(f, v1alpha1.ConditionDelivered); !strings.Contains(got, `aborted: "tries/never"`) || f.Status.Run.Report.Progress != "6/6 tasks, 1 aborted" {
				t.Errorf("condition Delivered: %q, progress %q", got, f.Status.Run.Report.Progress)
			}
			mirror, err := gitServer.Mirror(p.ctx, p.repository)
			p.must(err, "fetch from the server")
			if files := p.git(mirror, "ls-tree", "-r", "--name-only", f.Status.Branch); strings.Contains(files, "never") || !strings.Contains(files, "web/form.html") {
				t.Errorf("the branch has the files %q", files)
			}
			history := p.history(f.Status.Branch)
			for _, blob := range []string{" blob 5\ngood\n", " blob 5\nsave\n", " blob 5\nlist\n", " blob 5\nhelp\n", " blob 6\nabout\n"} {
				if !strings.Contains(history, blob) {
					t.Errorf("the branch lacks %q:\n%s", blob, history)
				}
			}
			asked, err := provider.Asked(p.ctx, "Write a page about "+about)
			p.must(err, "ask the provider")
			questions := 0
			for _, a := range asked {
				if strings.Contains(a.Body, "## REPOSITORY") {
					questions++
				}
			}
			if questions != 1 {
				t.Errorf("the planner was asked %d times", questions)
			}
		})
	}
}
