// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// ways in which a running pod can get away from its Job.
func ways() map[string]func(r *harness) {
	return map[string]func(r *harness){
		"its Job is deleted with --cascade=orphan": func(r *harness) {
			r.own("login", nil)
			for _, j := range r.jobs() {
				r.must(r.user.Delete(r.Context(), &j, client.PropagationPolicy(metav1.DeletePropagationBackground)), "delete Job %s", j.Name)
			}
		},
		"nothing owns it": func(r *harness) { r.own("login", nil) },
		"a ConfigMap owns it": func(r *harness) {
			mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, GenerateName: "mine-"}}
			r.must(r.user.Create(r.Context(), mine), "make a ConfigMap")
			r.own("login", []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: mine.Name, UID: mine.UID, Controller: ptr.To(true)}})
		},
	}
}

// own gives the pod of a Feature other owners, as the garbage collector does, or a cluster admin.
func (r *harness) own(name string, owners []metav1.OwnerReference) {
	r.Helper()
	for _, p := range r.pods() {
		if p.Labels[v1alpha1.LabelFeature] != name {
			continue
		}
		before := p.DeepCopy()
		p.OwnerReferences = owners
		r.must(jobController.Patch(r.Context(), &p, client.MergeFrom(before)), "change the owners of pod %s", p.Name)
	}
}

// onlyPod is the one pod of the project.
func (r *harness) onlyPod() *corev1.Pod {
	r.Helper()
	pods := r.pods()
	if len(pods) != 1 {
		r.Fatalf("%d pods, want 1", len(pods))
	}
	return &pods[0]
}

// TestAnOrphanedAgentIsEnded: a pod with the Feature's label counts, whoever owns it. Intake does not hear one that lost its
// Job, so it ends, and only then the next attempt starts.
func TestAnOrphanedAgentIsEnded(t *testing.T) {
	for name, escape := range ways() {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			r.feature("login", nil)
			r.settle("login")
			r.reportRunning("login")
			r.settle("login")
			pod := r.onlyPod()
			escape(r)
			r.must(r.reconcile("login"), "reconcile")
			r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPodOrphaned)
			if r.onlyPod().DeletionTimestamp == nil {
				t.Fatal("the pod is not asked to end")
			}
			r.must(r.reconcile("login"), "reconcile while the pod ends")
			for _, j := range r.jobs() {
				if j.Name != "twf-login-1" {
					t.Errorf("Job %s is made beside the pod that ends", j.Name)
				}
			}
			r.settle("login")
			r.wantJobs("twf-login-2")
			if f := r.get("login"); f.Status.Attempt != 2 || r.onlyPod().UID == pod.UID {
				t.Errorf("attempt %d in pod %s, want 2 in another than %s", f.Status.Attempt, r.onlyPod().UID, pod.UID)
			}
		})
	}
}

// TestAnOrphanedAgentEndsWithItsNetwork that is open, though no attempt is wanted then.
func TestAnOrphanedAgentEndsWithItsNetwork(t *testing.T) {
	for name, escape := range ways() {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			r.feature("login", nil)
			r.settle("login")
			r.reportRunning("login")
			r.settle("login")
			escape(r)
			r.allow("all", metav1.LabelSelector{})
			r.settle("login")
			r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNetworkOpened)
			if pods := r.pods(); len(pods) != 0 {
				t.Errorf("%d pods run with an open network", len(pods))
			}
		})
	}
}

// TestAnOrphanedAgentEndsWithItsAttempt that has said its last word, or whose Feature is deleted.
func TestAnOrphanedAgentEndsWithItsAttempt(t *testing.T) {
	for name, escape := range ways() {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			r.feature("login", nil)
			r.settle("login")
			r.report("login", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
				run.WithFinal(applyv1alpha1.FinalReport().WithEpoch(1).WithOutcome(protocol.OutcomeStopped).WithReason("Stopped").WithMessage("It was stopped."))
			})
			escape(r)
			r.settle("login")
			r.wantJobs("twf-login-2")
			r.reportRunning("login")
			escape(r)
			r.must(r.user.Delete(r.Context(), r.get("login")), "delete the Feature")
			r.pass(2 * time.Minute)
			r.settle("login")
			if pods := r.pods(); len(pods) != 0 {
				t.Errorf("%d pods run after the Feature is deleted", len(pods))
			}
			r.wantJobs()
		})
	}
}

// TestAnOrphanedJobIsRemoved: a Job that lost its Feature would make pods that nobody looks after.
func TestAnOrphanedJobIsRemoved(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.reportRunning("login")
	for _, j := range r.jobs() {
		before := j.DeepCopy()
		j.OwnerReferences = nil
		r.must(jobController.Patch(r.Context(), &j, client.MergeFrom(before)), "take the Job from its Feature")
	}
	r.settle("login")
	r.wantJobs("twf-login-2")
	r.onlyPod()
}

// TestNothingRunsWithoutItsFeature: who takes the finalizer off a Feature and lets its Job go (kubectl delete
// --cascade=orphan) leaves nothing that runs.
func TestNothingRunsWithoutItsFeature(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.feature("logout", nil)
	r.settle("login", "logout")
	r.reportRunning("login")
	r.own("login", nil)
	for _, j := range r.jobs() {
		if j.Labels[v1alpha1.LabelFeature] == "login" {
			before := j.DeepCopy()
			j.OwnerReferences = nil
			r.must(jobController.Patch(r.Context(), &j, client.MergeFrom(before)), "take the Job from its Feature")
		}
	}
	f := r.get("login")
	before := f.DeepCopy()
	f.Finalizers = nil
	r.must(r.user.Patch(r.Context(), f, client.MergeFrom(before)), "take the finalizer off")
	r.must(r.user.Delete(r.Context(), f), "delete the Feature")
	r.settle("login", "logout")
	r.wantJobs("twf-logout-1")
	if p := r.onlyPod(); p.Labels[v1alpha1.LabelFeature] != "logout" {
		t.Errorf("pod %s is left", p.Name)
	}
}
