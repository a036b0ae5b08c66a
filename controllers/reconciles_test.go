// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const (
	// startBudget is how many reconciles a start may cost, whatever else exists (design: 5).
	startBudget = 5
	// idle Features that want nothing, and how many there are for the benchmark (make bench).
	idle, idleBench = 30, 150
	// quiet is how long nothing must be reconciled before it is taken that nothing will be.
	quiet = 4 * time.Second
)

// TestAStartWakesNoOthers counts: one more Feature costs the same whether it is alone or one of many.
func TestAStartWakesNoOthers(t *testing.T) {
	g := gomega.NewWithT(t)
	startManager(t, &system{bundle: "first"})
	project, c, ctx := env.Project(t), env.Client, t.Context()
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "rules"}}
	g.Expect(c.Create(ctx, policy)).To(gomega.Succeed())
	counted := func(g gomega.Gomega) int32 {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(gomega.Succeed())
		return policy.Status.Features
	}
	apply := func(name string, suspend bool) {
		g.Expect(c.Create(ctx, &v1alpha1.Feature{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name},
			Spec: v1alpha1.FeatureSpec{
				Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/" + project}, Suspend: suspend,
				Agent: v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
			},
		})).To(gomega.Succeed())
	}
	start := func(name string) {
		apply(name, false)
		var f v1alpha1.Feature
		g.Eventually(func(g gomega.Gomega) string {
			g.Expect(c.Get(ctx, client.ObjectKey{Namespace: project, Name: name}, &f)).To(gomega.Succeed())
			if k := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded); k != nil {
				return k.Reason
			}
			return ""
		}, patience).Should(gomega.Equal(v1alpha1.ReasonPreparing))
		job := &batchv1.Job{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: project, Name: "twf-" + name + "-1"}, job)).To(gomega.Succeed())
		pod := makePod(g, t, job)
		g.Eventually(func(g gomega.Gomega) string {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(&f), &f)).To(gomega.Succeed())
			return f.Status.Job.PodUID
		}, patience).Should(gomega.BeEquivalentTo(pod.UID))
	}
	cost := func(features int32, do func()) (starting, counting float64) {
		settled(t)
		feature, supervisor := reconciles(t, "feature"), reconciles(t, "supervisorpolicy")
		do()
		g.Eventually(counted, patience).Should(gomega.Equal(features))
		settled(t)
		return reconciles(t, "feature") - feature, reconciles(t, "supervisorpolicy") - supervisor
	}

	// suspend lets a Feature rest: one that runs is looked at every now and then.
	suspend := func(name string) {
		f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}}
		g.Expect(c.Patch(ctx, f, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`)))).To(gomega.Succeed())
		g.Eventually(func(g gomega.Gomega) v1alpha1.Phase {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(f), f)).To(gomega.Succeed())
			return f.Status.Phase
		}, patience).Should(gomega.Equal(v1alpha1.PhaseSuspended))
	}
	var features int32
	others, report := idle, func(string, float64) {}
	if os.Getenv("TIDEWAITER_BENCH") != "" {
		others, report = idleBench, func(when string, cost float64) {
			fmt.Fprintf(os.Stdout, "ratio start-reconciles/%s %v - %v <=%d ok\n", when, cost, cost, startBudget)
		}
	}
	// least cost of three starts: a slow machine adds looks (a cache that lags, an attempt that is looked at again).
	least := func(when string) {
		fewest := 0.0
		for i := range 3 {
			features++
			name := fmt.Sprintf("%s-%d", when, i)
			starting, counting := cost(features, func() { start(name) })
			t.Logf("%s: a start costs %v reconciles, and %v of the policy", name, starting, counting)
			if fewest = starting + max(counting-2, 0); fewest <= startBudget {
				report(when, fewest)
				return
			}
			suspend(name)
		}
		t.Errorf("%s: a start costs %v reconciles, more than %d", when, fewest, startBudget)
	}
	least("alone")
	if features == 1 {
		suspend("alone-0")
	}
	for i := range others {
		apply(fmt.Sprintf("idle-%d", i), true)
	}
	features += int32(others)
	g.Eventually(counted, patience).Should(gomega.Equal(features))
	least(fmt.Sprintf("among-%d", others))
}

// settled waits until nothing is reconciled any more. A Feature whose attempt runs is looked at every 20 s.
func settled(t *testing.T) {
	t.Helper()
	total := func() float64 { return reconciles(t, "feature") + reconciles(t, "supervisorpolicy") }
	for range 20 {
		before := total()
		time.Sleep(quiet)
		if total() == before {
			return
		}
	}
	t.Fatal("the controllers do not come to rest")
}

// reconciles that a controller has made in this process.
func reconciles(t *testing.T, controller string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == controller {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}

// TestCachedPodsSayWhereTheyAre: what is dropped from the cache to save memory is not what messages name.
func TestCachedPodsSayWhereTheyAre(t *testing.T) {
	byObject, err := CacheByObject(kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for o, options := range byObject {
		if _, ok := o.(*corev1.Pod); !ok {
			continue
		}
		kept, err := options.Transform(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"example.com/hold"}},
			Spec:       corev1.PodSpec{NodeName: "worker-7", Containers: []corev1.Container{{Name: "agent"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if pod, ok := kept.(*corev1.Pod); !ok || pod.Spec.NodeName != "worker-7" || len(pod.Finalizers) != 1 || len(pod.Spec.Containers) > 0 {
			t.Errorf("kept of a pod: %+v", kept)
		}
	}
}
