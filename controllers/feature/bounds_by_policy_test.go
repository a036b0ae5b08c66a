// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestARoleMustBeAllowed: the refusal names role, policy and path, and ends with the policy.
func TestARoleMustBeAllowed(t *testing.T) {
	r := newHarness(t)
	p := r.policy("roles", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{AllowedRoles: []string{"reviewer", "implementor"}}}})
	r.feature("wrong", func(f *v1alpha1.Feature) { f.Spec.Agent.Role = "dba" })
	r.feature("without", nil)
	for name, role := range map[string]string{"wrong": `"dba"`, "without": `""`} {
		r.settle(name)
		r.want(name, v1alpha1.PhaseBlocked, v1alpha1.ReasonRoleNotAllowed)
		message := r.wantCondition(name, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRoleNotAllowed)
		want := "spec.agent.role is " + role + ", and the policy (agents.allowedRoles in defaults of " + r.project + "/roles) allows implementor, reviewer."
		if !strings.HasPrefix(message, want) {
			t.Errorf("%s: want %q, got %q", name, want, message)
		}
	}
	r.wantJobs()

	p.Spec.Defaults.Agents.AllowedRoles = []string{"dba", "implementor"}
	r.must(r.user.Update(r.Context(), p), "change the policy")
	r.settle("wrong")
	r.want("wrong", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantJobs("twf-wrong-1")
}

// TestNoModelBesideTheGateway: neither a key in the environment of the agent or of a gate nor a host of egress.agent lets an agent reach a provider, unless the policy says so.
// The refusal names the field and never the key.
func TestNoModelBesideTheGateway(t *testing.T) {
	r := newHarness(t)
	key := "sk-ant-" + strings.Repeat("k", 40)
	withKey := func(f *v1alpha1.Feature) {
		f.Spec.Agent.Env = []v1alpha1.EnvVar{{Name: "ANTHROPIC_API_KEY", Value: key}}
	}
	refused := func(name, want string) {
		r.Helper()
		r.settle(name)
		r.want(name, v1alpha1.PhaseBlocked, v1alpha1.ReasonModelProviderNotAllowed)
		message := r.wantCondition(name, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonModelProviderNotAllowed)
		if !strings.Contains(message, want) || !strings.Contains(message, "egress.modelProviders") || strings.Contains(message, key) {
			t.Errorf("%s: %s", name, message)
		}
	}
	r.feature("key", withKey)
	refused("key", "spec.agent.env ANTHROPIC_API_KEY is where clients look for the key of Anthropic")
	r.feature("gate", func(f *v1alpha1.Feature) {
		f.Spec.Gates = []v1alpha1.Gate{{Name: "unit", Command: []string{"make"}, Env: []v1alpha1.EnvVar{{Name: "ANTHROPIC_API_KEY", Value: key}}}}
	})
	refused("gate", "spec.gates unit env ANTHROPIC_API_KEY is where clients look for the key of Anthropic")
	p := r.policy("hosts", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Egress: &v1alpha1.EgressRules{Agent: []v1alpha1.EgressHost{{Host: "api.openai.com"}}}}})
	r.feature("host", nil)
	refused("host", "egress.agent (in defaults of "+r.project+"/hosts) lists api.openai.com of OpenAI")
	r.wantJobs()

	p.Spec.Defaults.Egress.ModelProviders = v1alpha1.ModelProvidersAllow
	r.must(r.user.Update(r.Context(), p), "allow calls beside the gateway")
	r.settle("key", "host")
	r.want("key", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.want("host", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
}

// TestGatesBeforeTheDeliveryNeedVolumes: gates of a policy run in pods of their own, which do not see an ephemeral workspace. The CRD refuses such a
// Feature with gates of its own.
func TestGatesBeforeTheDeliveryNeedVolumes(t *testing.T) {
	r := newHarness(t)
	refused := func(name, want string) {
		r.Helper()
		r.settle(name)
		r.want(name, v1alpha1.PhaseBlocked, v1alpha1.ReasonVolumesRequired)
		if m := r.wantCondition(name, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonVolumesRequired); !strings.Contains(m, want) {
			t.Errorf("%s: %s", name, m)
		}
	}
	r.policy("proven", v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Gates: []v1alpha1.PolicyGate{{Gate: v1alpha1.Gate{Name: "unit", Command: []string{"make"}}}}}})
	r.feature("policy", func(f *v1alpha1.Feature) { f.Spec.Workspace = &v1alpha1.Workspace{Ephemeral: true} })
	refused("policy", "gates in overrides of "+r.project+"/proven")
	r.wantJobs()
}

// TestNoKeyInAGateOfAPolicy: a gate runs what the agent has written, also if a policy requires it.
func TestNoKeyInAGateOfAPolicy(t *testing.T) {
	r := newHarness(t)
	r.policy("keys", v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Gates: []v1alpha1.PolicyGate{{Gate: v1alpha1.Gate{Name: "unit", Command: []string{"make"},
		Env: []v1alpha1.EnvVar{{Name: "ANTHROPIC_API_KEY", Value: "sk-ant-" + strings.Repeat("k", 40)}}}}}}})
	r.feature("key", nil)
	r.settle("key")
	r.want("key", v1alpha1.PhaseBlocked, v1alpha1.ReasonModelProviderNotAllowed)
	want := "gates (in overrides of " + r.project + "/keys) unit env ANTHROPIC_API_KEY is where clients look for the key of Anthropic"
	if m := r.wantCondition("key", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonModelProviderNotAllowed); !strings.Contains(m, want) {
		t.Error(m)
	}
	r.wantJobs()
}

// TestAPolicyRequiresAnApproval: whatever the Feature says, and its conditions name the policy.
func TestAPolicyRequiresAnApproval(t *testing.T) {
	r := newHarness(t)
	r.policy("regulated", v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Delivery: &v1alpha1.DeliveryRules{Approval: v1alpha1.ApprovalRequired}}})
	r.feature("login", func(f *v1alpha1.Feature) { f.Spec.Delivery = &v1alpha1.Delivery{Approval: v1alpha1.ApprovalNone} })
	r.feature("passing", func(f *v1alpha1.Feature) { f.Spec.Workspace = &v1alpha1.Workspace{Ephemeral: true} })
	by := "delivery.approval in overrides of " + r.project + "/regulated"

	r.settle("passing")
	r.want("passing", v1alpha1.PhaseBlocked, v1alpha1.ReasonVolumesRequired)
	if m := r.wantCondition("passing", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonVolumesRequired); !strings.Contains(m, by) {
		t.Errorf("the policy is not named: %s", m)
	}

	r.settle("login")
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted); !strings.Contains(m, by) {
		t.Errorf("the policy is not named: %s", m)
	}
	r.final("login", protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired, "")
	r.settle("login")
	r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalRequired)
	if m := r.wantCondition("login", v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonApprovalRequired); !strings.Contains(m, by) {
		t.Errorf("the policy is not named: %s", m)
	}
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Delivery.ApprovedCommit = head })
	r.settle("login")
	r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonDelivering)
}

// TestARepositoryMustBeAllowed: by every policy, before anything starts. The refusal names field, value, rule and policy, and ends with the
// policy.
func TestARepositoryMustBeAllowed(t *testing.T) {
	r := newHarness(t)
	bound := func(globs ...string) *v1alpha1.Rules {
		return &v1alpha1.Rules{Git: &v1alpha1.GitRules{Repositories: globs}}
	}
	p := r.policy("team", v1alpha1.SupervisorPolicySpec{Overrides: bound("git.example.com/team/*")})
	r.policy("wide", v1alpha1.SupervisorPolicySpec{Defaults: bound("*/**")})
	urls := map[string]string{
		"allowed": "https://GIT.example.com:443/team/shop.git", "deeper": "https://git.example.com/team/a/shop", "port": "https://git.example.com:8443/team/shop",
		"other": "https://git.example.com/other/shop", "dots": "https://git.example.com/team/%2e%2e/other", "slashes": "https://git.example.com//team/shop",
	}
	for name, url := range urls {
		r.feature(name, func(f *v1alpha1.Feature) { f.Spec.Repository.URL = url })
	}
	r.settle(slices.Sorted(maps.Keys(urls))...)
	for name, url := range urls {
		if name == "allowed" {
			r.want(name, v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
			continue
		}
		r.want(name, v1alpha1.PhaseBlocked, v1alpha1.ReasonRepositoryNotAllowed)
		message := r.wantCondition(name, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRepositoryNotAllowed)
		if want := "spec.repository.url is " + url + ", and the policy (git.repositories in "; !strings.HasPrefix(message, want) {
			t.Errorf("%s: want %q, got %q", name, want, message)
		}
		if by := "(git.repositories in overrides of " + r.project + "/team) allows git.example.com/team/*. "; name == "other" && !strings.Contains(message, by) {
			t.Errorf("want %q in it, got %q", by, message)
		}
	}
	r.wantJobs("twf-allowed-1")

	p.Spec.Overrides = bound("git.example.com/team/*", "git.example.com/other/*")
	r.must(r.user.Update(r.Context(), p), "change the policy")
	r.settle("allowed", "other")
	r.want("other", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantJobs("twf-allowed-1", "twf-other-1")
}

// TestABranchMustBeAllowed: the one that is delivered, also where the Feature names none; none where nothing is pushed.
func TestABranchMustBeAllowed(t *testing.T) {
	r := newHarness(t)
	r.policy("branches", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Delivery: &v1alpha1.DeliveryRules{Branches: []string{"agents/**"}}}})
	deliveries := map[string]*v1alpha1.Delivery{"allowed": {Branch: "agents/a/b"}, "kept": {Push: new(false)}, "main": {Branch: "main"}, "unnamed": nil}
	for name, d := range deliveries {
		r.feature(name, func(f *v1alpha1.Feature) { f.Spec.Delivery = d })
	}
	r.settle(slices.Sorted(maps.Keys(deliveries))...)
	for name := range deliveries {
		want := map[string]string{"main": "main", "unnamed": "tidewaiter/unnamed"}[name]
		if want == "" {
			r.want(name, v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
			continue
		}
		r.want(name, v1alpha1.PhaseBlocked, v1alpha1.ReasonBranchNotAllowed)
		message := r.wantCondition(name, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonBranchNotAllowed)
		want = "The branch to deliver (spec.delivery.branch) is " + want + ", and the policy (delivery.branches in defaults of " + r.project + "/branches) allows agents/**. "
		if !strings.HasPrefix(message, want) {
			t.Errorf("%s: want %q, got %q", name, want, message)
		}
	}
	r.wantJobs("twf-allowed-1", "twf-kept-1")
}

// TestAGlobThatCannotBeRead refuses what it would have bounded.
func TestAGlobThatCannotBeRead(t *testing.T) {
	r := newHarness(t)
	r.policy("typo", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Git: &v1alpha1.GitRules{Repositories: []string{"git.example.com/{a,b}"}}}})
	r.feature("login", nil)
	r.settle("login")
	r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonPolicyInvalid)
	if m := r.wantCondition("login", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonPolicyInvalid); !strings.Contains(m, "spec.defaults.git.repositories: ") {
		t.Errorf("the field is not named: %s", m)
	}
	r.wantJobs()
}
