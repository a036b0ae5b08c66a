// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/conditions"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

func feature(t *testing.T, project, name, team string) {
	t.Helper()
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name, Labels: map[string]string{"policy.tidewaiter.dev/global.team": team}},
		Spec: v1alpha1.FeatureSpec{
			Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"},
			Agent: v1alpha1.Agent{Runtime: "command", Image: "i", Command: []string{"c"}},
		},
	}
	if err := env.Client.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func TestStatus(t *testing.T) {
	project, other := env.Project(t), env.Project(t)
	feature(t, project, "a", "web")
	feature(t, project, "b", "mobile")
	feature(t, other, "c", "web")
	web := &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"policy.tidewaiter.dev/global.team": "web"}}
	inOther := &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{corev1.LabelMetadataName: v1alpha1.LabelValue(other)}}
	tests := map[string]struct {
		namespace    string
		spec         v1alpha1.SupervisorPolicySpec
		wantStatus   metav1.ConditionStatus
		wantReason   string
		wantInTheMsg string
		wantFeatures int32
	}{
		"of-the-project": {namespace: project, wantStatus: metav1.ConditionTrue, wantReason: v1alpha1.ReasonValid, wantFeatures: 2},
		"for-some":       {namespace: project, spec: v1alpha1.SupervisorPolicySpec{Selector: web}, wantStatus: metav1.ConditionTrue, wantReason: v1alpha1.ReasonValid, wantFeatures: 1},
		"global":         {namespace: kubetest.SystemNamespace, spec: v1alpha1.SupervisorPolicySpec{Selector: web}, wantStatus: metav1.ConditionTrue, wantReason: v1alpha1.ReasonValid, wantFeatures: 2},
		"for-a-project":  {namespace: kubetest.SystemNamespace, spec: v1alpha1.SupervisorPolicySpec{NamespaceSelector: inOther}, wantStatus: metav1.ConditionTrue, wantReason: v1alpha1.ReasonValid, wantFeatures: 1},
		"not-of-the-system": {
			namespace: project, spec: v1alpha1.SupervisorPolicySpec{NamespaceSelector: inOther}, wantStatus: metav1.ConditionFalse, wantReason: v1alpha1.ReasonInvalid,
			wantInTheMsg: "spec.namespaceSelector: a policy of a project applies only to that project",
		},
		"broken-pattern": {
			namespace: project, wantStatus: metav1.ConditionFalse, wantReason: v1alpha1.ReasonInvalid, wantInTheMsg: "spec.overrides.paths.protected", wantFeatures: 2,
			spec: v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"a/[/b"}}}},
		},
		"broken-check": {
			namespace: project, wantStatus: metav1.ConditionFalse, wantReason: v1alpha1.ReasonInvalid,
			wantInTheMsg: "spec.defaults.checks[no-big-sql].cel: 1:10: undeclared reference", wantFeatures: 2,
			spec: v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Checks: []v1alpha1.Check{
				{Name: "no-big-sql", CEL: "true && (file.pth == 'a')", Message: "no"},
			}}},
		},
		"check-with-a-name-of-ours": {
			namespace: project, wantStatus: metav1.ConditionFalse, wantReason: v1alpha1.ReasonInvalid,
			wantInTheMsg: `spec.overrides.checks[symlinks].name: it is the name of a rule of Tidewaiter`, wantFeatures: 2,
			spec: v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Checks: []v1alpha1.Check{{Name: "symlinks", CEL: "true", Message: "no"}}}},
		},
		"check": {
			namespace: project, wantStatus: metav1.ConditionTrue, wantReason: v1alpha1.ReasonValid, wantFeatures: 2,
			spec: v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Checks: []v1alpha1.Check{
				{Name: "no-big-sql", CEL: "file.path.endsWith('.sql') && file.linesAdded > 500", Message: "no"},
			}}},
		},
		"answers-and-hosts": {
			namespace: project, wantStatus: metav1.ConditionTrue, wantReason: v1alpha1.ReasonValid, wantFeatures: 2,
			spec: v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{
				Egress: &v1alpha1.EgressRules{Agent: []v1alpha1.EgressHost{{Host: "registry.example.com"}}},
				Supervision: &v1alpha1.SupervisionRules{
					MaxRetries: ptr.To[int32](1), FailOnViolation: ptr.To(true), AllowRawOutput: ptr.To(false), RequireFormatValidation: ptr.To(true),
				},
			}},
		},
		"anomalies-and-roles": {
			namespace: project, wantStatus: metav1.ConditionTrue, wantReason: v1alpha1.ReasonValid, wantFeatures: 2,
			spec: v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{
				Anomalies: &v1alpha1.AnomalyRules{StallTurns: ptr.To[int32](20), Ladder: "Block", HoldTimeout: &metav1.Duration{Duration: time.Minute}},
				Roles:     []v1alpha1.RoleProfile{{Name: "dba", Pace: &v1alpha1.PacePlan{Alternate: "Ask."}}},
			}},
		},
	}
	manager := env.As(t, kubetest.Manager)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: name}, Spec: tc.spec}
			if err := env.Client.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			r := reconcile.AsReconciler(manager, &Reconciler{
				Client: manager, Clock: clocktesting.NewFakePassiveClock(time.Now()), SystemNamespace: kubetest.SystemNamespace,
			})
			key := client.ObjectKeyFromObject(p)
			version := ""
			for range 2 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
				if err := env.Client.Get(t.Context(), key, p); err != nil {
					t.Fatal(err)
				}
				if version != "" && version != p.ResourceVersion {
					t.Error("a reconcile without news writes")
				}
				version = p.ResourceVersion
			}
			for _, condition := range []string{v1alpha1.ConditionValid, v1alpha1.ConditionReady} {
				c := meta.FindStatusCondition(p.Status.Conditions, condition)
				if c == nil || c.Status != tc.wantStatus || c.Reason != tc.wantReason || !strings.Contains(c.Message, tc.wantInTheMsg) {
					t.Errorf("%s is %+v, want %s/%s and a message with %q", condition, c, tc.wantStatus, tc.wantReason, tc.wantInTheMsg)
				}
			}
			if p.Status.Features != tc.wantFeatures || p.Status.ObservedGeneration != p.Generation {
				t.Errorf("status %+v, want %d Features", p.Status, tc.wantFeatures)
			}
		})
	}
}

// TestStoredRulesThatNothingActsOnAreNamed: the API server refuses them in new policies, so this one is not stored.
func TestStoredRulesThatNothingActsOnAreNamed(t *testing.T) {
	var list []metav1.Condition
	p := &v1alpha1.SupervisorPolicy{Spec: v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Models: []v1alpha1.ModelRef{{Role: "reviewer"}}}}}
	setValid(conditions.Writer{List: &list, Now: time.Now()}, &scope{policy: p})
	c := meta.FindStatusCondition(list, v1alpha1.ConditionValid)
	if want := "This version does not act on: spec.defaults.models[].role. Remove them."; c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonPartlyActedOn || c.Message != want {
		t.Errorf("Valid is %+v, want True/%s with the message %q", c, v1alpha1.ReasonPartlyActedOn, want)
	}
}
