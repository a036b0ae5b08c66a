// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package undeploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/test/cluster"
)

const (
	preflightProgram = "../../bin/tidewaiter"
	preflightImage   = "../../bin/image.ref"
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
)

// TestPreflight runs the preflight on the local cluster as it is, and with each thing taken away that it looks for. It names that, and nothing else.
// Whether Tidewaiter is installed does not matter.
func TestPreflight(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	k8s, err := cluster.Connect(os.Getenv("TIDEWAITER_KUBECONFIG"), os.Getenv("TIDEWAITER_TESTBED"))
	if err != nil {
		t.Fatalf("run `make test-e2e`: %v", err)
	}
	p := newPreflight(ctx, t, k8s)
	for _, fault := range []struct {
		name string
		// take something away, and give it back when the test ends.
		take func(*testing.T)
		// failed are the checks that have to fail, and says is what one of them has to say.
		failed []string
		says   string
	}{
		{"nothing", func(*testing.T) {}, nil, ""},
		{"network policy enforcement", letThrough, []string{"network-policy"}, "NetworkPolicy is not enforced"},
		{"the default StorageClass", p.takeDefault, []string{"storage-class", "volumes"}, "no StorageClass is the default"},
		{"user namespaces", takeUserNamespaces, []string{"user-namespaces"}, "no pod with hostUsers: false gets one"},
		{"the provider", p.stop(cluster.ProviderService), []string{"providers"}, "does not reach the provider " + p.provider},
		{"the Git server", p.stop("git"), []string{"git"}, "does not reach the Git server of " + p.git},
	} {
		t.Run(fault.name, func(t *testing.T) {
			fault.take(t)
			found := p.run(t, len(fault.failed) > 0)
			var failed []string
			said := false
			for _, f := range found {
				if f.Status == "failed" {
					failed = append(failed, f.Check)
					said = said || strings.Contains(f.Seen, fault.says)
				}
				if f.Status != "ok" {
					t.Logf("%s %s: %s. %s (%s)", f.Status, f.Check, f.Seen, f.Fix, f.Page)
				}
			}
			if !slices.Equal(failed, fault.failed) || len(failed) > 0 && !said {
				t.Errorf("failed are %v, want %v and %q in\n%+v", failed, fault.failed, fault.says, found)
			}
			p.wantNothingLeft(t)
		})
	}
	t.Run("an interrupt", p.interrupt)
}

// preflight is what its runs have in common.
type preflight struct {
	ctx           context.Context
	k8s           *cluster.Cluster
	provider, git string
	image         string
}

// finding is one of the preflight's output.
type finding struct {
	Check, Status, Seen, Fix, Page string
}

func newPreflight(ctx context.Context, t *testing.T, k8s *cluster.Cluster) *preflight {
	t.Helper()
	for _, name := range []string{project, gitProject} {
		if err := k8s.DeleteProject(ctx, name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := k8s.DeleteProject(context.WithoutCancel(ctx), name); err != nil {
				t.Error(err)
			}
		})
	}
	git, err := k8s.StartGitServer(ctx, gitProject, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	provider, err := k8s.RunProvider(ctx, project)
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(preflightImage)
	if err != nil {
		t.Fatalf("run `make test-e2e`: %v", err)
	}
	return &preflight{ctx: ctx, k8s: k8s, provider: provider.URL, git: git.URL("shop"), image: strings.TrimSpace(string(image))}
}

func (p *preflight) command(arguments ...string) *exec.Cmd {
	return exec.CommandContext(p.ctx, preflightProgram, append([]string{
		"preflight", "--kubeconfig", os.Getenv("TIDEWAITER_KUBECONFIG"), "--image", p.image, "--git", p.git, "--provider", p.provider, "-o", "json",
	}, arguments...)...)
}

// run the preflight, which passes or fails.
func (p *preflight) run(t *testing.T, fails bool) []finding {
	t.Helper()
	began := time.Now()
	cmd := p.command()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	t.Logf("the preflight took %.0fs", time.Since(began).Seconds())
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || (err != nil) != fails || cmd.ProcessState.ExitCode() > 1 {
		t.Fatalf("the preflight ends with %v\n%s\n%s", err, &out, &errs)
	}
	var all struct{ Findings []finding }
	if err := json.Unmarshal(out.Bytes(), &all); err != nil || len(all.Findings) < 10 {
		t.Fatalf("%v\n%s\n%s", err, &out, &errs)
	}
	return all.Findings
}

// left are the namespaces of preflights.
func (p *preflight) left() ([]corev1.Namespace, error) {
	var list corev1.NamespaceList
	err := p.k8s.List(p.ctx, &list, client.MatchingLabels{"app.kubernetes.io/name": "tidewaiter-preflight"})
	return list.Items, err
}

func (p *preflight) wantNothingLeft(t *testing.T) {
	t.Helper()
	if left, err := p.left(); err != nil || len(left) > 0 {
		t.Errorf("%d namespaces are left, %v", len(left), err)
	}
}

// interrupt ends a preflight in the middle.
func (p *preflight) interrupt(t *testing.T) {
	cmd := p.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := cluster.Until(p.ctx, "pods of the preflight", func(ctx context.Context) (bool, error) {
		left, err := p.left()
		if len(left) == 0 || err != nil {
			return false, err
		}
		var pods corev1.PodList
		err = p.k8s.List(ctx, &pods, client.InNamespace(left[0].Name))
		return len(pods.Items) > 0, err
	})
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the preflight ends with %v, want exit code 1", err)
	}
	p.wantNothingLeft(t)
}

// takeDefault leaves the cluster without a default StorageClass.
func (p *preflight) takeDefault(t *testing.T) {
	class := &storagev1.StorageClass{}
	class.Name = "standard"
	mark := func(ctx context.Context, value string) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+defaultClass+`":`+value+`}}}`))
		if err := p.k8s.Patch(ctx, class, patch); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { mark(context.WithoutCancel(p.ctx), `"true"`) })
	mark(p.ctx, "null")
}

// stop a server of the test's own.
func (p *preflight) stop(name string) func(*testing.T) {
	return func(t *testing.T) {
		namespace := map[string]string{cluster.ProviderService: project, "git": gitProject}[name]
		scale := func(ctx context.Context, replicas int32) {
			key := client.ObjectKey{Namespace: namespace, Name: name}
			err := cluster.Until(ctx, "the scale of "+name, func(ctx context.Context) (bool, error) {
				var d appsv1.Deployment
				if err := p.k8s.Get(ctx, key, &d); err != nil {
					return false, err
				}
				d.Spec.Replicas = ptr.To(replicas)
				err := p.k8s.Update(ctx, &d)
				return err == nil, err
			})
			if err == nil {
				err = cluster.Until(ctx, "the pods of "+name, func(ctx context.Context) (bool, error) {
					var d appsv1.Deployment
					err := p.k8s.Get(ctx, key, &d)
					return d.Status.ReadyReplicas == replicas && d.Status.Replicas == replicas, err
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { scale(context.WithoutCancel(p.ctx), 1) })
		scale(p.ctx, 0)
	}
}

// oldRuntime makes no container with a user namespace, and is otherwise the runtime REAL.
const oldRuntime = `#!/bin/sh
before=
for argument; do
  if [ "$before" = --bundle ] && grep -q '"type": *"user"' "$argument/config.json"; then
    echo "this runtime has no user namespaces" >&2
    exit 1
  fi
  before=$argument
done
exec REAL "$@"
`

// takeUserNamespaces gives the local cluster's node a container runtime without user namespaces, although the node has reported them. To set
// /proc/sys/user/max_user_namespaces would be simpler, and takes a capability that not every machine gives.
func takeUserNamespaces(t *testing.T) {
	node := processOfNode(t, "containerd")
	containerd, err := os.Readlink(filepath.Join(node, "exe"))
	if err != nil {
		t.Fatal(err)
	}
	runc := filepath.Join(filepath.Dir(containerd), "runc")
	program, err := os.ReadFile(runc)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	current, old := filepath.Join(dir, "runc"), filepath.Join(dir, "old-runc")
	for path, content := range map[string][]byte{current: program, old: []byte(strings.ReplaceAll(oldRuntime, "REAL", current))} {
		if err := os.WriteFile(path, content, 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	inside := func(arguments ...string) {
		if out, err := exec.Command("nsenter", append([]string{"--mount=" + filepath.Join(node, "ns/mnt"), "--pid=" + filepath.Join(node, "ns/pid")}, arguments...)...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", arguments, err, out)
		}
	}
	t.Cleanup(func() { inside("umount", "--lazy", runc) })
	inside("mount", "--bind", old, runc)
}

// processOfNode is the directory in /proc of a daemon of the local cluster's node.
func processOfNode(t *testing.T, name string) string {
	t.Helper()
	programs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range programs {
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), name+"\x00") {
			return filepath.Dir(path)
		}
	}
	t.Fatalf("%s of the local cluster does not run on this machine", name)
	return ""
}

// letThrough has the local cluster's node let every connection through that its enforcer of network policies would be asked about. If the enforcer is
// stopped instead, the kernel drops them.
func letThrough(t *testing.T) {
	network := filepath.Join(processOfNode(t, "netpol"), "ns/net")
	rule := func(act, chain string) {
		if out, err := exec.Command("nsenter", "--net="+network, "iptables", "--wait", "5", "--table", "mangle", act, chain, "--jump", "ACCEPT").CombinedOutput(); err != nil {
			t.Errorf("iptables %s %s: %v\n%s", act, chain, err, out)
		}
	}
	for _, chain := range []string{"INPUT", "POSTROUTING"} {
		t.Cleanup(func() { rule("--delete", chain) })
		rule("--insert", chain)
	}
}
