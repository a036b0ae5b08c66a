// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const commit = "1111111111111111111111111111111111111111"

var env *kubetest.Env

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// harness is a project with one Feature and its trusted volume.
type harness struct {
	*testing.T
	project string
	feature *v1alpha1.Feature
	manager client.Client
}

func newHarness(t *testing.T, ephemeral bool) *harness {
	t.Helper()
	r := &harness{T: t, project: env.Project(t), manager: env.As(t, kubetest.Manager)}
	r.feature = &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "login"},
		Spec: v1alpha1.FeatureSpec{
			Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"},
			Agent:     v1alpha1.Agent{Runtime: "command", Image: "i", Command: []string{"c"}},
			Workspace: &v1alpha1.Workspace{Ephemeral: ephemeral},
		},
	}
	r.must(env.Client.Create(t.Context(), r.feature), "create the Feature")
	r.feature.Status = v1alpha1.FeatureStatus{Attempt: 1, Job: &v1alpha1.JobStatus{Name: "twf-login-1", Run: v1alpha1.RunKindAgent}}
	r.must(env.Client.Status().Update(t.Context(), r.feature), "set the Feature's status")
	if !ephemeral {
		r.must(env.Client.Create(t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "twf-login-trusted"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}), "create the claim")
	}
	return r
}

// checkpoint is what intake records.
func (r *harness) checkpoint(sequence int64, verdict v1alpha1.Verdict, action v1alpha1.Action, changes ...func(*v1alpha1.Checkpoint)) string {
	r.Helper()
	c := &v1alpha1.Checkpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: fmt.Sprintf("login-%d", sequence), Labels: map[string]string{v1alpha1.LabelFeature: "login"}},
		Spec: v1alpha1.CheckpointSpec{
			FeatureName: "login", FeatureUID: string(r.feature.UID), Sequence: sequence, Attempt: 1, Trigger: "Interval", Capture: v1alpha1.CaptureInfo{Settled: true},
			CaptureTime: metav1.Now(), Commit: commit, Verdict: verdict, Action: action,
		},
	}
	for _, change := range changes {
		change(c)
	}
	r.must(r.manager.Create(r.Context(), c), "create Checkpoint %s", c.Name)
	return c.Name
}

func (r *harness) reconcile(name string) {
	r.Helper()
	reconciler := reconcile.AsReconciler(r.manager, &Reconciler{
		Client: r.manager, Clock: clocktesting.NewFakePassiveClock(time.Now()), SystemNamespace: kubetest.SystemNamespace,
	})
	_, err := reconciler.Reconcile(r.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: r.project, Name: name}})
	r.must(err, "reconcile Checkpoint %s", name)
}

func (r *harness) get(name string) *v1alpha1.Checkpoint {
	r.Helper()
	var c v1alpha1.Checkpoint
	r.must(env.Client.Get(r.Context(), client.ObjectKey{Namespace: r.project, Name: name}, &c), "read Checkpoint %s", name)
	return &c
}

func (r *harness) wantRestorable(name string, status metav1.ConditionStatus, reason string) {
	r.Helper()
	for _, condition := range []string{v1alpha1.ConditionRestorable, v1alpha1.ConditionReady} {
		c := meta.FindStatusCondition(r.get(name).Status.Conditions, condition)
		if c == nil || c.Status != status || c.Reason != reason {
			r.Errorf("%s of %s is %+v, want %s/%s", condition, name, c, status, reason)
		}
	}
}

func (r *harness) must(err error, format string, args ...any) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

func TestRestorableAsLongAsTheVolumeExists(t *testing.T) {
	r := newHarness(t, false)
	name := r.checkpoint(1, v1alpha1.VerdictValid, v1alpha1.ActionPromoted)
	r.reconcile(name)
	r.wantRestorable(name, metav1.ConditionTrue, v1alpha1.ReasonStored)
	before := r.get(name).ResourceVersion
	r.reconcile(name)
	if after := r.get(name).ResourceVersion; after != before {
		t.Error("a reconcile without news writes")
	}
	r.must(env.Client.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "twf-login-trusted"}}), "delete the claim")
	r.reconcile(name)
	r.wantRestorable(name, metav1.ConditionFalse, v1alpha1.ReasonVolumeGone)
}

func TestEphemeralVolumesGoWithTheirAttempt(t *testing.T) {
	r := newHarness(t, true)
	name := r.checkpoint(1, v1alpha1.VerdictValid, v1alpha1.ActionPromoted)
	r.reconcile(name)
	r.wantRestorable(name, metav1.ConditionTrue, v1alpha1.ReasonStored)
	r.feature.Status.Job.EndTime = ptr.To(metav1.Now())
	r.must(env.Client.Status().Update(t.Context(), r.feature), "end the attempt")
	r.reconcile(name)
	r.wantRestorable(name, metav1.ConditionFalse, v1alpha1.ReasonVolumeGone)
}

func TestRetentionKeepsWhatTellsMost(t *testing.T) {
	r := newHarness(t, false)
	r.must(env.Client.Create(t.Context(), &v1alpha1.SupervisorPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "short"},
		Spec:       v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Retention: &v1alpha1.RetentionRules{Checkpoints: ptr.To[int32](3)}}},
	}), "create the policy")
	r.checkpoint(1, v1alpha1.VerdictInvalid, v1alpha1.ActionHeld)
	r.checkpoint(2, v1alpha1.VerdictSkipped, v1alpha1.ActionNone)
	r.checkpoint(3, v1alpha1.VerdictValid, v1alpha1.ActionPromoted)
	r.checkpoint(4, v1alpha1.VerdictSkipped, v1alpha1.ActionNone)
	r.reconcile(r.checkpoint(5, v1alpha1.VerdictValid, v1alpha1.ActionPromoted))
	r.wantKept("login-1", "login-3", "login-5")
}

// TestRetentionKeepsWhatIsNamed: a status, a message or a request that names a Checkpoint can be followed.
func TestRetentionKeepsWhatIsNamed(t *testing.T) {
	r := newHarness(t, false)
	r.must(env.Client.Create(t.Context(), &v1alpha1.SupervisorPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "one"},
		Spec:       v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Retention: &v1alpha1.RetentionRules{Checkpoints: ptr.To[int32](1)}}},
	}), "create the policy")
	delivered := func(c *v1alpha1.Checkpoint) { c.Spec.DeliveryCommit = commit }
	unsettled := func(c *v1alpha1.Checkpoint) { c.Spec.Capture.Settled = false }
	r.checkpoint(1, v1alpha1.VerdictValid, v1alpha1.ActionPromoted)
	r.checkpoint(2, v1alpha1.VerdictValid, v1alpha1.ActionPromoted, delivered)
	r.checkpoint(3, v1alpha1.VerdictInvalid, v1alpha1.ActionHeld)
	r.checkpoint(4, v1alpha1.VerdictInvalid, v1alpha1.ActionHeld)
	r.checkpoint(5, v1alpha1.VerdictValid, v1alpha1.ActionHeld)
	r.checkpoint(6, v1alpha1.VerdictValid, v1alpha1.ActionHeld, unsettled)
	r.checkpoint(7, v1alpha1.VerdictSkipped, v1alpha1.ActionPromoted)
	r.feature.Spec.Requests = []v1alpha1.Request{
		{ID: "back", Rollback: &v1alpha1.RollbackRequest{Checkpoint: "login-3"}},
		{ID: "done", Rollback: &v1alpha1.RollbackRequest{Checkpoint: "login-4"}},
	}
	r.must(env.Client.Update(t.Context(), r.feature), "ask for rollbacks")
	r.feature.Status.Head, r.feature.Status.LastCheckpoint, r.feature.Status.LastValidCheckpoint = commit, "login-7", "login-5"
	r.feature.Status.ObservedRequests = []v1alpha1.ObservedRequest{{ID: "done", State: "Done"}}
	r.must(env.Client.Status().Update(t.Context(), r.feature), "set the Feature's status")
	r.reconcile(r.checkpoint(8, v1alpha1.VerdictSkipped, v1alpha1.ActionNone))
	// 2 was delivered, 3 is asked for, 5 is the last valid one, 7 the last that the status knows, 8 the newest.
	r.wantKept("login-2", "login-3", "login-5", "login-7", "login-8")
}

func (r *harness) wantKept(want ...string) {
	r.Helper()
	var list v1alpha1.CheckpointList
	r.must(env.Client.List(r.Context(), &list, client.InNamespace(r.project)), "list Checkpoints")
	var got []string
	for _, c := range list.Items {
		got = append(got, c.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestCheckpointsOfAnotherFeatureOfThatNameAreNotRestorable(t *testing.T) {
	r := newHarness(t, false)
	r.feature.UID = "former"
	name := r.checkpoint(1, v1alpha1.VerdictValid, v1alpha1.ActionPromoted)
	r.reconcile(name)
	r.wantRestorable(name, metav1.ConditionFalse, v1alpha1.ReasonVolumeGone)
}
