// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs Tidewaiter on a real cluster: real pods, real Git over HTTPS, agents that are plain scripts.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	gitProject      = "tidewaiter-e2e-git"
	providerProject = "tidewaiter-e2e-models"
)

var (
	k8s       *cluster.Cluster
	gitServer *cluster.GitServer
	provider  *cluster.Provider
)

func TestMain(m *testing.M) {
	code, err := setUp(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func setUp(m *testing.M) (int, error) {
	kubeconfig := os.Getenv("TIDEWAITER_KUBECONFIG")
	if kubeconfig == "" {
		return 1, fmt.Errorf("TIDEWAITER_KUBECONFIG is not set: run `make test-e2e`")
	}
	dir, err := os.MkdirTemp("", "tidewaiter-e2e-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if k8s, err = cluster.Connect(kubeconfig, os.Getenv("TIDEWAITER_TESTBED")); err != nil {
		return 1, err
	}
	if gitServer, err = k8s.StartGitServer(ctx, gitProject, dir); err != nil {
		return 1, err
	}
	if provider, err = k8s.StartProvider(ctx, providerProject); err != nil {
		return 1, err
	}
	code := m.Run()
	// What a failed run leaves behind is what explains it.
	if code == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(k8s.DeleteProject(ctx, gitProject), k8s.StopProvider(ctx, providerProject)); err != nil {
			return 1, err
		}
	}
	return code, nil
}

// place is a project with a repository of its own.
type place struct {
	*testing.T
	ctx        context.Context
	project    string
	repository string
	local      string
}

// newPlace makes a project and publishes a small repository; both go when the test passed.
func newPlace(t *testing.T, limit time.Duration) *place {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("the test's %s are over", limit))
	t.Cleanup(cancel)
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	p := &place{T: t, ctx: ctx, project: "e2e-" + name, repository: name, local: t.TempDir()}
	p.must(k8s.DeleteProject(ctx, p.project), "remove an earlier project")
	p.must(k8s.Project(ctx, p.project), "make the project")
	t.Cleanup(func() {
		if t.Failed() {
			p.explain()
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := k8s.DeleteProject(ctx, p.project); err != nil {
			t.Errorf("remove the project: %v", err)
		}
	})
	p.publish()
	p.must(k8s.Create(ctx, gitServer.Secret(p.project, cluster.GitSecret)), "make the Secret")
	p.must(k8s.AllowGit(ctx, p.project, gitServer.Host), "make the policy")
	return p
}

func (p *place) publish() {
	p.Helper()
	files := map[string]string{
		"README.md": "# Shop\n", "web/index.html": "<h1>shop</h1>\n", "web/legacy/old.html": "old\n",
		"api/openapi.yaml": "openapi: 3.1.0\n", ".gitignore": "build/\n", "run.sh": "#!/bin/sh\necho run\n",
	}
	for name, text := range files {
		path := filepath.Join(p.local, name)
		p.must(os.MkdirAll(filepath.Dir(path), 0o755), "make a folder")
		p.must(os.WriteFile(path, []byte(text), 0o644), "write a file")
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=Shop", "-c", "user.email=shop@example.com", "commit", "--quiet", "--message", "Open the shop"},
	} {
		p.git(p.local, args...)
	}
	p.must(gitServer.Publish(p.ctx, p.local, p.repository), "publish the repository")
}

func (p *place) git(dir string, args ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	p.must(err, "git %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func (p *place) must(err error, format string, args ...any) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// feature applies a Feature whose agent runs the script; change may adjust it first.
func (p *place) feature(name, script string, change func(*v1alpha1.FeatureSpec)) {
	p.Helper()
	f := k8s.Script(p.project, name, gitServer.URL(p.repository), script)
	f.Spec.Execution = quickCheckpoints()
	if change != nil {
		change(&f.Spec)
	}
	p.must(k8s.Create(p.ctx, f), "apply Feature %s", name)
}

// until waits for something to be true of a Feature.
func (p *place) until(name, what string, true_ func(*v1alpha1.Feature) bool) *v1alpha1.Feature {
	p.Helper()
	return p.every(500*time.Millisecond, name, what, true_)
}

// every is until with a pause of the caller's.
func (p *place) every(pause time.Duration, name, what string, true_ func(*v1alpha1.Feature) bool) *v1alpha1.Feature {
	p.Helper()
	var f *v1alpha1.Feature
	err := cluster.Every(p.ctx, pause, what, func(ctx context.Context) (bool, error) {
		var err error
		f, err = k8s.Feature(ctx, p.project, name)
		return err == nil && true_(f), err
	})
	if err != nil {
		p.Fatalf("Feature %s: %v; it is %s, %s: %s", name, err, f.Status.Phase,
			cluster.Reason(f, v1alpha1.ConditionSucceeded), cluster.Message(f, v1alpha1.ConditionSucceeded))
	}
	return f
}

// phase waits for a phase with a reason, and fails at once when the Feature ends otherwise.
func (p *place) phase(name string, phase v1alpha1.Phase, reason string) *v1alpha1.Feature {
	p.Helper()
	terminal := map[v1alpha1.Phase]bool{v1alpha1.PhaseDelivered: true, v1alpha1.PhaseFailed: true, v1alpha1.PhaseBlocked: true}
	f := p.until(name, fmt.Sprintf("%s/%s", phase, reason), func(f *v1alpha1.Feature) bool {
		return f.Status.Phase == phase && cluster.Reason(f, v1alpha1.ConditionSucceeded) == reason ||
			terminal[f.Status.Phase] && !terminal[phase]
	})
	if f.Status.Phase != phase {
		p.Fatalf("Feature %s: want %s/%s, is %s/%s: %s", name, phase, reason, f.Status.Phase,
			cluster.Reason(f, v1alpha1.ConditionSucceeded), cluster.Message(f, v1alpha1.ConditionSucceeded))
	}
	return f
}

// condition waits for a condition's reason and returns its message.
func (p *place) condition(name, condition, reason string) string {
	p.Helper()
	f := p.until(name, condition+"/"+reason, func(f *v1alpha1.Feature) bool { return cluster.Reason(f, condition) == reason })
	return cluster.Message(f, condition)
}

// change updates a Feature's spec, whatever else happens to it meanwhile.
func (p *place) change(name string, mutate func(*v1alpha1.FeatureSpec)) {
	p.Helper()
	err := cluster.Until(p.ctx, "the change of "+name, func(ctx context.Context) (bool, error) {
		f, err := k8s.Feature(ctx, p.project, name)
		if err != nil {
			return false, err
		}
		before := f.DeepCopy()
		mutate(&f.Spec)
		err = k8s.Patch(ctx, f, client.MergeFrom(before))
		return err == nil, err
	})
	p.must(err, "change Feature %s", name)
}

func (p *place) checkpoints(name string) []v1alpha1.Checkpoint {
	p.Helper()
	list, err := k8s.Checkpoints(p.ctx, p.project, name)
	p.must(err, "list Checkpoints")
	return list
}

// explain logs what there is to know about a failed test's project.
func (p *place) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	kubectl := strings.Fields(os.Getenv("TIDEWAITER_KUBECTL"))
	if len(kubectl) == 0 {
		p.Log("TIDEWAITER_KUBECTL is not set: nothing to explain the failure with")
		return
	}
	for _, args := range [][]string{
		{"get", "features,checkpoints,jobs,pods,pvc", "-o", "wide"}, {"get", "features", "-o", "yaml"},
		{"get", "events", "--sort-by=.lastTimestamp"}, {"logs", "--selector=tidewaiter.dev/feature", "--all-containers", "--prefix", "--tail=80"},
	} {
		full := append(append(slices.Clone(kubectl[1:]), "--namespace", p.project), args...)
		out, _ := exec.CommandContext(ctx, kubectl[0], full...).CombinedOutput()
		p.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
}

func conditionTrue(f *v1alpha1.Feature, condition string) bool {
	return meta.IsStatusConditionTrue(f.Status.Conditions, condition)
}
