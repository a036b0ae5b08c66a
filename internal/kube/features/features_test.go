// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/filled"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestMemoryRoundTrip(t *testing.T) {
	var want lifecycle.Memory
	filled.Value(t, &want)
	want.Job.Run, want.Job.Mode, want.Job.Strategy = lifecycle.RunSeal, policy.ModeDeterministic, policy.StrategyShadow
	want.Head = strings.Repeat("1", 40)
	got := Memory(Status(want, v1alpha1.FeatureStatus{}, now))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a field is lost on the way through the API (-want +got):\n%s", diff)
	}
	var empty lifecycle.Memory
	if diff := cmp.Diff(empty, Memory(Status(empty, v1alpha1.FeatureStatus{}, now))); diff != "" {
		t.Errorf("nothing became something (-want +got):\n%s", diff)
	}
}

func TestStatusRoundTrip(t *testing.T) {
	var want v1alpha1.FeatureStatus
	filled.Value(t, &want)
	want.Run = nil // Intake's.
	want.Job.Run, want.Job.Mode, want.Job.Strategy = v1alpha1.RunKindSeal, v1alpha1.ModeDeterministic, policy.StrategyShadow
	want.Head = strings.Repeat("1", 40)
	for i := range want.Conditions {
		want.Conditions[i].ObservedGeneration = want.ObservedGeneration
	}
	got := Status(Memory(want), want, now)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a status that is read and written again changes (-want +got):\n%s", diff)
	}
}

func TestRunIsWhole(t *testing.T) {
	var status v1alpha1.RunStatus
	filled.Value(t, &status)
	status.Anomalies[0].Type, status.Anomalies[0].Cause = v1alpha1.ConditionAgentStalled, protocol.CauseProvider
	status.DeliveryGates[0].State = protocol.GateNotStarted
	status.Tasks[0].State = protocol.TaskGating
	run := reflect.ValueOf(*Run(&v1alpha1.Feature{Status: v1alpha1.FeatureStatus{Run: &status}}))
	for i := range run.NumField() {
		if run.Field(i).IsZero() {
			t.Errorf("lifecycle.Run.%s is not filled", run.Type().Field(i).Name)
		}
	}
	if Run(&v1alpha1.Feature{}) != nil {
		t.Error("no report became one")
	}
}

// TestContinuing counts the tasks that have retries for themselves.
func TestContinuing(t *testing.T) {
	undivided := full()
	undivided.Spec.Plan = nil
	if n, none := Spec(full(), policy.Effective{}).Continuing, Spec(undivided, policy.Effective{}).Continuing; n != 1 || none != 0 {
		t.Errorf("%d and %d tasks, want 1 and 0", n, none)
	}
	undivided.Status.Run = &v1alpha1.RunStatus{Tasks: []v1alpha1.TaskStatus{{Name: "login"}, {Name: "directive/design/1a2b3c4d"}, {Name: "delivery/gates/1"}, {Name: "delivery/polish/1"}}}
	if n := Spec(undivided, policy.Effective{}).Continuing; n != 2 {
		t.Errorf("%d tasks that reviewers have added, want 2", n)
	}
	for range 1000 {
		undivided.Status.Run.Tasks = append(undivided.Status.Run.Tasks, v1alpha1.TaskStatus{Name: "directive/design/1a2b3c4d"})
	}
	if n := Spec(undivided, policy.Effective{}).Continuing; n != maxExtra {
		t.Errorf("%d tasks, want %d", n, maxExtra)
	}
}

// TestUnlisted: only the user's list of tasks says that a task was removed.
func TestUnlisted(t *testing.T) {
	undivided := full()
	undivided.Spec.Plan = nil
	planned := full()
	planned.Spec.Planning = v1alpha1.PlanningAuto
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		task    string
		want    bool
	}{
		"no task":                     {full(), "", false},
		"listed":                      {full(), "two/form", false},
		"removed":                     {full(), "two/style", true},
		"the work was divided since":  {full(), "login", true},
		"the prompt is the task":      {undivided, "login", false},
		"the milestones were removed": {undivided, "one/form", true},
		"gates have added it":         {full(), "delivery/gates/1", false},
		"a model may have planned it": {planned, "two/style", false},
	} {
		tc.feature.Status.Run.Report = &v1alpha1.RunReport{Task: tc.task}
		if got := Run(tc.feature).Unlisted; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// full is a Feature with everything that orders are made of.
func full() *v1alpha1.Feature {
	return &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "shop", UID: "uid-1", Generation: 7, Labels: map[string]string{"policy.tidewaiter.dev/team": "web"}},
		Spec: v1alpha1.FeatureSpec{
			Prompt: "Add a login page.",
			Repository: v1alpha1.Repository{
				URL: "https://git.example.com:8443/shop.git", Revision: "v1", CredentialsSecretRef: &v1alpha1.SecretRef{Name: "shop-git"},
			},
			Plan: &v1alpha1.Plan{
				AllowedAreas: []string{"web/**"}, ForbiddenAreas: []string{"web/legacy/**"},
				Files: &v1alpha1.PlannedFiles{Create: []string{"a"}, Modify: []string{"b"}, Delete: []string{"c"}},
				Milestones: []v1alpha1.Milestone{
					{Name: "one", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "Begin."}, {Name: "style"}}},
					{Name: "two", OnTaskAborted: v1alpha1.TaskAbortedContinue, Tasks: []v1alpha1.Task{{Name: "form", Instructions: "End."}}},
				},
			},
			Agent: v1alpha1.Agent{Runtime: "command", Role: "implementor", Command: []string{"bash", "-c"}, Args: []string{"true"}, Env: []v1alpha1.EnvVar{{Name: "A", Value: "1"}}},
			Delivery: &v1alpha1.Delivery{
				Branch: "topic", Push: ptr.To(false), Approval: v1alpha1.ApprovalRequired, ApprovedCommit: "abc",
				Author: &v1alpha1.CommitAuthor{Name: "Shop", Email: "shop@example.com"},
			},
			Requests: []v1alpha1.Request{
				{ID: "now", Checkpoint: &v1alpha1.CheckpointRequest{}}, {ID: "done", Checkpoint: &v1alpha1.CheckpointRequest{}},
				{ID: "reset", ResetBreaker: &v1alpha1.ResetBreakerRequest{}}, {ID: "again", Retry: &v1alpha1.RetryRequest{}},
				{ID: "told", Checkpoint: &v1alpha1.CheckpointRequest{}},
				{ID: "all", Rollback: &v1alpha1.RollbackRequest{Checkpoint: "login-4"}},
				{ID: "some", Rollback: &v1alpha1.RollbackRequest{Paths: []string{"web"}}},
				{ID: "bad", Rollback: &v1alpha1.RollbackRequest{Kind: v1alpha1.RollbackSmart}},
				{ID: "wrong", Rollback: &v1alpha1.RollbackRequest{Checkpoint: "login-form-4"}},
			},
			Answers: []v1alpha1.Answer{{Question: "q1", Text: "Blue."}},
			Directives: []v1alpha1.Directive{
				{ID: "use-dict", Type: "Functional", Priority: "Critical", Description: "Take the labels from the dictionary.", Rationale: "They are translated there.", Files: []string{"web/dict.ts"}},
			},
		},
		Status: v1alpha1.FeatureStatus{
			Attempt: 3, Job: &v1alpha1.JobStatus{Name: "login-3", Run: v1alpha1.RunKindAgent, Mode: v1alpha1.ModeDeterministic},
			Run:              &v1alpha1.RunStatus{CheckpointSequence: 9, Requests: []v1alpha1.ObservedRequest{{ID: "done", State: "Done"}}},
			ObservedRequests: []v1alpha1.ObservedRequest{{ID: "told", State: "Failed"}},
			Reviewers:        []v1alpha1.ReviewerHeed{{Reviewer: protocol.SourceCodeStyle, Addressed: 5, Directives: 20}, {Reviewer: protocol.SourceDesign, Addressed: 6, Directives: 20}},
		},
	}
}

func TestOrders(t *testing.T) {
	effective := policy.Effective{Hash: "h", Execution: policy.Execution{Mode: policy.ModeInteractive}}
	want := protocol.Orders{
		Version: protocol.OrdersVersion,
		Feature: protocol.FeatureRef{Namespace: "shop", Name: "login", UID: "uid-1"},
		Attempt: 3, Run: "agent", Generation: 7, MayPark: true, GatePods: true, Policy: effective,
		Mode: policy.ModeDeterministic, NextMode: policy.ModeInteractive, Answers: []protocol.Answer{{Question: "q1", Text: "Blue."}},
		Repository: protocol.Repository{URL: "https://git.example.com:8443/shop.git", Revision: "v1", HasCredentials: true, SecretName: "shop-git"},
		Agent:      protocol.Agent{Runtime: "command", Role: "implementor", Command: []string{"bash", "-c"}, Args: []string{"true"}, Env: []string{"A=1"}},
		Prompt:     "Add a login page.",
		Tasks:      []protocol.Task{{Name: "one/form", Instructions: "Begin."}, {Name: "one/style"}, {Name: "two/form", Instructions: "End.", Continue: true}},
		MaxRetries: 3,
		Plan: protocol.Plan{
			Allowed: []string{"web/**"}, Forbidden: []string{"web/legacy/**"},
			Files: &protocol.FilePlan{Create: []string{"a"}, Modify: []string{"b"}, Delete: []string{"c"}},
		},
		Directives: []protocol.Directive{{
			ID: "use-dict", Source: "Person", Type: "Functional", Priority: "Critical", Description: "Take the labels from the dictionary.", Rationale: "They are translated there.",
			Files: []string{"web/dict.ts"},
		}},
		Locks:    []string{"openapi"},
		Unheeded: []string{protocol.SourceCodeStyle},
		Delivery: protocol.Delivery{
			Branch: "topic", RequireApproval: true, ApprovedCommit: "abc", AuthorName: "Shop", AuthorEmail: "shop@example.com", Subject: "Add a login page.",
		},
		Requests: []protocol.Request{
			{ID: "now", Kind: protocol.RequestCheckpoint}, {ID: "reset", Kind: protocol.RequestResetBreaker},
			{ID: "all", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: 4}},
			{ID: "some", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackPaths, Paths: []string{"web"}}},
			{ID: "bad", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackSmart}},
		},
	}
	got := Orders(full(), effective, "Add a login page.", []string{"openapi"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	if next := NextCheckpoint(full()); next != 10 {
		t.Errorf("the next checkpoint is %d", next)
	}
}

// many is a Feature with as many tasks as there may be.
func many() *v1alpha1.Feature {
	f := full()
	f.Spec.Plan.Milestones = nil
	for m := range 32 {
		milestone := v1alpha1.Milestone{Name: fmt.Sprintf("m%d", m)}
		for n := range 64 {
			milestone.Tasks = append(milestone.Tasks, v1alpha1.Task{Name: fmt.Sprintf("t%d", n)})
		}
		f.Spec.Plan.Milestones = append(f.Spec.Plan.Milestones, milestone)
	}
	return f
}

// TestThePromptIsInOrdersOnce: 2,048 tasks do not multiply it.
func TestThePromptIsInOrdersOnce(t *testing.T) {
	prompt := strings.Repeat("x", 64<<10)
	o := Orders(many(), policy.Effective{}, prompt, nil)
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 64<<10+2048*64 {
		t.Errorf("the orders of a prompt of 64 KiB and 2,048 tasks have %d bytes", len(body))
	}
}

func TestWhatIsTooLargeIsNamed(t *testing.T) {
	most := protocol.MaxArgumentBytes - len(protocol.EnvPrompt+"=")
	fits := strings.Repeat("x", most)
	huge := policy.Effective{Sources: []string{"shop/strict"}, Paths: policy.Paths{Protected: []string{strings.Repeat("x", protocol.MaxOrdersBytes)}}}
	for name, tc := range map[string]struct {
		change    func(*v1alpha1.Feature)
		effective policy.Effective
		prompt    string
		want      []string
	}{
		"everything fits": {prompt: fits},
		"a prompt":        {prompt: fits + "x", want: []string{"spec.prompt", fmt.Sprint(most + 1), fmt.Sprint(most)}},
		"a prompt from a ConfigMap": {prompt: strings.Repeat("x", 1<<20), want: []string{"ConfigMap prompts", `"login"`, "1048576"}, change: func(f *v1alpha1.Feature) {
			f.Spec.PromptFrom = &v1alpha1.PromptSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyRef{Name: "prompts", Key: "login"}}
		}},
		"instructions in many bytes": {change: func(f *v1alpha1.Feature) {
			f.Spec.Plan.Milestones[1].Tasks[0].Instructions = strings.Repeat("😀", 65536)
		}, want: []string{"task two/form", "262144"}},
		"an argument": {change: func(f *v1alpha1.Feature) { f.Spec.Agent.Args[0] = strings.Repeat("€", 65536) }, want: []string{"spec.agent.args[0]"}},
		"a variable":  {change: func(f *v1alpha1.Feature) { f.Spec.Agent.Env[0].Value = strings.Repeat("😀", 32768) }, want: []string{"spec.agent.env A"}},
		"a policy":    {effective: huge, want: []string{fmt.Sprint(protocol.MaxOrdersBytes), "shop/strict"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := full()
			if tc.change != nil {
				tc.change(f)
			}
			got := OrdersProblem(f, tc.effective, tc.prompt)
			if (got == "") != (tc.want == nil) {
				t.Fatalf("the problem is %q", got)
			}
			for _, part := range tc.want {
				if !strings.Contains(got, part) {
					t.Errorf("%q does not say %q", got, part)
				}
			}
			if len(got) > 1000 {
				t.Errorf("a message of %d bytes", len(got))
			}
		})
	}
}

func TestMode(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime, asked, want, wantNotice string
	}{
		"as asked":             {"command", policy.ModeDeterministic, policy.ModeDeterministic, ""},
		"falls back":           {"worker", policy.ModeInteractive, policy.ModeDeterministic, "Runtime worker does not support Interactive mode, falling back to Deterministic."},
		"an unknown runtime":   {"abacus", policy.ModeInteractive, "", ""},
		"a policy that is not": {"command", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Agent: v1alpha1.Agent{Runtime: tc.runtime}}}
			effective := policy.Effective{Execution: policy.Execution{Mode: tc.asked}}
			got := Mode(f, effective)
			if got.Mode != tc.want || got.Notice != tc.wantNotice {
				t.Errorf("mode %+v", got)
			}
			if s := Spec(f, effective); s.Mode != got.Mode || s.ModeNotice != got.Notice {
				t.Errorf("spec has mode %q, notice %q", s.Mode, s.ModeNotice)
			}
		})
	}
}

func TestOrdersOfAFeatureThatSaysLittle(t *testing.T) {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: "shop"}}
	o := Orders(f, policy.Effective{}, "Do it.", nil)
	if diff := cmp.Diff([]protocol.Task{{Name: "small"}}, o.Tasks); diff != "" || o.Prompt != "Do it." {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	want := protocol.Delivery{Branch: "tidewaiter/small", Push: true, AuthorName: "Tidewaiter", AuthorEmail: protocol.AuthorEmail, Subject: "Do it."}
	if diff := cmp.Diff(want, o.Delivery); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	if o.Repository.Revision != "main" || NextCheckpoint(f) != 1 || o.Stop || o.Suspend {
		t.Errorf("orders %+v", o)
	}
}

// TestOrdersHaveTheStrategyOfTheAttempt: what Auto comes to is decided once, and a watchdog is never sent the word.
func TestOrdersHaveTheStrategyOfTheAttempt(t *testing.T) {
	auto := policy.Effective{Execution: policy.Execution{Mode: policy.ModeInteractive, Strategy: policy.StrategyAuto}}
	for name, test := range map[string]struct {
		decided   string
		contracts []string
		policy    string
		want      string
	}{
		"decided, and the plan names a contract now": {policy.StrategyDirect, []string{"openapi"}, policy.StrategyAuto, policy.StrategyDirect},
		"decided, and it names none now":             {policy.StrategyShadow, nil, policy.StrategyAuto, policy.StrategyShadow},
		"not decided yet":                            {"", []string{"openapi"}, policy.StrategyAuto, policy.StrategyShadow},
		"the policy says it itself":                  {policy.StrategyShadow, nil, policy.StrategyDirect, policy.StrategyDirect},
	} {
		t.Run(name, func(t *testing.T) {
			f := full()
			f.Spec.Plan.Contracts, f.Status.Job.Strategy = test.contracts, test.decided
			e := auto
			e.Execution.Strategy = test.policy
			if got := Orders(f, e, "", nil).Policy.Execution.Strategy; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if s := Spec(f, auto); (s.Strategy == policy.StrategyShadow) != (test.contracts != nil) || s.StrategyReason == "" {
				t.Errorf("a new attempt runs by %q: %s", s.Strategy, s.StrategyReason)
			}
		})
	}
}

func TestOrdersToStop(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.Feature)
		want   string
	}{
		"deleted":             {want: protocol.ReasonDeleted, change: func(f *v1alpha1.Feature) { f.DeletionTimestamp = &metav1.Time{Time: now} }},
		"deadline":            {want: protocol.ReasonDeadlineExceeded, change: func(f *v1alpha1.Feature) { f.Status.Conditions = succeeded(v1alpha1.ReasonDeadlineExceeded) }},
		"the network is open": {want: protocol.ReasonNetworkOpened, change: func(f *v1alpha1.Feature) { f.Status.Conditions = succeeded(v1alpha1.ReasonNetworkOpened) }},
		"a lock was lost":     {want: protocol.ReasonLockLost, change: func(f *v1alpha1.Feature) { f.Status.Conditions = succeeded(v1alpha1.ReasonLockLost) }},
		"blocked":             {change: func(f *v1alpha1.Feature) { f.Status.Conditions = succeeded(v1alpha1.ReasonCheckpointInvalid) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := full()
			tc.change(f)
			if o := Orders(f, policy.Effective{}, "", nil); o.StopReason != tc.want || o.Stop != (tc.want != "") {
				t.Errorf("stop %t because of %q, want %q", o.Stop, o.StopReason, tc.want)
			}
		})
	}
}

func succeeded(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: reason}}
}

func TestSubject(t *testing.T) {
	long := "Add a login page with a form, a remember-me box and a link for people who forgot their password"
	for prompt, want := range map[string]string{
		"":                          "Work on login",
		"\n \n\t\n":                 "Work on login",
		"\n  Add   a page.\nMore.":  "Add a page.",
		long:                        "Add a login page with a form, a remember-me box and a link for people...",
		strings.Repeat("ü", 100):    strings.Repeat("ü", 69) + "...",
		strings.Repeat("x", 72):     strings.Repeat("x", 72),
		"Add \x1b[31mred\x1b[0m it": "Add [31mred [0m it",
	} {
		if got := subject(prompt, "login"); got != want {
			t.Errorf("subject of %q is %q, want %q", prompt, got, want)
		}
	}
}

func TestARollbackToAnotherFeaturesCheckpointIsRefused(t *testing.T) {
	for _, r := range Spec(full(), policy.Effective{}).Requests {
		if want := r.ID == "wrong"; (r.Refusal != "") != want || want && !strings.Contains(r.Refusal, "login-form-4") {
			t.Errorf("request %s: refusal %q", r.ID, r.Refusal)
		}
	}
}

// TestTheEndOfAWaitIsNotWrittenByItself: it goes with what is written next.
func TestTheEndOfAWaitIsNotWrittenByItself(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	status := func(phase v1alpha1.Phase, since *metav1.Time, waited int64) v1alpha1.FeatureStatus {
		return v1alpha1.FeatureStatus{Phase: phase, Job: &v1alpha1.JobStatus{Name: "login-1", WaitStartTime: since, WaitedSeconds: waited}}
	}
	for name, tc := range map[string]struct {
		was, now v1alpha1.FeatureStatus
		same     bool
	}{
		"the pod has started":     {was: status(v1alpha1.PhasePreparing, &since, 0), now: status(v1alpha1.PhasePreparing, nil, 4), same: true},
		"and the agent works":     {was: status(v1alpha1.PhasePreparing, &since, 0), now: status(v1alpha1.PhaseRunning, nil, 4)},
		"a person has answered":   {was: status(v1alpha1.PhaseAwaitingInput, &since, 0), now: status(v1alpha1.PhaseRunning, nil, 4)},
		"a wait begins":           {was: status(v1alpha1.PhasePreparing, nil, 0), now: status(v1alpha1.PhasePreparing, &since, 0)},
		"nothing has changed":     {was: status(v1alpha1.PhaseRunning, nil, 4), now: status(v1alpha1.PhaseRunning, nil, 4), same: true},
		"the first one of a Job":  {was: v1alpha1.FeatureStatus{}, now: status(v1alpha1.PhasePreparing, nil, 0)},
		"another one of the Jobs": {was: status(v1alpha1.PhasePreparing, &since, 0), now: v1alpha1.FeatureStatus{Phase: v1alpha1.PhasePreparing, Job: &v1alpha1.JobStatus{Name: "login-2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.was.DeepCopy()
			if same := equality.Semantic.DeepEqual(Settled(tc.was, tc.now), tc.now); same != tc.same {
				t.Errorf("nothing is written: %t, want %t", same, tc.same)
			}
			if !equality.Semantic.DeepEqual(*before, tc.was) {
				t.Error("the status as it was has changed")
			}
		})
	}
}

// TestAdded: tasks that gates before the delivery have added follow the tasks of the plan, with the gates of the last one. A task for a Critical directive
// stands behind the task that it follows, and has its gates.
func TestAdded(t *testing.T) {
	f := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Plan: &v1alpha1.Plan{Milestones: []v1alpha1.Milestone{{Name: "page", Tasks: []v1alpha1.Task{{Name: "form"}, {Name: "save", Gates: []string{"unit"}}}}}}}}
	o := Orders(f, policy.Effective{}, "", nil)
	if diff := cmp.Diff(o, Added(f, o)); diff != "" {
		t.Errorf("without a report (-want +got):\n%s", diff)
	}
	f.Status.Run = &v1alpha1.RunStatus{Tasks: []v1alpha1.TaskStatus{{Name: "page/form"}, {Name: "directive/design/1a2b3c4d"}, {Name: "page/save"}, {Name: "directive/design/5e6f7a8b"}, {Name: "page/dropped"}, {Name: "delivery/gates/1"}, {Name: "directive/design/90abcdef"}, {Name: "delivery/gates/2"}}}
	var names []string
	for _, x := range Added(f, o).Tasks {
		name := x.Name + " " + strings.Join(x.Gates, " ")
		if x.Continue {
			name += " continues"
		}
		names = append(names, name)
	}
	if diff := cmp.Diff([]string{"page/form ", "directive/design/1a2b3c4d  continues", "page/save unit", "directive/design/5e6f7a8b unit continues", "delivery/gates/1 unit", "directive/design/90abcdef unit continues", "delivery/gates/2 unit"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(o.Tasks) != 2 {
		t.Error("the orders themselves have changed")
	}
}

// TestGateFailures: results of tasks that are done do not count, and results before the delivery do.
func TestGateFailures(t *testing.T) {
	failed, unstarted := v1alpha1.GateStatus{Name: "unit", State: "Failed", ExitCode: 1}, v1alpha1.GateStatus{Name: "lint", State: "NotStarted", ExitCode: 127}
	f := &v1alpha1.Feature{Status: v1alpha1.FeatureStatus{Run: &v1alpha1.RunStatus{Tasks: []v1alpha1.TaskStatus{
		{Name: "page/form", State: "Done", Gates: []v1alpha1.GateStatus{unstarted}}, {Name: "page/save", State: "Running", Gates: []v1alpha1.GateStatus{{Name: "lint", State: "Passed"}, failed}},
	}}}}
	run := Run(f)
	want := []string{`gate "unit" of task "page/save": Failed (exit code 1)`}
	if diff := cmp.Diff(want, run.GateFailures); diff != "" || run.GatesUnstarted {
		t.Errorf("%t (-want +got):\n%s", run.GatesUnstarted, diff)
	}
	f.Status.Run.DeliveryGates = []v1alpha1.GateStatus{unstarted}
	run = Run(f)
	if diff := cmp.Diff(append(want, `gate "lint" before the delivery: NotStarted (exit code 127)`), run.GateFailures); diff != "" || !run.GatesUnstarted {
		t.Errorf("%t (-want +got):\n%s", run.GatesUnstarted, diff)
	}
	gated := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Gates: []v1alpha1.Gate{{Name: "unit"}}}}
	if Spec(f, policy.Effective{}).Gated || !Spec(gated, policy.Effective{}).Gated || !Spec(f, policy.Effective{Gates: []policy.Gate{{Name: "licenses"}}}).Gated {
		t.Error("work has gates exactly if the Feature or its policy lists some")
	}
}
