// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package undeploy tests that Tidewaiter can be removed from a cluster, and installed again from a release: by its manifest, and by its Helm chart.
package undeploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	project    = "tidewaiter-undeploy"
	gitProject = "tidewaiter-undeploy-git"
	// limit of the test. To end an agent takes some seconds, and to remove a namespace up to a minute.
	limit = 8 * time.Minute
)

// TestInstallation removes Tidewaiter from the cluster of the tests, and installs it again from a release. The order counts.
func TestInstallation(t *testing.T) {
	made := filepath.Join(t.TempDir(), "release")
	t.Run("UndeployEndsWhatRuns", undeployEndsWhatRuns)
	t.Run("Release", func(t *testing.T) { release(t, made) })
	t.Run("Chart", func(t *testing.T) { chart(t, made) })
}

// connect to the cluster of the tests.
func connect(t *testing.T) *cluster.Cluster {
	t.Helper()
	k8s, err := cluster.Connect(os.Getenv("TIDEWAITER_KUBECONFIG"), os.Getenv("TIDEWAITER_TESTBED"))
	if err != nil {
		t.Fatalf("run `make test-e2e`: %v", err)
	}
	return k8s
}

// undeployEndsWhatRuns: `make undeploy` ends the agents that work, in order, and leaves nothing behind: neither a kind nor a namespace waits for
// a controller that is gone.
func undeployEndsWhatRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	k8s := connect(t)
	running(ctx, t, k8s)
	call(ctx, t, "../..", "make", "--no-print-directory", "undeploy")
	if remains := remaining(ctx, t); len(remains) > 0 {
		t.Errorf("%v are still there", remains)
	}
	err := cluster.Until(ctx, "the Feature's pod and volumes to go", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		if err := k8s.List(ctx, &pods, client.InNamespace(project)); err != nil {
			return false, err
		}
		err := k8s.List(ctx, &claims, client.InNamespace(project))
		return len(pods.Items)+len(claims.Items) == 0, err
	})
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{project, gitProject} {
		if err := k8s.DeleteProject(ctx, name); err != nil {
			t.Error(err)
		}
	}
}

// call runs a program in a folder, and gives what it prints.
func call(ctx context.Context, t *testing.T, dir, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
	}
	return string(out)
}

// kubectl runs kubectl on the cluster of the tests.
func kubectl(ctx context.Context, t *testing.T, arguments ...string) string {
	t.Helper()
	program := strings.Fields(os.Getenv("TIDEWAITER_KUBECTL"))
	return call(ctx, t, ".", program[0], append(program[1:], arguments...)...)
}

// remaining lists what an installation has in the cluster: its namespace, with all that is in it, and what is elsewhere. Namespaces of projects are not of it.
func remaining(ctx context.Context, t *testing.T) []string {
	t.Helper()
	const kinds = "namespaces,customresourcedefinitions,apiservices,clusterroles,clusterrolebindings,rolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
	var ours []string
	for name := range strings.FieldsSeq(kubectl(ctx, t, "get", kinds, "--all-namespaces", "--output=name")) {
		kind, object, _ := strings.Cut(name, "/")
		if kind == "namespace" && object == cluster.SystemNamespace ||
			kind != "namespace" && (strings.HasPrefix(object, "tidewaiter-") || strings.HasSuffix(object, ".tidewaiter.dev")) {
			ours = append(ours, name)
		}
	}
	return ours
}

// running makes a Feature and waits until its agent works.
func running(ctx context.Context, t *testing.T, k8s *cluster.Cluster) {
	t.Helper()
	apply(ctx, t, k8s, "echo half > page.html; while :; do sleep 1; done")
	err := cluster.Until(ctx, "the agent to work", func(ctx context.Context) (bool, error) {
		f, err := k8s.Feature(ctx, project, "page")
		return err == nil && f.Status.Phase == v1alpha1.PhaseRunning && cluster.Reason(f, v1alpha1.ConditionAgentRunning) == "Running", err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// apply makes a project, and a Feature whose agent is a script.
func apply(ctx context.Context, t *testing.T, k8s *cluster.Cluster, script string) {
	t.Helper()
	git := serve(ctx, t, k8s)
	for what, err := range map[string]error{
		"make the Secret": k8s.Create(ctx, git.Secret(project, cluster.GitSecret)), "make the policy": k8s.AllowGit(ctx, project, git.Host),
		"apply the Feature": k8s.Create(ctx, k8s.Script(project, "page", git.URL("shop"), script)),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// serve makes the project, and a Git server with the repository shop.
func serve(ctx context.Context, t *testing.T, k8s *cluster.Cluster) *cluster.GitServer {
	t.Helper()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for _, name := range []string{project, gitProject} {
		must("remove an earlier project", k8s.DeleteProject(ctx, name))
	}
	must("make the project", k8s.Project(ctx, project))
	git, err := k8s.StartGitServer(ctx, gitProject, t.TempDir())
	must("start the Git server", err)
	local := t.TempDir()
	must("write a file", os.WriteFile(filepath.Join(local, "README.md"), []byte("# Shop\n"), 0o600))
	for _, args := range []string{"init --quiet --initial-branch=main", "add --all", "-c user.name=Shop -c user.email=shop@example.com commit --quiet --message=Open"} {
		cmd := exec.CommandContext(ctx, "git", strings.Fields(args)...)
		cmd.Dir = local
		must("git "+args, cmd.Run())
	}
	must("publish the repository", git.Publish(ctx, local, "shop"))
	return git
}
