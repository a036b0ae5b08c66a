// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const patience = 30 * time.Second

var env *kubetest.Env

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// system is what the manager's other parts say.
type system struct {
	mu      sync.Mutex
	bundle  string
	changed func()
}

func (s *system) Bundle() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte(s.bundle)
}

func (s *system) OnChange(call func()) { s.changed = call }

func (s *system) rotate(bundle string) {
	s.mu.Lock()
	s.bundle = bundle
	s.mu.Unlock()
	s.changed()
}

func (s *system) Addresses(context.Context) (intake, gateway netip.Addr, err error) {
	return netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("10.96.0.11"), nil
}

// startManager runs every controller with the rights that are shipped, until the test ends.
func startManager(t *testing.T, s *system, change ...func(*ctrl.Options)) {
	t.Helper()
	byObject, err := CacheByObject(kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	env.StartManager(t, byObject, func(mgr ctrl.Manager) error {
		return Setup(mgr, Options{
			SystemNamespace: kubetest.SystemNamespace, Image: "example.com/tidewaiter:1", UserNamespaces: nodes.Auto, CABundle: s, Endpoints: s, Clock: clock.RealClock{},
		})
	}, change...)
}

// TestEventsWakeControllers follows one Feature through a manager that runs by itself: each step below only happens if
// the right event reaches the right controller, and if the shipped roles let it list, watch and write.
func TestEventsWakeControllers(t *testing.T) {
	g := gomega.NewWithT(t)
	s := &system{bundle: "first"}
	startManager(t, s)
	project, c, ctx := env.Project(t), env.Client, t.Context()
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "one"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Capacity: &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](1)}},
	}}
	g.Expect(c.Create(ctx, policy)).To(gomega.Succeed())
	for _, name := range []string{"first", "second"} {
		g.Expect(c.Create(ctx, &v1alpha1.Feature{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name},
			Spec: v1alpha1.FeatureSpec{
				Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"},
				Agent: v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
			},
		})).To(gomega.Succeed())
	}
	reasons := func(name string) func(gomega.Gomega) string {
		return func(g gomega.Gomega) string {
			var f v1alpha1.Feature
			g.Expect(c.Get(ctx, client.ObjectKey{Namespace: project, Name: name}, &f)).To(gomega.Succeed())
			if k := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded); k != nil {
				return k.Reason
			}
			return ""
		}
	}
	g.Eventually(func(g gomega.Gomega) []string { return []string{reasons("first")(g), reasons("second")(g)} }, patience).
		Should(gomega.ConsistOf(v1alpha1.ReasonPreparing, v1alpha1.ReasonAtCapacity))
	runs, waits := "first", "second"
	if reasons("second")(g) == v1alpha1.ReasonPreparing {
		runs, waits = waits, runs
	}

	// The policy knows for how many it is.
	g.Eventually(func(g gomega.Gomega) int32 {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(gomega.Succeed())
		return policy.Status.Features
	}, patience).Should(gomega.BeEquivalentTo(2))

	// A new CA bundle reaches the project; a network policy that is taken away comes back.
	s.rotate("second")
	g.Eventually(func(g gomega.Gomega) string {
		var bundle corev1.ConfigMap
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: project, Name: protocol.CAConfigMap}, &bundle)).To(gomega.Succeed())
		return bundle.Data[protocol.CAKey]
	}, patience).Should(gomega.Equal("second"))
	network := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "twf-" + runs}}
	g.Expect(c.Delete(ctx, network)).To(gomega.Succeed())
	g.Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(network), network) }, patience).Should(gomega.Succeed())

	// The pod is pinned; when the Job ends for good, the Feature that waits starts.
	job := &batchv1.Job{}
	g.Expect(c.Get(ctx, client.ObjectKey{Namespace: project, Name: "twf-" + runs + "-1"}, job)).To(gomega.Succeed())
	pod := makePod(g, t, job)
	g.Eventually(func(g gomega.Gomega) string {
		var f v1alpha1.Feature
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: project, Name: runs}, &f)).To(gomega.Succeed())
		return f.Status.Job.PodUID
	}, patience).Should(gomega.BeEquivalentTo(pod.UID))
	suspend := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: runs}}
	g.Expect(c.Patch(ctx, suspend, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`)))).To(gomega.Succeed())
	g.Eventually(reasons(runs), patience).Should(gomega.Equal(v1alpha1.ReasonSuspended))
	g.Eventually(reasons(waits), patience).Should(gomega.Equal(v1alpha1.ReasonPreparing))
}

// makePod is the Job controller. The pod never starts, so that it may go at once.
func makePod(g gomega.Gomega, t *testing.T, job *batchv1.Job) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	pod.Namespace, pod.Name = job.Namespace, job.Name+"-abcde"
	pod.Spec.ServiceAccountName = "default"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	g.Expect(env.As(t, kubetest.JobController, "system:masters").Create(t.Context(), pod)).To(gomega.Succeed())
	return pod
}

// TestFreedLocksWakeControllers: a Feature that waits for a lock, and one that waits for an area, start at once when the other
// one has ended. Nobody is left to their recheck.
func TestFreedLocksWakeControllers(t *testing.T) {
	g := gomega.NewWithT(t)
	startManager(t, &system{bundle: "first"})
	project, c, ctx := env.Project(t), env.Client, t.Context()
	g.Expect(c.Create(ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "areas"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Concurrency: &v1alpha1.ConcurrencyRules{OnOverlap: v1alpha1.OverlapWait}},
	}})).To(gomega.Succeed())
	reason := func(name string) func(gomega.Gomega) string {
		return func(g gomega.Gomega) string {
			var f v1alpha1.Feature
			g.Expect(c.Get(ctx, client.ObjectKey{Namespace: project, Name: name}, &f)).To(gomega.Succeed())
			if k := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded); k != nil {
				return k.Reason
			}
			return ""
		}
	}
	apply := func(name string, plan v1alpha1.Plan, want string) {
		g.Expect(c.Create(ctx, &v1alpha1.Feature{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name},
			Spec: v1alpha1.FeatureSpec{
				Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/" + project}, Plan: &plan,
				Agent: v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
			},
		})).To(gomega.Succeed())
		g.Eventually(reason(name), patience).Should(gomega.Equal(want))
	}
	apply("holder", v1alpha1.Plan{AllowedAreas: []string{"web/**"}, Contracts: []string{"db"}}, v1alpha1.ReasonPreparing)
	apply("locked", v1alpha1.Plan{AllowedAreas: []string{"api/**"}, Contracts: []string{"db"}}, v1alpha1.ReasonWaitingForLock)
	apply("beside", v1alpha1.Plan{AllowedAreas: []string{"web/login/**"}}, v1alpha1.ReasonWaitingForArea)
	suspend := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "holder"}}
	g.Expect(c.Patch(ctx, suspend, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`)))).To(gomega.Succeed())
	const soon = 15 * time.Second // a recheck takes 30 s
	for _, name := range []string{"locked", "beside"} {
		g.Eventually(reason(name), soon).Should(gomega.Equal(v1alpha1.ReasonPreparing))
	}
}

// TestALabelOfANamespaceWakesControllers: a global policy that selects projects by it applies from then on, and counts
// their Features.
func TestALabelOfANamespaceWakesControllers(t *testing.T) {
	g := gomega.NewWithT(t)
	startManager(t, &system{bundle: "first"})
	project, c, ctx := env.Project(t), env.Client, t.Context()
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: "regulated"}, Spec: v1alpha1.SupervisorPolicySpec{
		NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"example.com/regulated": "true"}},
	}}
	g.Expect(c.Create(ctx, policy)).To(gomega.Succeed())
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(ctx), policy) })
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "login"},
		Spec: v1alpha1.FeatureSpec{
			Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"}, Suspend: true,
			Agent: v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
		},
	}
	g.Expect(c.Create(ctx, f)).To(gomega.Succeed())
	sources := func(g gomega.Gomega) []string {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(f), f)).To(gomega.Succeed())
		g.Expect(f.Status.Policy).NotTo(gomega.BeNil())
		return f.Status.Policy.Sources
	}
	g.Eventually(sources, patience).Should(gomega.BeEmpty())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project}}
	for _, want := range []struct {
		label    string
		sources  []string
		features int32
	}{{"true", []string{kubetest.SystemNamespace + "/regulated"}, 1}, {"false", nil, 0}} {
		body := []byte(`{"metadata":{"labels":{"example.com/regulated":"` + want.label + `"}}}`)
		g.Expect(c.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json", body))).To(gomega.Succeed())
		g.Eventually(sources, patience).Should(gomega.Equal(want.sources))
		g.Eventually(func(g gomega.Gomega) int32 {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(gomega.Succeed())
			return policy.Status.Features
		}, patience).Should(gomega.Equal(want.features))
	}
}
