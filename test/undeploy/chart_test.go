// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package undeploy

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// packed is the chart of a release.
func packed(release string) string {
	return filepath.Join(release, "tidewaiter-"+version+".tgz")
}

// chart installs Tidewaiter with the Helm chart of a release on a cluster that has none, does what the quick start says, changes values, and removes
// Tidewaiter. The CRDs stay because a value says so.
func chart(t *testing.T, made string) {
	module, err := filepath.Abs("../../hack/tools/helm/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	// To compile Helm takes minutes, once.
	ctx := t.Context()
	helm := func(arguments ...string) string {
		t.Helper()
		return call(ctx, t, ".", "go", append([]string{"tool", "-modfile=" + module, "helm", "--kubeconfig=" + os.Getenv("TIDEWAITER_KUBECONFIG"), "--namespace=default"}, arguments...)...)
	}
	helm("version")
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	k8s := connect(t)
	if remains := remaining(ctx, t); len(remains) > 0 {
		t.Fatalf("%v are there before the chart", remains)
	}

	installed := helm("install", "tidewaiter", packed(made), "--wait", "--timeout=3m")
	if !strings.Contains(installed, "Tidewaiter "+version+" is in the namespace tidewaiter-system") {
		t.Errorf("the notes are\n%s", installed)
	}
	ready(ctx, t, k8s)
	quickStart(ctx, t, k8s, false)

	helm("upgrade", "tidewaiter", packed(made), "--set=controller.replicas=1,crds.keep=true", "--wait", "--timeout=3m")
	var manager appsv1.Deployment
	if err := k8s.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "tidewaiter-manager"}, &manager); err != nil {
		t.Fatal(err)
	}
	if *manager.Spec.Replicas != 1 {
		t.Errorf("the manager has %d replicas after the upgrade, want 1", *manager.Spec.Replicas)
	}

	kubectl(ctx, t, "delete", "features.tidewaiter.dev", "--all", "--all-namespaces")
	helm("uninstall", "tidewaiter", "--wait", "--timeout=3m")
	// kube-apiserver makes this one of the CRDs.
	kept := []string{"apiservice.apiregistration.k8s.io/v1alpha1.tidewaiter.dev"}
	for _, kind := range []string{"checkpoints", "features", "supervisorpolicies", "templates"} {
		kept = append(kept, "customresourcedefinition.apiextensions.k8s.io/"+kind+".tidewaiter.dev")
	}
	if remains := remaining(ctx, t); !slices.Equal(slices.Sorted(slices.Values(remains)), kept) {
		t.Errorf("after `helm uninstall` %v are there, want %v", remains, kept)
	}
	kubectl(ctx, t, append([]string{"delete"}, kept[1:]...)...)
	for _, name := range []string{project, gitProject} {
		if err := k8s.DeleteProject(ctx, name); err != nil {
			t.Error(err)
		}
	}
}
