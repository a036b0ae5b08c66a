// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// world is a project with a running Feature, and the people of the project.
type world struct {
	project string
	run     *attempt.Attempt
	claim   *corev1.PersistentVolumeClaim
	network *networkingv1.NetworkPolicy
	bundle  *corev1.ConfigMap
	record  *v1alpha1.Checkpoint

	// editor has Kubernetes' own edit, and view with it; raw connects as the same person.
	editor client.Client
	raw    rest.Interface
	// developer has tidewaiter-editor and view, as docs/tasks/give-people-roles.md recommends.
	developer client.Client
	// author may write policies and templates, and read nothing else.
	author client.Client
	// admin has Kubernetes' own admin, and with it the right to write policies of the project.
	admin client.Client
	// owner has every right in the project, as some clusters give to those who ask for a namespace.
	owner client.Client
	// manager stands for a thief of the manager's token.
	manager client.Client
}

// Labels by which the policies of the project, and global ones, select the Feature.
const (
	teamLabel = v1alpha1.PolicyLabelPrefix + "team"
	tierLabel = v1alpha1.GlobalPolicyLabelPrefix + "tier"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	project := env.Project(t)
	w := &world{
		project: project, manager: env.As(t, kubetest.Manager),
		editor:    env.Person(t, project, "editor", "system:aggregate-to-edit", "system:aggregate-to-view", "tidewaiter-editor"),
		developer: env.Person(t, project, "developer", "system:aggregate-to-view", "tidewaiter-editor"),
		author:    env.Person(t, project, "author", "tidewaiter-admin"),
		admin:     env.Person(t, project, "admin", "system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view", "tidewaiter-admin"),
		owner:     env.Person(t, project, "owner", everything(t)),
	}
	clientset, err := kubernetes.NewForConfig(env.ConfigAs("editor@" + project))
	if err != nil {
		t.Fatal(err)
	}
	w.raw = clientset.CoreV1().RESTClient()
	login := attempt.Feature(t, env, project, "login")
	login.Labels = map[string]string{teamLabel: "web", tierLabel: "gold"}
	if err := env.Client.Update(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	w.run = attempt.Start(t, env, login)
	w.children(t)
	return w
}

// everything is a role with wildcards.
func everything(t *testing.T) string {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	if err := env.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	return role.Name
}

// children are what the manager makes for a Feature.
func (w *world) children(t *testing.T) {
	t.Helper()
	f := w.run.Feature
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.project, Name: name, Labels: map[string]string{v1alpha1.LabelFeature: f.Name}, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Feature", Name: f.Name, UID: f.UID, Controller: ptr.To(true),
		}}}
	}
	w.claim = &corev1.PersistentVolumeClaim{ObjectMeta: meta(naming.Volume(f.Name, "trusted")), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	w.network = &networkingv1.NetworkPolicy{ObjectMeta: meta(naming.NetworkPolicy(f.Name)), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelFeature: f.Name}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}}
	w.bundle = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: protocol.CAConfigMap}, Data: map[string]string{protocol.CAKey: "PEM"}}
	w.record = &v1alpha1.Checkpoint{ObjectMeta: meta(naming.Checkpoint(f.Name, 1)), Spec: checkpoint(f)}
	manager := env.As(t, kubetest.Manager, "system:masters")
	for _, object := range []client.Object{w.claim, w.network, w.bundle, w.record} {
		if err := manager.Create(t.Context(), object); err != nil {
			t.Fatalf("make %T %s: %v", object, object.GetName(), err)
		}
	}
}

// state is everything that an attack could have an effect on, as it is now.
func (w *world) state(t *testing.T) []client.Object {
	t.Helper()
	var list []client.Object
	for _, object := range []client.Object{w.run.Feature, w.run.Job, w.run.Pod, w.claim, w.network, w.bundle, w.record} {
		read, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is no object", object)
		}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), read); err != nil {
			t.Fatalf("read %T %s: %v", object, object.GetName(), err)
		}
		list = append(list, read)
	}
	return list
}
