// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fill sets every field of a value to something that is not its zero.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(now.Add(time.Duration(*n) * time.Second)))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(now.Add(time.Duration(*n) * time.Second))))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(*resource.NewQuantity(int64(*n), resource.BinarySI)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("cannot fill a %s", v.Type())
	}
}

func TestMemoryRoundTrip(t *testing.T) {
	var want lifecycle.Memory
	n := 0
	fill(t, reflect.ValueOf(&want).Elem(), &n)
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
	n := 0
	fill(t, reflect.ValueOf(&want).Elem(), &n)
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
	n := 0
	fill(t, reflect.ValueOf(&status).Elem(), &n)
	status.Anomalies[0].Type, status.Anomalies[0].Cause = v1alpha1.ConditionAgentStalled, protocol.CauseProvider
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
					{Name: "two", Tasks: []v1alpha1.Task{{Name: "form", Instructions: "End."}}},
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
		},
	}
}

func TestOrders(t *testing.T) {
	effective := policy.Effective{Hash: "h", Execution: policy.Execution{Mode: policy.ModeInteractive}}
	want := protocol.Orders{
		Version: protocol.OrdersVersion,
		Feature: protocol.FeatureRef{Namespace: "shop", Name: "login", UID: "uid-1"},
		Attempt: 3, Run: "agent", Generation: 7, Policy: effective,
		Mode: policy.ModeDeterministic, NextMode: policy.ModeInteractive, Answers: []protocol.Answer{{Question: "q1", Text: "Blue."}},
		Repository: protocol.Repository{URL: "https://git.example.com:8443/shop.git", Revision: "v1", HasCredentials: true, SecretName: "shop-git"},
		Agent:      protocol.Agent{Runtime: "command", Role: "implementor", Command: []string{"bash", "-c"}, Args: []string{"true"}, Env: []string{"A=1"}},
		Prompt:     "Add a login page.",
		Tasks:      []protocol.Task{{Name: "one/form", Instructions: "Begin."}, {Name: "one/style"}, {Name: "two/form", Instructions: "End."}},
		Plan: protocol.Plan{
			Allowed: []string{"web/**"}, Forbidden: []string{"web/legacy/**"},
			Files: &protocol.FilePlan{Create: []string{"a"}, Modify: []string{"b"}, Delete: []string{"c"}},
		},
		Directives: []protocol.Directive{{
			ID: "use-dict", Source: "Person", Type: "Functional", Priority: "Critical", Description: "Take the labels from the dictionary.", Rationale: "They are translated there.",
			Files: []string{"web/dict.ts"},
		}},
		Locks: []string{"openapi"},
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
	want := protocol.Delivery{Branch: "tidewaiter/small", Push: true, AuthorName: "Tidewaiter", AuthorEmail: defaultAuthorEmail, Subject: "Do it."}
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

func TestEffectiveUsesWhatApplies(t *testing.T) {
	keep := func(n int32) *v1alpha1.Rules {
		return &v1alpha1.Rules{Retention: &v1alpha1.RetentionRules{Checkpoints: &n}}
	}
	policies := []v1alpha1.SupervisorPolicy{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "tidewaiter-system", Name: "global"}, Spec: v1alpha1.SupervisorPolicySpec{Defaults: keep(3)}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1alpha1.SupervisorPolicySpec{
			Selector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"policy.tidewaiter.dev/team": "web"}}, Defaults: keep(5),
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mobile"}, Spec: v1alpha1.SupervisorPolicySpec{
			Selector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"policy.tidewaiter.dev/team": "mobile"}}, Overrides: keep(7),
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "broken"}, Spec: v1alpha1.SupervisorPolicySpec{
			Overrides: &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"[/"}}},
		}},
	}
	e, err := Effective(full(), policies, Place{SystemNamespace: "tidewaiter-system"})
	if err != nil {
		t.Fatal(err)
	}
	if e.KeepCheckpoints != 5 {
		t.Errorf("keeps %d checkpoints, want 5 of the project's policy", e.KeepCheckpoints)
	}
	if diff := cmp.Diff([]string{"shop/web", "tidewaiter-system/global"}, e.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]policy.Host{{Name: "git.example.com", Port: 8443}}, e.GitHosts); diff != "" {
		t.Errorf("Git hosts (-want +got):\n%s", diff)
	}
}

// TestAnEmptyListOfHostsIsOne: a global policy takes all hosts from the agents of a project that lists some.
func TestAnEmptyListOfHostsIsOne(t *testing.T) {
	policies := []v1alpha1.SupervisorPolicy{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "tidewaiter-system", Name: "closed"}, Spec: v1alpha1.SupervisorPolicySpec{
			Overrides: &v1alpha1.Rules{Egress: &v1alpha1.EgressRules{Agent: []v1alpha1.EgressHost{}}},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1alpha1.SupervisorPolicySpec{
			Overrides: &v1alpha1.Rules{Egress: &v1alpha1.EgressRules{Agent: []v1alpha1.EgressHost{{Host: "registry.example.com"}}}},
		}},
	}
	for n, want := range map[int][]policy.Host{1: {{Name: "registry.example.com", Port: 443}}, 0: {}} {
		e, err := Effective(full(), policies[n:], Place{SystemNamespace: "tidewaiter-system"})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, e.AgentHosts) {
			t.Errorf("without the first %d policies agents may reach %v, want %v", n, e.AgentHosts, want)
		}
		if diff := cmp.Diff([]policy.Host{{Name: "git.example.com", Port: 8443}}, e.GitHosts); diff != "" {
			t.Errorf("Git hosts (-want +got):\n%s", diff)
		}
	}
}

func TestPolicyNamesEveryFieldThatCannotBeUsed(t *testing.T) {
	p := &v1alpha1.SupervisorPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "broken"},
		Spec: v1alpha1.SupervisorPolicySpec{
			Selector: &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelRequirement{{Key: "policy.tidewaiter.dev/team", Operator: "Near"}}},
			Defaults: &v1alpha1.Rules{Changes: &v1alpha1.ChangeRules{MaxFileSize: ptr.To(resource.MustParse("0")), Symlinks: "Perhaps"}},
			Overrides: &v1alpha1.Rules{
				Paths: &v1alpha1.PathRules{
					Protected: []string{"ok/**", "a/[/b"}, Rules: []v1alpha1.PathRule{{Paths: []string{"a"}}, {Paths: []string{"../b"}}},
				},
				Contracts: []v1alpha1.ContractRule{{Name: "openapi", Paths: []string{"!api.yaml"}}},
				Checks:    []v1alpha1.Check{{Name: "c", CEL: "file.size", Message: "m"}},
			},
		},
	}
	_, err := Policy(p, "tidewaiter-system")
	if err == nil {
		t.Fatal("taken as it is")
	}
	for _, want := range []string{"spec.selector", "spec.defaults.changes.maxFileSize", "spec.defaults.changes.symlinks: \"Perhaps\" is not one of", "spec.overrides.paths.protected", "spec.overrides.paths.rules[1].paths", "spec.overrides.contracts[openapi].paths", "spec.overrides.checks[c].cel"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
	f := full()
	if _, err := Effective(f, []v1alpha1.SupervisorPolicy{*p}, Place{SystemNamespace: "tidewaiter-system"}); !errors.Is(err, ErrUnusablePolicy) {
		t.Errorf("a policy whose selector cannot be read is passed over: %v", err)
	}
}

func TestRulesReachTheCore(t *testing.T) {
	size := resource.MustParse("1Mi")
	r := &v1alpha1.Rules{
		Execution: &v1alpha1.Execution{
			Mode: v1alpha1.ModeDeterministic, Strategy: v1alpha1.StrategyShadow, Promotion: v1alpha1.PromotionIncremental, RevertOnViolation: v1alpha1.RevertFull,
			Checkpoint: &v1alpha1.CheckpointTriggers{
				Interval: &metav1.Duration{Duration: time.Second}, MinInterval: &metav1.Duration{Duration: 2}, PauseTimeout: &metav1.Duration{Duration: 3}, MaxChanges: ptr.To[int32](4),
			},
		},
		Paths: &v1alpha1.PathRules{
			Protected: []string{"a/**"}, Severity: v1alpha1.SeverityCritical,
			Rules: []v1alpha1.PathRule{{Paths: []string{"db/**"}, Roles: []string{"dba"}, Access: "Write"}},
		},
		Contracts:   []v1alpha1.ContractRule{{Name: "openapi", Paths: []string{"api.yaml"}}, {Name: "db", Paths: []string{"db/**"}}},
		Checks:      []v1alpha1.Check{{Name: "c", CEL: "file.size > 1", Message: "m", Severity: v1alpha1.SeverityWarning}},
		Supervision: &v1alpha1.SupervisionRules{Enabled: ptr.To(false), TimeoutProfile: "Long", MaxCorrections: ptr.To[int32](1)},
		Ledger:      &v1alpha1.LedgerRules{OnFailure: "Open", ToolResults: "Redacted"},
		Budget: &v1alpha1.BudgetRules{
			Budget: v1alpha1.Budget{InputTokens: ptr.To[int64](1), OutputTokens: ptr.To[int64](2), Cost: "12.50"}, Project: &v1alpha1.Budget{Cost: "100"},
			Global: &v1alpha1.Budget{InputTokens: ptr.To[int64](3)}, WarnAtPercent: ptr.To[int32](90), CallsPerMinute: ptr.To[int32](60),
		},
		Models:    []v1alpha1.ModelRef{{Role: "primary", Backend: "b", Model: "m", ProviderState: v1alpha1.ProviderStateAllow}},
		Anomalies: &v1alpha1.AnomalyRules{Stall: ptr.To[int32](20), Silence: &metav1.Duration{Duration: time.Minute}, Ladder: "Hold"},
		Roles: []v1alpha1.RoleProfile{{
			Name: "dba", Doctrine: &v1alpha1.Doctrine{SaluteIntervalTurns: ptr.To[int32](2), MaxTurnsWithoutProgress: ptr.To[int32](3)},
			Pace: &v1alpha1.PacePlan{Alternate: "a", Contingent: "c", Emergency: "e"},
		}},
		Changes: &v1alpha1.ChangeRules{
			MaxLines: ptr.To[int64](10), Hardlinks: v1alpha1.PermissionDeny, Executables: v1alpha1.PermissionDeny,
			Binaries: v1alpha1.PermissionDeny, Secrets: v1alpha1.PermissionWarn,
			Confusables:      v1alpha1.PermissionDeny,
			UnportableNames:  v1alpha1.PermissionDeny,
			HiddenCharacters: v1alpha1.PermissionDeny,
			StrayLinks:       v1alpha1.PermissionDeny,
			MaxFiles:         ptr.To[int64](5), MaxFileSize: &size, MaxWorkspaceSize: &size, MaxWorkspaceFiles: ptr.To[int64](6),
			Symlinks: v1alpha1.PermissionDeny, SpecialFiles: v1alpha1.PermissionWarn,
		},
		Breaker:     &v1alpha1.BreakerRules{MaxCheckpointFailures: ptr.To[int32](7)},
		Egress:      &v1alpha1.EgressRules{Git: []v1alpha1.EgressHost{{Host: "g", AllowPrivate: true}}, Agent: []v1alpha1.EgressHost{{Host: "a", Port: 8443}}, ProviderTools: []string{"anthropic/web_search"}, ModelProviders: v1alpha1.ModelProvidersAllow},
		Concurrency: &v1alpha1.ConcurrencyRules{Locks: v1alpha1.LockContentionFail, Overlap: v1alpha1.OverlapWait, Deliveries: v1alpha1.DeliveryNoticeDirective},
		Agents: &v1alpha1.AgentRules{
			AllowedRoles: []string{"dba"}, ImagePullSecrets: []v1alpha1.SecretRef{{Name: "mirror"}},
			Resources: v1alpha1.Resources{Limits: corev1.ResourceList{"memory": resource.MustParse("1024Mi")}, Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m")}},
			Scheduling: &v1alpha1.Scheduling{
				NodeSelector: map[string]v1alpha1.LabelValue{"pool": "agents"}, PriorityClassName: ptr.To("batch"),
				Tolerations:               []v1alpha1.Toleration{{Key: "spot", Value: "yes", Effect: v1alpha1.TaintNoExecute, TolerationSeconds: ptr.To[int64](0)}},
				TopologySpreadConstraints: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: v1alpha1.ScheduleAnyway, MaxSkew: 2}},
			},
		},
		Capacity:  &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](8), MaxRunningTotal: ptr.To[int32](80)},
		Retention: &v1alpha1.RetentionRules{Checkpoints: ptr.To[int32](9), UnpromotedBytes: &size, Ledger: &metav1.Duration{Duration: 5}},
		Delivery:  &v1alpha1.DeliveryRules{Approval: v1alpha1.ApprovalRequired, History: v1alpha1.HistoryHold, Branches: []string{"tidewaiter/**"}},
		Isolation: v1alpha1.IsolationWarn,
		Git:       &v1alpha1.GitRules{Silence: &metav1.Duration{Duration: time.Minute}, Repositories: []string{"git.example.com/team/*"}},
	}
	got, err := rules("spec.defaults", r)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(got)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("policy.Rules.%s is not filled", v.Type().Field(i).Name)
		}
	}
	if a := got.Anomalies; *a.Stall != 20 || *a.Silence != time.Minute || a.Ladder != policy.RungHold {
		t.Errorf("anomalies %+v", a)
	}
	if got.ToolResults != policy.ToolResultsRedacted || got.LedgerFailure != policy.LedgerOpen {
		t.Errorf("ledger %q, %q", got.LedgerFailure, got.ToolResults)
	}
	if want := (policy.Role{Name: "dba", SaluteEveryTurns: 2, Stall: 3, Alternate: "a", Contingent: "c", Emergency: "e"}); got.Roles[0] != want {
		t.Errorf("role %+v", got.Roles[0])
	}
	execution := reflect.ValueOf(got.Execution)
	for i := range execution.NumField() {
		if execution.Field(i).IsZero() {
			t.Errorf("policy.ExecutionRules.%s is not filled", execution.Type().Field(i).Name)
		}
	}
	if diff := cmp.Diff([]policy.Host{{Name: "g", Port: 443, AllowPrivate: true}}, got.GitHosts); diff != "" {
		t.Errorf("Git hosts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]policy.Host{{Name: "a", Port: 8443}}, got.AgentHosts); diff != "" {
		t.Errorf("the agent's hosts (-want +got):\n%s", diff)
	}
	pod := policy.PodRules{
		NodeSelector: map[string]string{"pool": "agents"}, PriorityClass: ptr.To("batch"), PullSecrets: []string{"mirror"},
		Tolerations: []policy.Toleration{{Key: "spot", Operator: "Equal", Value: "yes", Effect: "NoExecute", Seconds: policy.Seconds{Set: true}}},
		Spread:      []policy.Spread{{Key: "zone", Unsatisfiable: "ScheduleAnyway", MaxSkew: 2}},
		Limits:      map[string]policy.Quantity{"memory": {Milli: 1 << 30 * 1000, Text: "1Gi"}}, Requests: map[string]policy.Quantity{"cpu": {Milli: 1500, Text: "1500m"}},
	}
	if diff := cmp.Diff(pod, got.Pod); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	budget := policy.BudgetRules{
		Feature: policy.LimitRules{InputTokens: ptr.To[int64](1), OutputTokens: ptr.To[int64](2), Cost: ptr.To[int64](12_500_000)},
		Project: policy.LimitRules{Cost: ptr.To[int64](100_000_000)}, Global: policy.LimitRules{InputTokens: ptr.To[int64](3)}, WarnAtPercent: ptr.To(90), CallsPerMinute: ptr.To(60),
	}
	if diff := cmp.Diff(budget, got.Budget); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
	lists := policy.Rules{PathRules: got.PathRules, Contracts: got.Contracts, Checks: got.Checks}
	want := policy.Rules{
		PathRules: []policy.PathRule{{Paths: []string{"db/**"}, Roles: []string{"dba"}, Access: policy.Write}},
		Contracts: []policy.Contract{{Name: "openapi", Paths: []string{"api.yaml"}}, {Name: "db", Paths: []string{"db/**"}}},
		Checks:    []policy.Check{{Name: "c", CEL: "file.size > 1", Message: "m", Severity: policy.Warning}},
	}
	if diff := cmp.Diff(want, lists); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
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
		return v1alpha1.FeatureStatus{Phase: phase, Job: &v1alpha1.JobStatus{Name: "login-1", WaitingSince: since, WaitedSeconds: waited}}
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
