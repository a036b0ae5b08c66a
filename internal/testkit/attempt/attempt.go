// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attempt makes running Features, from the view of an API server: with the Job, the pod and the pinned status that controllers
// would make. Tokens are real and bound to the pod, as a kubelet would ask for them.
package attempt

import (
	"context"
	"strconv"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// Who does what admission lets only them do.
const (
	manager       = "system:serviceaccount:" + kubetest.SystemNamespace + ":tidewaiter-manager"
	jobController = "system:serviceaccount:kube-system:job-controller"
)

// Node that the pods are on: its kubelet asks for their tokens.
const Node = "node-1"

// Attempt is one run of a Feature.
type Attempt struct {
	// Feature, Job and Pod as they were made; the Feature as it was when the pod was pinned.
	Feature *v1alpha1.Feature
	Job     *batchv1.Job
	Pod     *corev1.Pod
	// Token of the pod for Tidewaiter's audience.
	Token string

	env *kubetest.Env
}

// Feature makes a Feature that has not started.
func Feature(t testing.TB, env *kubetest.Env, project, name string) *v1alpha1.Feature {
	t.Helper()
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name},
		Spec: v1alpha1.FeatureSpec{
			Prompt: "Add a login page.", Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"},
			Agent: v1alpha1.Agent{Runtime: "command", Image: "agent", Command: []string{"true"}},
		},
	}
	if err := env.Client.Create(t.Context(), f); err != nil {
		t.Fatalf("make a Feature: %v", err)
	}
	return f
}

// Start makes the next attempt of a Feature, with its pod pinned.
func Start(t testing.TB, env *kubetest.Env, f *v1alpha1.Feature) *Attempt {
	t.Helper()
	a := Launch(t, env, f)
	a.Pin(t)
	return a
}

// Launch makes Job and pod of the next attempt of a Feature, without telling the Feature.
func Launch(t testing.TB, env *kubetest.Env, f *v1alpha1.Feature) *Attempt {
	t.Helper()
	number := f.Status.Attempt + 1
	a := &Attempt{Feature: f.DeepCopy(), env: env}
	labels := map[string]string{
		v1alpha1.LabelFeature: f.Name, v1alpha1.LabelAttempt: strconv.FormatInt(number, 10), v1alpha1.LabelRun: v1alpha1.RunAgent,
	}
	a.Job = &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: naming.Job(f.Name, number), Labels: labels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Feature", Name: f.Name, UID: f.UID, Controller: ptr.To(true),
		}}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: PodSpec()}},
	}
	if err := env.As(t, manager, "system:masters").Create(t.Context(), a.Job); err != nil {
		t.Fatalf("make a Job: %v", err)
	}
	a.Pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: a.Job.Name + "-x1", Labels: labels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "batch/v1", Kind: "Job", Name: a.Job.Name, UID: a.Job.UID, Controller: ptr.To(true),
		}}},
		Spec: PodSpec(),
	}
	a.Pod.Spec.NodeName = Node // the scheduler says so
	if err := env.As(t, jobController, "system:masters").Create(t.Context(), a.Pod); err != nil {
		t.Fatalf("make a pod: %v", err)
	}
	a.Token = Token(t, env, a.Pod, protocol.TokenAudience)
	return a
}

// Pin lets the Feature name the pod, as the feature controller does.
func (a *Attempt) Pin(t testing.TB) {
	t.Helper()
	f := &v1alpha1.Feature{}
	for {
		if err := a.env.Client.Get(t.Context(), client.ObjectKeyFromObject(a.Feature), f); err != nil {
			t.Fatalf("read the Feature: %v", err)
		}
		number, err := strconv.ParseInt(a.Pod.Labels[v1alpha1.LabelAttempt], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		f.Status.Attempt = number
		f.Status.Job = &v1alpha1.JobStatus{Name: a.Job.Name, Run: v1alpha1.RunKindAgent, PodName: a.Pod.Name, PodUID: string(a.Pod.UID)}
		err = a.env.Client.Status().Update(t.Context(), f)
		if err == nil {
			a.Feature = f
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatalf("pin the pod: %v", err)
		}
	}
}

// Delete removes the pod at once, as when its node is gone.
func (a *Attempt) Delete(ctx context.Context) error {
	return a.env.Client.Delete(ctx, a.Pod, client.GracePeriodSeconds(0))
}

// Token asks for a token that is bound to a pod, as the kubelet of its node.
func Token(t testing.TB, env *kubetest.Env, pod *corev1.Pod, audiences ...string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
	if err := env.Client.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("make a service account: %v", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: audiences, ExpirationSeconds: ptr.To[int64](protocol.TokenTTLSeconds),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	kubelet := env.As(t, "system:node:"+Node, "system:nodes", "system:masters") // there is no node authorizer here
	if err := kubelet.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatalf("ask for a token: %v", err)
	}
	return request.Status.Token
}

// PodSpec is a pod that Pod Security "restricted" lets in.
func PodSpec() corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: "default", AutomountServiceAccountToken: ptr.To(false), RestartPolicy: corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "agent", Image: "agent", Command: []string{"true"},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}
}
