// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/controllers/checkpoint"
	"github.com/tidewaiter/tidewaiter/controllers/feature"
	"github.com/tidewaiter/tidewaiter/controllers/supervisorpolicy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// operator calls the controllers by hand, with the manager's rights and at a time of its own, and plays who else acts on
// their objects.
type operator struct {
	*testing.T
	project string
	now     time.Time
	manager client.Client
}

func newOperator(t *testing.T, now time.Time) *operator {
	t.Helper()
	return &operator{T: t, project: env.Project(t), now: now, manager: env.As(t, kubetest.Manager)}
}

// kinds that a version leaves behind, in the order in which they can be made.
func kinds() []schema.GroupVersionKind {
	ours := v1alpha1.GroupVersion.WithKind
	return []schema.GroupVersionKind{
		ours("SupervisorPolicy"), ours("Feature"), {Version: "v1", Kind: "ConfigMap"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Version: "v1", Kind: "PersistentVolumeClaim"}, {Group: "batch", Version: "v1", Kind: "Job"}, {Version: "v1", Kind: "Pod"},
		ours("Checkpoint"), {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	}
}

// objects of the project, and the Leases that its Features hold.
func (o *operator) objects() []*unstructured.Unstructured {
	o.Helper()
	var all []*unstructured.Unstructured
	for _, kind := range kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		namespace := o.project
		if kind.Kind == "Lease" {
			namespace = kubetest.SystemNamespace
		}
		o.must(env.Client.List(o.Context(), list, client.InNamespace(namespace)), "list %s", kind.Kind)
		for i := range list.Items {
			holder, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "holderIdentity")
			if kind.Kind != "Lease" || strings.HasPrefix(holder, o.project+"/") {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all
}

// lookAtAll reconciles every object once.
func (o *operator) lookAtAll() {
	o.Helper()
	for _, object := range o.objects() {
		o.reconcile(object.GetKind(), object.GetName())
	}
}

func (o *operator) reconcile(kind, name string) {
	o.Helper()
	c, clock := uncached{o.manager}, clocktesting.NewFakePassiveClock(o.now)
	var r reconcile.Reconciler
	switch kind {
	case "Feature":
		says := &system{bundle: "recorded"}
		r = reconcile.AsReconciler(o.manager, &feature.Reconciler{
			Client: c, Live: o.manager, Recorder: events.NewFakeRecorder(1000), Clock: clock, CABundle: says, Endpoints: says,
			Locks:           &leases.Keeper{Namespace: kubetest.SystemNamespace, Client: o.manager, Live: o.manager},
			SystemNamespace: kubetest.SystemNamespace, Image: "example.com/tidewaiter:1", UserNamespaces: nodes.Auto,
		})
	case "Checkpoint":
		r = reconcile.AsReconciler(o.manager, &checkpoint.Reconciler{Client: c, Clock: clock, SystemNamespace: kubetest.SystemNamespace})
	case "SupervisorPolicy":
		r = reconcile.AsReconciler(o.manager, &supervisorpolicy.Reconciler{Client: c, Clock: clock, SystemNamespace: kubetest.SystemNamespace})
	default:
		return
	}
	_, err := r.Reconcile(o.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: o.project, Name: name}})
	o.must(err, "reconcile %s %s", kind, name)
}

// uncached stands for the manager's cache. It has no index of network policies, nor of Features that have delivered: all of the project are looked at.
type uncached struct{ client.Client }

func (c uncached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *networkingv1.NetworkPolicyList, *v1alpha1.FeatureList:
		var options client.ListOptions
		options.ApplyOptions(opts)
		opts = []client.ListOption{client.InNamespace(options.Namespace)}
	}
	return c.Client.List(ctx, list, opts...)
}

// settle lets controllers, Job controller, kubelet and provisioner act until nothing changes any more.
func (o *operator) settle() {
	o.Helper()
	versions := func() (text string) {
		for _, object := range o.objects() {
			text += title(object) + " " + object.GetResourceVersion() + "\n"
		}
		return text
	}
	for range 12 {
		before := versions()
		o.lookAtAll()
		o.bind()
		o.makePods()
		if versions() == before {
			return
		}
	}
	o.Fatalf("the controllers do not come to rest:\n%s", versions())
}

// makePods makes the pod of each Job that has none and never had, and lets it run.
func (o *operator) makePods() {
	o.Helper()
	var jobs batchv1.JobList
	o.must(env.Client.List(o.Context(), &jobs, client.InNamespace(o.project)), "list Jobs")
	for i := range jobs.Items {
		j := &jobs.Items[i]
		if j.Status.Active+j.Status.Succeeded > 0 {
			continue
		}
		pod := podOf(j)
		o.must(env.As(o, kubetest.JobController, "system:masters").Create(o.Context(), pod), "create pod %s", pod.Name)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		o.must(env.Client.Status().Update(o.Context(), pod), "run pod %s", pod.Name)
		j.Status.Active = 1
		o.must(env.Client.Status().Update(o.Context(), j), "note the pod of Job %s", j.Name)
	}
}

// podOf is the pod of a Job on a node.
func podOf(j *batchv1.Job) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *j.Spec.Template.ObjectMeta.DeepCopy(), Spec: j.Spec.Template.Spec}
	pod.Namespace, pod.Name = j.Namespace, j.Name+"-abcde"
	pod.Spec.ServiceAccountName, pod.Spec.NodeName = "default", "node-1"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}
	return pod
}

// report is intake: it records what a Feature's watchdog reports.
func (o *operator) report(name string, connected bool, all ...protocol.Report) {
	o.Helper()
	f := o.feature(name)
	run := ptr.Deref(f.Status.Run, v1alpha1.RunStatus{})
	for i := range all {
		all[i].Epoch, all[i].Sequence, all[i].Time = f.Status.Attempt, run.Sequence+int64(i)+1, o.now
		if all[i].Checkpoint != nil {
			o.must(o.manager.Create(o.Context(), runstatus.Checkpoint(f, all[i]), intake.FieldOwner), "record a checkpoint of Feature %s", name)
		}
	}
	run = runstatus.Fold(run, f.Name, f.Status.Attempt, all)
	run.Connected, run.ConnectionTransitionTime = &connected, &metav1.Time{Time: o.now}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&run)
	o.must(err, "encode the run of Feature %s", name)
	o.applyStatus(f, map[string]any{"run": status}, intake.FieldOwner)
}

// applyStatus writes what a part of the system owns of an object's status.
func (o *operator) applyStatus(object client.Object, status map[string]any, owner client.FieldOwner) {
	o.Helper()
	config := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	kind, err := env.Client.GroupVersionKindFor(object)
	o.must(err, "look up %T", object)
	config.SetGroupVersionKind(kind)
	config.SetNamespace(object.GetNamespace())
	config.SetName(object.GetName())
	err = env.Client.Status().Apply(o.Context(), client.ApplyConfigurationFromUnstructured(config), owner, client.ForceOwnership)
	o.must(err, "write the status of %s %s", kind.Kind, object.GetName())
}

func (o *operator) feature(name string) *v1alpha1.Feature {
	o.Helper()
	var f v1alpha1.Feature
	o.must(env.Client.Get(o.Context(), client.ObjectKey{Namespace: o.project, Name: name}, &f), "read Feature %s", name)
	return &f
}

// edit changes a Feature's spec like a person would.
func (o *operator) edit(name string, change func(*v1alpha1.FeatureSpec)) {
	o.Helper()
	f := o.feature(name)
	before := f.DeepCopy()
	change(&f.Spec)
	o.must(env.Client.Patch(o.Context(), f, client.MergeFrom(before)), "change Feature %s", name)
}

func (o *operator) must(err error, format string, args ...any) {
	o.Helper()
	if err != nil {
		o.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}
