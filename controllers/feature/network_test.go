// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
)

// allow makes a network policy like a person would: egress to anywhere for the pods that a selector selects.
func (r *harness) allow(name string, pods metav1.LabelSelector) *networkingv1.NetworkPolicy {
	r.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: name}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: pods, Egress: []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}}
	r.must(r.user.Create(r.Context(), p), "make NetworkPolicy %s", name)
	return p
}

func (r *harness) disallow(p *networkingv1.NetworkPolicy) {
	r.Helper()
	r.must(r.user.Delete(r.Context(), p), "delete NetworkPolicy %s", p.Name)
}

func TestNoAgentStartsWithAnOpenNetwork(t *testing.T) {
	r := newHarness(t)
	opens := r.allow("allow-dns", metav1.LabelSelector{})
	r.feature("login", nil)
	r.settle("login")
	f := r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNetworkOpened)
	m := r.wantCondition("login", v1alpha1.ConditionIsolated, metav1.ConditionFalse, v1alpha1.ReasonNetworkOpened)
	for _, part := range []string{"NetworkPolicy allow-dns allows egress", "key: tidewaiter.dev/feature, operator: DoesNotExist", "isolation: Enforce"} {
		if !strings.Contains(m, part) {
			t.Errorf("the message %q does not say %q", m, part)
		}
	}
	r.wantCondition("login", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNetworkOpened)
	if f.Status.Attempt != 0 || r.results["login"].RequeueAfter == 0 {
		t.Errorf("attempt %d, looks again after %s", f.Status.Attempt, r.results["login"].RequeueAfter)
	}
	r.wantJobs()
	r.disallow(opens)
	r.settle("login")
	r.wantJobs("twf-login-1")
	r.wantCondition("login", v1alpha1.ConditionIsolated, metav1.ConditionTrue, v1alpha1.ReasonIsolated)
}

// TestNoAgentStartsOnALaggingCache: what the API server shows counts.
func TestNoAgentStartsOnALaggingCache(t *testing.T) {
	r := newHarness(t)
	r.lags = true
	for i := range networkPage + 1 {
		r.allow(fmt.Sprintf("of-web-%02d", i), metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	}
	opens := r.allow("zzz", metav1.LabelSelector{})
	r.feature("login", nil)
	r.settle("login")
	r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNetworkOpened)
	r.wantJobs()
	r.disallow(opens)
	r.settle("login")
	r.wantJobs("twf-login-1")
}

// TestAnOpenNetworkEndsTheAgent in order, and the next attempt waits.
func TestAnOpenNetworkEndsTheAgent(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.reportRunning("login")
	r.settle("login")
	// By a label that only this very pod has.
	opens := r.allow("mine", metav1.LabelSelector{MatchLabels: map[string]string{"job-name": "twf-login-1"}})
	r.settle("login")
	f := r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNetworkOpened)
	if f.Status.Job == nil || f.Status.Job.StopRequestTime == nil {
		t.Fatalf("the agent is not asked to end: %+v", f.Status.Job)
	}
	r.final("login", protocol.OutcomeStopped, protocol.ReasonNetworkOpened, "It was stopped.")
	r.settle("login")
	// The next attempt has another name: it is not selected.
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantJobs("twf-login-2")
	r.disallow(opens)

	// One that does not end in time is ended.
	r.allow("all", metav1.LabelSelector{})
	r.settle("login")
	r.pass(2 * time.Minute)
	r.settle("login")
	r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNetworkOpened)
	r.wantJobs()
}

func TestWhatDoesNotOpenAnAgentsNetwork(t *testing.T) {
	r := newHarness(t)
	r.allow("of-web", metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	r.allow("of-all-but-features", metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1alpha1.LabelFeature, Operator: metav1.LabelSelectorOpDoesNotExist},
	}})
	r.allow("of-another", metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelFeature: "logout"}})
	deny := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "deny"}, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress},
	}}
	r.must(r.user.Create(r.Context(), deny), "make a NetworkPolicy that denies")
	r.feature("login", nil)
	r.settle("login")
	r.wantJobs("twf-login-1")
	r.wantCondition("login", v1alpha1.ConditionIsolated, metav1.ConditionTrue, v1alpha1.ReasonIsolated)
}

func TestIngressOpensToo(t *testing.T) {
	r := newHarness(t)
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "same-namespace"}, Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
	}}
	r.must(r.user.Create(r.Context(), p), "make a NetworkPolicy")
	r.feature("login", nil)
	r.settle("login")
	if m := r.wantCondition("login", v1alpha1.ConditionIsolated, metav1.ConditionFalse, v1alpha1.ReasonNetworkOpened); !strings.Contains(m, "same-namespace allows ingress") {
		t.Errorf("the message is %q", m)
	}
	r.wantJobs()
}

func TestAnOpenNetworkMayBeWarnedOf(t *testing.T) {
	r := newHarness(t)
	r.must(r.user.Create(r.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "network"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Isolation: v1alpha1.IsolationWarn},
	}}), "make a policy")
	r.allow("allow-dns", metav1.LabelSelector{})
	r.feature("login", nil)
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantJobs("twf-login-1")
	if m := r.wantCondition("login", v1alpha1.ConditionIsolated, metav1.ConditionFalse, v1alpha1.ReasonNetworkOpened); !strings.Contains(m, "isolation: Warn") {
		t.Errorf("the message is %q", m)
	}
}

// wakes counts what a handler puts into a queue, and when.
type wakes struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	soon, later int
}

func (w *wakes) Add(reconcile.Request)                     { w.soon++ }
func (w *wakes) AddAfter(reconcile.Request, time.Duration) { w.later++ }

// threeFeatures stands for a cache that shows three Features.
type threeFeatures struct{ client.Client }

func (threeFeatures) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if features, ok := list.(*v1alpha1.FeatureList); ok {
		features.Items = make([]v1alpha1.Feature, 3)
	}
	return nil
}

// TestOnlyWhatOpensWakes: the network policies that Tidewaiter makes, and those that deny, wake nobody.
func TestOnlyWhatOpensWakes(t *testing.T) {
	controller := (&Reconciler{Client: threeFeatures{}, SystemNamespace: "tidewaiter-system"}).waker()
	of := func(rules int, app string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Egress: make([]networkingv1.NetworkPolicyEgressRule, rules),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		}}
	}
	touched := of(1, "web")
	touched.Labels, touched.ResourceVersion = map[string]string{"touched": "yes"}, "8"
	h := controller.networksChanged()
	for name, tc := range map[string]struct {
		happens func(*wakes)
		want    int
	}{
		"one that denies comes": {func(w *wakes) { h.Create(t.Context(), event.CreateEvent{Object: of(0, "web")}, w) }, 0},
		"one that opens comes":  {func(w *wakes) { h.Create(t.Context(), event.CreateEvent{Object: of(1, "web")}, w) }, 3},
		"one that opens goes":   {func(w *wakes) { h.Delete(t.Context(), event.DeleteEvent{Object: of(1, "web")}, w) }, 3},
		"one that denies goes":  {func(w *wakes) { h.Delete(t.Context(), event.DeleteEvent{Object: of(0, "web")}, w) }, 0},
		"one begins to open": {func(w *wakes) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: of(0, "web"), ObjectNew: of(1, "web")}, w)
		}, 3},
		"one selects others": {func(w *wakes) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: of(1, "web"), ObjectNew: of(1, "db")}, w)
		}, 3},
		"one is touched": {func(w *wakes) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: of(1, "web"), ObjectNew: touched}, w)
		}, 0},
		"ours comes": {func(w *wakes) {
			ours, err := as[networkingv1.NetworkPolicy](desired.NetworkPolicy(&v1alpha1.Feature{}, "tidewaiter-system"))
			if err != nil {
				t.Fatal(err)
			}
			h.Create(t.Context(), event.CreateEvent{Object: &ours}, w)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var w wakes
			tc.happens(&w)
			if w.soon != 0 || w.later != tc.want {
				t.Errorf("%d are woken at once and %d after a pause, want 0 and %d", w.soon, w.later, tc.want)
			}
		})
	}
}
