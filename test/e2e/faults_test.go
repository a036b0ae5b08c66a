// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// TestFaultsAreClearConditions: what a user can get wrong is a condition that names it within two minutes.
func TestFaultsAreClearConditions(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	narrow := gitServer.Secret(p.project, "narrow")
	narrow.Data["hosts"] = []byte("git.example.com")
	p.must(k8s.Create(p.ctx, narrow), "make a Secret that lists its hosts")
	cases := map[string]struct {
		change      func(*v1alpha1.FeatureSpec)
		condition   string
		wantReason  string
		wantMessage string
	}{
		"wrong-url": {
			change:    func(s *v1alpha1.FeatureSpec) { s.Repository.URL = gitServer.URL("no-such-repository") },
			condition: v1alpha1.ConditionWorkspaceReady, wantReason: v1alpha1.ReasonRepositoryNotFound, wantMessage: "no-such-repository",
		},
		"missing-secret": {
			change:    func(s *v1alpha1.FeatureSpec) { s.Repository.CredentialsSecretRef.Name = "later" },
			condition: v1alpha1.ConditionWorkspaceReady, wantReason: v1alpha1.ReasonCredentialsMissing, wantMessage: "later",
		},
		"secret-of-another-host": {
			change:    func(s *v1alpha1.FeatureSpec) { s.Repository.CredentialsSecretRef.Name = "narrow" },
			condition: v1alpha1.ConditionWorkspaceReady, wantReason: v1alpha1.ReasonHostNotListed, wantMessage: "git.example.com",
		},
		"missing-revision": {
			change:    func(s *v1alpha1.FeatureSpec) { s.Repository.Revision = "no-such-branch" },
			condition: v1alpha1.ConditionWorkspaceReady, wantReason: v1alpha1.ReasonRevisionNotFound, wantMessage: "no-such-branch",
		},
		"unreachable": {
			change: func(s *v1alpha1.FeatureSpec) {
				s.Repository.URL = "https://nobody." + gitProject + ".svc/shop.git"
			},
			condition: v1alpha1.ConditionWorkspaceReady, wantReason: v1alpha1.ReasonEgressDenied, wantMessage: "nobody.",
		},
		"unschedulable": {
			change: func(s *v1alpha1.FeatureSpec) {
				s.Agent.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("900Gi")}
			},
			condition: v1alpha1.ConditionWorkspaceReady, wantReason: v1alpha1.ReasonUnschedulable, wantMessage: "memory",
		},
		"no-such-node": {
			change: func(s *v1alpha1.FeatureSpec) {
				s.Agent.Scheduling = &v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{"example.com/pool": "nowhere"}}
			},
			condition: v1alpha1.ConditionWorkspaceReady, wantReason: v1alpha1.ReasonUnschedulable, wantMessage: "example.com/pool=nowhere",
		},
		"unknown-runtime": {
			change:    func(s *v1alpha1.FeatureSpec) { s.Agent.Runtime = "abacus" },
			condition: v1alpha1.ConditionAccepted, wantReason: v1alpha1.ReasonRuntimeNotAvailable, wantMessage: "abacus",
		},
		"no-such-command": {
			change: func(s *v1alpha1.FeatureSpec) {
				s.Agent.Command, s.Agent.Args = []string{"/no/such/command"}, nil
				s.MaxRetries = ptr.To[int32](0)
			},
			condition: v1alpha1.ConditionSucceeded, wantReason: v1alpha1.ReasonAgentNotStarted, wantMessage: "/no/such/command",
		},
		"no-such-image": {
			change:    func(s *v1alpha1.FeatureSpec) { s.Agent.Image = "local.test/no-such-image:none" },
			condition: v1alpha1.ConditionSucceeded, wantReason: v1alpha1.ReasonImageUnavailable, wantMessage: "no-such-image",
		},
	}
	applied := time.Now()
	for name, c := range cases {
		p.feature(name, "true", c.change)
	}
	for name, c := range cases {
		message := p.condition(name, c.condition, c.wantReason)
		if !strings.Contains(message, c.wantMessage) {
			t.Errorf("%s: the message does not name %q: %s", name, c.wantMessage, message)
		}
		f, err := k8s.Feature(p.ctx, p.project, name)
		p.must(err, "read Feature %s", name)
		for _, cond := range f.Status.Conditions {
			if cond.Type == c.condition && cond.LastTransitionTime.Sub(applied) > 2*time.Minute {
				t.Errorf("%s: the condition came after %s", name, cond.LastTransitionTime.Sub(applied))
			}
		}
	}
	// A fault that goes away is forgotten: the work goes on by itself.
	p.must(k8s.Create(p.ctx, gitServer.Secret(p.project, "later")), "make the missing Secret")
	p.until("missing-secret", "an end", func(f *v1alpha1.Feature) bool { return f.Status.Phase == v1alpha1.PhaseDelivered })
}

func TestUnreachableRemote(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	host := "nobody." + gitProject + ".svc"
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Name: "nobody", Namespace: p.project}}
	policy.Spec.Priority = 1
	policy.Spec.Defaults = &v1alpha1.Rules{Egress: &v1alpha1.EgressRules{Git: []v1alpha1.EgressHost{{Host: host, AllowPrivate: true}}}}
	p.must(k8s.Create(p.ctx, policy), "create the policy")
	p.feature("unreachable", "true", func(s *v1alpha1.FeatureSpec) { s.Repository.URL = "https://" + host + "/shop.git" })
	if message := p.condition("unreachable", v1alpha1.ConditionWorkspaceReady, v1alpha1.ReasonRepositoryUnreachable); !strings.Contains(message, host) {
		t.Errorf("the message does not name the host: %s", message)
	}
}

func TestAgentExitsWithEveryKindOfCode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 6*time.Minute)
	cases := map[string]struct{ script, want string }{
		"last":     {"exit 255", "255"},
		"notfound": {"no-such-program", "127"},
		"killed":   {"kill -KILL $$", "137"},
	}
	for name, c := range cases {
		p.feature("exit-"+name, c.script, func(s *v1alpha1.FeatureSpec) { s.MaxRetries = ptr.To[int32](0) })
	}
	for name, c := range cases {
		f := p.phase("exit-"+name, v1alpha1.PhaseFailed, v1alpha1.ReasonAgentFailed)
		if message := cluster.Message(f, v1alpha1.ConditionSucceeded); !strings.Contains(message, c.want) {
			t.Errorf("exit-%s: the message does not name code %s: %s", name, c.want, message)
		}
	}
}

func TestRetriesCountAgentFailures(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("third-time", `[ "$TIDEWAITER_ATTEMPT" -ge 3 ] || exit 7; echo done > web/done.html`, func(s *v1alpha1.FeatureSpec) { s.MaxRetries = ptr.To[int32](2) })
	f := p.phase("third-time", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if f.Status.Failures != 2 {
		t.Errorf("want 2 failures, have %d", f.Status.Failures)
	}
}

func TestAgentThatNeverExitsMeetsItsDeadline(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("forever", `trap '' TERM; echo page > web/page.html; while :; do sleep 1; done`, func(s *v1alpha1.FeatureSpec) {
		seldomCheckpoints(s)
		s.ActiveDeadline = &metav1.Duration{Duration: time.Hour}
	})
	// No checkpoint has its work before the deadline ends it.
	p.inAgent("forever", "test -s /workspace/web/page.html")
	p.change("forever", func(s *v1alpha1.FeatureSpec) { s.ActiveDeadline = &metav1.Duration{Duration: time.Second} })
	p.phase("forever", v1alpha1.PhaseFailed, v1alpha1.ReasonDeadlineExceeded)
	p.until("forever", "its work to be kept", func(f *v1alpha1.Feature) bool { return f.Status.LastValidCheckpoint != "" })
}

func TestDeletedFeatureLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("unwanted", `while :; do date > web/now.html; sleep 1; done`, nil)
	f := p.until("unwanted", "the agent to run", func(f *v1alpha1.Feature) bool { return conditionTrue(f, v1alpha1.ConditionAgentRunning) })
	p.must(k8s.Delete(p.ctx, f), "delete the Feature")
	p.must(cluster.Until(p.ctx, "everything to go", p.empty), "wait")
}
