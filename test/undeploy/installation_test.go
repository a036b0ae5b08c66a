// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package undeploy tests that Tidewaiter can be removed from a cluster, and installed again from a release.
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	t.Run("UndeployEndsWhatRuns", undeployEndsWhatRuns)
	t.Run("Release", release)
}

// undeployEndsWhatRuns: `make undeploy` ends the agents that work, in order, and leaves nothing behind: neither a kind nor a namespace waits for
// a controller that is gone.
func undeployEndsWhatRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	k8s, err := cluster.Connect(os.Getenv("TIDEWAITER_KUBECONFIG"), os.Getenv("TIDEWAITER_TESTBED"))
	if err != nil {
		t.Fatalf("run `make test-e2e`: %v", err)
	}
	running(ctx, t, k8s)
	undeploy := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", "../..", "undeploy")
	if out, err := undeploy.CombinedOutput(); err != nil {
		t.Fatalf("make undeploy: %v\n%s", err, out)
	}

	groups, err := k8s.Clientset.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		if strings.HasSuffix(g.Name, "tidewaiter.dev") {
			t.Errorf("group %s is still served", g.Name)
		}
	}
	if err := k8s.Get(ctx, client.ObjectKey{Name: cluster.SystemNamespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s is still there: %v", cluster.SystemNamespace, err)
	}
	err = cluster.Until(ctx, "the Feature's pod and volumes to go", func(ctx context.Context) (bool, error) {
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
