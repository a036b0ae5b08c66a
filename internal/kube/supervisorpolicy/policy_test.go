// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// login is a Feature that policies apply to.
func login() *v1alpha1.Feature {
	return &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "shop", UID: "uid-1", Labels: map[string]string{"policy.tidewaiter.dev/team": "web"}},
		Spec:       v1alpha1.FeatureSpec{Repository: v1alpha1.Repository{URL: "https://git.example.com:8443/shop.git"}},
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
	e, err := Effective(login(), policies, Place{SystemNamespace: "tidewaiter-system"})
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
		e, err := Effective(login(), policies[n:], Place{SystemNamespace: "tidewaiter-system"})
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
				Reviewers: &v1alpha1.ReviewerRules{Custom: []v1alpha1.CustomReviewer{{Name: "design", Instructions: "Look.", Paths: []string{"ok", "a/[/b"}}}},
			},
		},
	}
	_, err := Source(p, "tidewaiter-system")
	if err == nil {
		t.Fatal("taken as it is")
	}
	for _, want := range []string{"spec.selector", "spec.defaults.changes.maxFileSize", "spec.defaults.changes.symlinks: \"Perhaps\" is not one of", "spec.overrides.paths.protected", "spec.overrides.paths.rules[1].paths", "spec.overrides.contracts[openapi].paths", "spec.overrides.checks[c].cel", "spec.overrides.reviewers.custom[design].paths", "spec.overrides.reviewers.custom[design].name"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
	f := login()
	if _, err := Effective(f, []v1alpha1.SupervisorPolicy{*p}, Place{SystemNamespace: "tidewaiter-system"}); !errors.Is(err, ErrUnusable) {
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
		Ledger:      &v1alpha1.LedgerRules{FailurePolicy: "Ignore", ToolResults: "Redacted"},
		Budget: &v1alpha1.BudgetRules{
			Budget: v1alpha1.Budget{MaxInputTokens: ptr.To[int64](1), MaxOutputTokens: ptr.To[int64](2), MaxCost: "12.50"}, Project: &v1alpha1.Budget{MaxCost: "100"},
			Global: &v1alpha1.Budget{MaxInputTokens: ptr.To[int64](3)}, WarnAtPercent: ptr.To[int32](90), CallsPerMinute: ptr.To[int32](60),
		},
		Models:    []v1alpha1.ModelRef{{Role: "primary", Backend: "b", Model: "m", ProviderState: v1alpha1.ProviderStateAllow}},
		Anomalies: &v1alpha1.AnomalyRules{StallTurns: ptr.To[int32](20), SilenceTimeout: &metav1.Duration{Duration: time.Minute}, Ladder: "Hold"},
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
		Reviewers: &v1alpha1.ReviewerRules{
			CodeStyle: &v1alpha1.ReviewerRule{Enabled: ptr.To(true), EveryTasks: ptr.To[int32](2), OnMilestone: ptr.To(false), Instructions: "Name it."},
			Design:    &v1alpha1.ReviewerRule{Enabled: ptr.To(false), EveryTasks: ptr.To[int32](0), OnMilestone: ptr.To(true), Instructions: "Split it."},
			Knowledge: &v1alpha1.ReviewerRule{Enabled: ptr.To(true), EveryTasks: ptr.To[int32](4), OnMilestone: ptr.To(true), Instructions: "Write it."},
			Custom: []v1alpha1.CustomReviewer{
				{Name: "licenses", Instructions: "Name the license."},
				{Name: "queries", Instructions: "Limit them.", EveryTasks: ptr.To[int32](3), OnMilestone: ptr.To(false), Paths: []string{"*.sql"}, Priority: "Normal"},
			},
			Assessor:         &v1alpha1.ReviewerRule{Enabled: ptr.To(true), EveryTasks: ptr.To[int32](6), OnMilestone: ptr.To(false), Instructions: "Keep it."},
			UrgencyThreshold: "0.75", MaxDirectives: ptr.To[int32](4), PolishTasks: ptr.To[int32](0), CostAlertPercent: ptr.To[int32](15),
		},
		Knowledge:   &v1alpha1.KnowledgeRules{Inject: ptr.To(true), Deliver: v1alpha1.KnowledgeDeliveryOff},
		Gates:       []v1alpha1.PolicyGate{{Gate: v1alpha1.Gate{Name: "licenses", Command: []string{"check"}, Timeout: &metav1.Duration{Duration: time.Minute}}, Image: "i"}},
		Breaker:     &v1alpha1.BreakerRules{MaxCheckpointFailures: ptr.To[int32](7)},
		Egress:      &v1alpha1.EgressRules{Git: []v1alpha1.EgressHost{{Host: "g", AllowPrivate: true}}, Agent: []v1alpha1.EgressHost{{Host: "a", Port: 8443}}, ProviderTools: []string{"anthropic/web_search"}, ModelProviders: v1alpha1.ModelProvidersAllow},
		Concurrency: &v1alpha1.ConcurrencyRules{OnLockConflict: v1alpha1.LockContentionFail, OnOverlap: v1alpha1.OverlapWait, OnDelivery: v1alpha1.DeliveryNoticeDirective},
		Agents: &v1alpha1.AgentRules{
			Questions: v1alpha1.AskingGuess, QuestionTimeout: &metav1.Duration{Duration: time.Hour}, ParkAfter: &metav1.Duration{},
			AllowedRoles: []string{"dba"}, ImagePullSecrets: []v1alpha1.SecretRef{{Name: "mirror"}},
			Resources: v1alpha1.Resources{Limits: corev1.ResourceList{"memory": resource.MustParse("1024Mi")}, Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m")}},
			Scheduling: &v1alpha1.Scheduling{
				NodeSelector: map[string]v1alpha1.LabelValue{"pool": "agents"}, PriorityClassName: ptr.To("batch"),
				Tolerations:               []v1alpha1.Toleration{{Key: "spot", Value: "yes", Effect: v1alpha1.TaintNoExecute, TolerationSeconds: ptr.To[int64](0)}},
				TopologySpreadConstraints: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: v1alpha1.ScheduleAnyway, MaxSkew: 2}},
			},
		},
		Capacity:  &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](8), MaxRunningTotal: ptr.To[int32](80)},
		Retention: &v1alpha1.RetentionRules{Checkpoints: ptr.To[int32](9), MaxUnpromotedSize: &size, LedgerPeriod: &metav1.Duration{Duration: 5}},
		Delivery:  &v1alpha1.DeliveryRules{Approval: v1alpha1.ApprovalRequired, History: v1alpha1.HistoryHold, Branches: []string{"tidewaiter/**"}},
		Isolation: v1alpha1.IsolationWarn,
		Git:       &v1alpha1.GitRules{SilenceTimeout: &metav1.Duration{Duration: time.Minute}, Repositories: []string{"git.example.com/team/*"}},
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
	if got.ToolResults != policy.ToolResultsRedacted || got.LedgerFailure != policy.LedgerIgnore {
		t.Errorf("ledger %q, %q", got.LedgerFailure, got.ToolResults)
	}
	if diff := cmp.Diff(policy.QuestionRules{Asking: policy.AskGuess, Timeout: ptr.To(time.Hour), ParkAfter: new(time.Duration)}, got.Questions); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(policy.ReviewerRules{
		CodeStyle: policy.ReviewerRule{Enabled: ptr.To(true), EveryTasks: ptr.To(2), OnMilestone: ptr.To(false), Instructions: "Name it."},
		Design:    policy.ReviewerRule{Enabled: ptr.To(false), EveryTasks: ptr.To(0), OnMilestone: ptr.To(true), Instructions: "Split it."},
		Knowledge: policy.ReviewerRule{Enabled: ptr.To(true), EveryTasks: ptr.To(4), OnMilestone: ptr.To(true), Instructions: "Write it."},
		Custom: []policy.CustomReviewer{
			{Name: "licenses", Instructions: "Name the license.", OnMilestone: true, Priority: policy.ReviewLow},
			{Name: "queries", Instructions: "Limit them.", EveryTasks: 3, Paths: []string{"*.sql"}, Priority: policy.ReviewNormal},
		},
		Assessor:         policy.ReviewerRule{Enabled: ptr.To(true), EveryTasks: ptr.To(6), OnMilestone: ptr.To(false), Instructions: "Keep it."},
		UrgencyThreshold: ptr.To[int64](75), MaxDirectives: ptr.To(4), PolishTasks: ptr.To(0), CostAlertPercent: ptr.To(15),
	}, got.Reviewers); diff != "" {
		t.Errorf("reviewers (-want +got):\n%s", diff)
	}
	if got.Knowledge.Inject == nil || !*got.Knowledge.Inject || got.Knowledge.Deliver != policy.KnowledgeOff {
		t.Errorf("knowledge %+v", got.Knowledge)
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

// TestAllowedRolesReachTheCore: of every policy that applies.
func TestAllowedRolesReachTheCore(t *testing.T) {
	f := login()
	list := func(namespace string, roles ...string) v1alpha1.SupervisorPolicy {
		return v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "roles"}, Spec: v1alpha1.SupervisorPolicySpec{
			Overrides: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{AllowedRoles: roles}},
		}}
	}
	policies := []v1alpha1.SupervisorPolicy{list("tidewaiter-system", "implementor", "dba"), list("shop", "dba", "writer"), list("bank", "teller")}
	e, err := Effective(f, policies, Place{SystemNamespace: "tidewaiter-system"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.AllowedRoles, []string{"dba"}) {
		t.Errorf("allowed are %v", e.AllowedRoles)
	}
}

// TestAStopThatCannotSelectStopsAll that it could select.
func TestAStopThatCannotSelectStopsAll(t *testing.T) {
	label := map[string]v1alpha1.LabelValue{"policy.tidewaiter.dev/team": "mobile"} // the platform's policies may not select by a label of projects
	for namespace, want := range map[string]int{"tidewaiter-system": 1, "bank": 0} {
		p := v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stop"}, Spec: v1alpha1.SupervisorPolicySpec{
			Suspend: true, Selector: &v1alpha1.LabelSelector{MatchLabels: label},
		}}
		e, err := Effective(login(), []v1alpha1.SupervisorPolicy{p}, Place{SystemNamespace: "tidewaiter-system"})
		if len(e.SuspendedBy) != want || (err != nil) != (want == 1) {
			t.Errorf("%s: suspended by %q, %v", namespace, e.SuspendedBy, err)
		}
	}
}
