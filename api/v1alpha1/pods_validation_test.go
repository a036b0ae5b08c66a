// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const (
	pod = `
apiVersion: v1
kind: Pod
metadata: {name: add-login-1-abcde}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: agent
    image: agent
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`
	job = `
apiVersion: batch/v1
kind: Job
metadata: {name: add-login-1}
spec:
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: agent, image: agent}]
`
	jobOwner   = "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: add-login-1, uid: 0b5f8f5e-0000-4000-8000-000000000000, controller: true}]"
	setOwner   = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: 0b5f8f5e-0000-4000-8000-000000000000, controller: true}]"
	ourLabels  = "labels: {tidewaiter.dev/feature: add-login, tidewaiter.dev/attempt: '1', tidewaiter.dev/run: agent}"
	runLabel   = "labels: {tidewaiter.dev/run: agent}"
	thirdParty = "labels: {app: shop}"
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
		"a person's pod that poses as a Job's":     {masters, ourLabels + ", " + jobOwner, true},
		"a Job's pod":                              {jobs, ourLabels + ", " + jobOwner, false},
		"a ReplicaSet's pod made in the same name": {jobs, ourLabels + ", " + setOwner, true},
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

func TestPodsOfFeaturesStayAsTheyAre(t *testing.T) {
	project := env.Project(t)
	ours := object(t, pod, "metadata: {"+ourLabels+", "+jobOwner+"}")
	wantAllowed(t, create(t, env.As(t, kubetest.JobController), project, ours))
	ours.SetNamespace(project)
	theirs := existing(t, project, pod, "metadata: {name: shop, "+thirdParty+"}")

	const leave = "are reserved for pods that Tidewaiter runs: leave them as they are"
	wantDenied(t, patch(t, env.Client, ours, "metadata: {labels: {tidewaiter.dev/feature: null}}"), "tidewaiter-pods", leave)
	wantDenied(t, patch(t, env.Client, ours, "metadata: {labels: {tidewaiter.dev/attempt: '2'}}"), "tidewaiter-pods", leave)
	wantAllowed(t, patch(t, env.Client, ours, "metadata: {labels: {team: web}}"))
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
	ours := "metadata: {" + ourLabels + "}\nspec: {template: {metadata: {" + ourLabels + "}}}"

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
