// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const (
	pod = `
apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  serviceAccountName: default
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: agent
    image: agent
    resources: {requests: {memory: 1Gi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`
	job = `
apiVersion: batch/v1
kind: Job
metadata: {name: shop}
spec:
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: agent, image: agent}]
`
	jobOwner   = "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: twf-add-login-1, uid: 0b5f8f5e-0000-4000-8000-000000000000, controller: true}]"
	setOwner   = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: 0b5f8f5e-0000-4000-8000-000000000000, controller: true}]"
	ourLabels  = "labels: {tidewaiter.dev/feature: add-login, tidewaiter.dev/attempt: '1', tidewaiter.dev/run: agent}"
	runLabel   = "labels: {tidewaiter.dev/run: agent}"
	thirdParty = "labels: {app: shop}"
	ourName    = "name: twf-add-login-1-abcde"
	ourJob     = "name: twf-add-login-1, ownerReferences: [{apiVersion: tidewaiter.dev/v1alpha1, kind: Feature, name: add-login, uid: 0b5f8f5e-0000-4000-8000-000000000001, controller: true}]"
	// hardened is what the manager may only make Jobs of.
	hardened = `spec: {template: {spec: {automountServiceAccountToken: false, securityContext: {runAsNonRoot: true},
  containers: [{name: agent, image: agent, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}}`
)

func TestPodsOfFeaturesComeFromJobs(t *testing.T) {
	project := env.Project(t)
	jobs := env.As(t, kubetest.JobController)
	masters := env.Client
	cases := map[string]struct {
		who        client.Client
		metadata   string
		wantDenied bool
	}{
		"a person's pod":                           {masters, thirdParty, false},
		"a person's pod with our labels":           {masters, ourLabels, true},
		"a person's pod with one of them":          {masters, runLabel, true},
		"a person's pod that poses as a Job's":     {masters, ourName + ", " + ourLabels + ", " + jobOwner, true},
		"a Job's pod":                              {jobs, ourName + ", " + ourLabels + ", " + jobOwner, false},
		"a Job's pod of another name":              {jobs, ourLabels + ", " + jobOwner, true},
		"a ReplicaSet's pod made in the same name": {jobs, ourName + ", " + ourLabels + ", " + setOwner, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := create(t, c.who, project, object(t, pod, "metadata: {"+c.metadata+"}"), client.DryRunAll)
			if c.wantDenied {
				wantDenied(t, err, "tidewaiter-pods", "are reserved for pods that Tidewaiter runs: create a Feature instead of a pod, or leave the labels out")
			} else {
				wantAllowed(t, err)
			}
		})
	}
}

// TestNamesOfFeaturesPodsAreReserved: what a person may do in a pod is decided by its name.
func TestNamesOfFeaturesPodsAreReserved(t *testing.T) {
	project := env.Project(t)
	const podMessage = `names that begin with "twf-" are reserved for pods that Tidewaiter runs: choose another name`
	const jobMessage = `names that begin with "twf-" are reserved for Jobs that Tidewaiter runs: choose another name`
	for _, metadata := range []string{"name: twf-shop", "name: null, generateName: twf-"} {
		wantDenied(t, create(t, env.Client, project, object(t, pod, "metadata: {"+metadata+"}")), "tidewaiter-pods", podMessage)
		wantDenied(t, create(t, env.As(t, kubetest.JobController), project, object(t, pod, "metadata: {"+metadata+", "+jobOwner+"}")), "tidewaiter-pods", podMessage)
		wantDenied(t, create(t, env.Client, project, object(t, job, "metadata: {"+metadata+"}")), "tidewaiter-jobs", jobMessage)
	}
}

// editor is a person with Kubernetes' own role edit, our part of it included.
func editor(t *testing.T, project string) client.Client {
	t.Helper()
	return env.Person(t, project, "editor", "system:aggregate-to-edit", "system:aggregate-to-view", "tidewaiter-editor")
}

func TestPodsOfFeaturesStayAsTheyAre(t *testing.T) {
	project := env.Project(t)
	ours := object(t, pod, "metadata: {"+ourName+", "+ourLabels+", "+jobOwner+"}")
	wantAllowed(t, create(t, env.As(t, kubetest.JobController), project, ours))
	ours.SetNamespace(project)
	theirs := existing(t, project, pod, "metadata: {name: shop, "+thirdParty+"}")

	const leave = "are reserved for pods that Tidewaiter runs: leave them as they are"
	wantDenied(t, patch(t, env.Client, ours, "metadata: {labels: {tidewaiter.dev/feature: null}}"), "tidewaiter-pods", leave)
	wantDenied(t, patch(t, env.Client, ours, "metadata: {labels: {tidewaiter.dev/attempt: '2'}}"), "tidewaiter-pods", leave)
	wantDenied(t, patch(t, env.Client, ours, "metadata: {labels: {team: web}}"), "tidewaiter-pods", "decide which network policies and Services select it: leave them as they are")
	wantAllowed(t, patch(t, env.Client, ours, "metadata: {annotations: {team: web}}"))
	// An image that changes is started by the kubelet, with all that the container mounts.
	person := editor(t, project)
	const made = "the pod of a Feature stays as it was made: change spec.agent of the Feature instead"
	image := func(image string) string {
		return "spec: {containers: [{name: agent, image: " + image + ", resources: {requests: {memory: 1Gi}}, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}"
	}
	wantDenied(t, patch(t, person, ours, image("mine")), "tidewaiter-pods", made)
	wantAllowed(t, patch(t, person, theirs, image("mine")))
	wantDenied(t, patch(t, person, ours, "spec: {activeDeadlineSeconds: 1}"), "tidewaiter-pods", made)
	resize := func(u *unstructured.Unstructured) error {
		body := `{"spec":{"containers":[{"name":"agent","resources":{"requests":{"memory":"2Gi"}}}]}}`
		return env.Client.SubResource("resize").Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(body)))
	}
	wantDenied(t, resize(ours), "tidewaiter-pods", made)
	phase := func(who client.Client, u *unstructured.Unstructured) error {
		return who.Status().Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))
	}
	owner := env.Person(t, project, "owner", "cluster-admin")
	wantDenied(t, phase(owner, ours), "tidewaiter-pods", "the status of a Feature's pod is reported by its node: leave it as it is")
	wantAllowed(t, phase(owner, theirs))
	wantAllowed(t, phase(env.As(t, "system:node:node-1", "system:nodes", "system:masters"), ours))
	wantDenied(t, patch(t, env.Client, theirs, "metadata: {labels: {tidewaiter.dev/feature: add-login}}"), "tidewaiter-pods", leave)
	wantAllowed(t, patch(t, env.Client, theirs, "metadata: {labels: {team: web}}"))

	debug := func(name string) error {
		p := &corev1.Pod{}
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: project, Name: name}, p); err != nil {
			t.Fatal(err)
		}
		before := client.StrategicMergeFrom(p.DeepCopy())
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "busybox", SecurityContext: p.Spec.Containers[0].SecurityContext,
		}}}
		return env.Client.SubResource("ephemeralcontainers").Patch(t.Context(), p, before)
	}
	wantDenied(t, debug(ours.GetName()), "tidewaiter-pods", "a debug container would share the volumes of a Feature's pod")
	wantAllowed(t, debug(theirs.GetName()))
}

func TestJobsOfFeaturesAreTheManagers(t *testing.T) {
	project := env.Project(t)
	manager := env.As(t, kubetest.Manager)
	const instead = "are reserved for Jobs that Tidewaiter runs: create a Feature instead of a Job, or leave the labels out"
	ours := "metadata: {" + ourJob + ", " + ourLabels + "}\n" + strings.Replace(hardened, "template: {", "template: {metadata: {"+ourLabels+"}, ", 1)

	wantAllowed(t, create(t, env.Client, project, object(t, job, "metadata: {"+thirdParty+"}"), client.DryRunAll))
	wantDenied(t, create(t, env.Client, project, object(t, job, ours)), "tidewaiter-jobs", instead)
	wantDenied(t, create(t, env.Client, project, object(t, job, "metadata: {"+ourLabels+"}")), "tidewaiter-jobs", instead)
	wantDenied(t, create(t, env.Client, project, object(t, job, "spec: {template: {metadata: {"+runLabel+"}}}")), "tidewaiter-jobs", instead)
	wantAllowed(t, create(t, manager, project, object(t, job, ours)))

	made := object(t, job, ours)
	made.SetNamespace(project)
	wantDenied(t, patch(t, env.Client, made, "metadata: {labels: {tidewaiter.dev/feature: null}}"), "tidewaiter-jobs", "leave them as they are")
	wantDenied(t, patch(t, env.Client, made, "spec: {parallelism: 2}"), "tidewaiter-jobs", "a Job of a Feature runs one pod, never two agents on one workspace")
	wantAllowed(t, patch(t, env.Client, made, "metadata: {labels: {team: web}}"))
	wantAllowed(t, patch(t, env.Client, made, "spec: {suspend: true}"))

	person := editor(t, project)
	wantDenied(t, patch(t, person, made, "spec: {backoffLimit: 5}"), "tidewaiter-jobs", "a Job of a Feature runs one pod")
	// Suspended Jobs let their pods' annotations be changed.
	wantDenied(t, patch(t, person, made, "spec: {template: {metadata: {annotations: {k8s.v1.cni.cncf.io/networks: internet}}}}"), "tidewaiter-jobs",
		"a Job of a Feature runs one pod and stays as it was made: leave its spec as it is")
	wantDenied(t, patch(t, person, made, "metadata: {ownerReferences: null}"), "tidewaiter-jobs", "a Job belongs to its Feature and goes with it")
}

func TestTrustIsTheManagers(t *testing.T) {
	project := env.Project(t)
	bundle := func(name string) *corev1ac.ConfigMapApplyConfiguration {
		return corev1ac.ConfigMap(name, project).WithData(map[string]string{"ca.crt": "PEM"})
	}
	apply := func(who client.Client, name string) error {
		return who.Apply(t.Context(), bundle(name), client.FieldOwner("test"), client.ForceOwnership)
	}
	manager := env.As(t, kubetest.Manager)
	wantDenied(t, apply(env.Client, "tidewaiter-ca"), "tidewaiter-ca-bundle", "ConfigMap tidewaiter-ca is written by the manager of Tidewaiter alone")
	wantAllowed(t, apply(env.Client, "anything"))
	wantAllowed(t, apply(manager, "tidewaiter-ca"))
	if err := apply(manager, "prompts"); !apierrors.IsForbidden(err) {
		t.Errorf("want the manager forbidden to write any other ConfigMap, got %v", err)
	}
	wantAllowed(t, env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "tidewaiter-ca"}}))
}
