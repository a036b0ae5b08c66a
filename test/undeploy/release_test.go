// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package undeploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// release makes a release twice, in two directories, and compares them byte for byte. Then it installs Tidewaiter from the release on a cluster that
// has none, does what the quick start says, and removes Tidewaiter.
func release(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	k8s, err := cluster.Connect(os.Getenv("TIDEWAITER_KUBECONFIG"), os.Getenv("TIDEWAITER_TESTBED"))
	if err != nil {
		t.Fatalf("run `make test-e2e`: %v", err)
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	call := func(dir, name string, arguments ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, arguments...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
		}
		return string(out)
	}

	// Only this machine's architecture: the other one would be compiled from nothing.
	elsewhere, releases := filepath.Join(t.TempDir(), "another", "path"), t.TempDir()
	call(here, "sh", "-c", `mkdir -p "$1" && git ls-files --cached --others --exclude-standard -z | tar --create --null --files-from=- | tar --extract --directory="$1"`, "sh", elsewhere)
	first, second := filepath.Join(releases, "first"), filepath.Join(releases, "second")
	call(here, "make", "--no-print-directory", "release", "VERSION=9.8.7", "OUT="+first, "ARCHITECTURES="+runtime.GOARCH)
	call(elsewhere, "make", "--no-print-directory", "release", "VERSION=9.8.7", "OUT="+second, "ARCHITECTURES="+runtime.GOARCH)
	call(first, "sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS")
	// A copy is no commit, and the provenance says so.
	call(releases, "diff", "--recursive", "--exclude=provenance.json", "--exclude=SHA256SUMS", first, second)

	loaded := call(here, "hack/release/load.sh", first, "local")
	if !strings.Contains(loaded, "kubectl apply --server-side -f "+first+"/install.yaml") {
		t.Errorf("load.sh does not say what comes next:\n%s", loaded)
	}
	kubectl := strings.Fields(os.Getenv("TIDEWAITER_KUBECTL"))
	call(here, kubectl[0], append(kubectl[1:], "apply", "--server-side", "-f", filepath.Join(first, "install.yaml"))...)
	for _, name := range []string{"tidewaiter-manager", "tidewaiter-gateway"} {
		err := cluster.Until(ctx, name+" to be ready", func(ctx context.Context) (bool, error) {
			var d appsv1.Deployment
			err := k8s.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: name}, &d)
			image := ""
			if err == nil {
				image = d.Spec.Template.Spec.Containers[0].Image
			}
			if err == nil && !strings.HasPrefix(image, "tidewaiter:9.8.7@sha256:") {
				t.Fatalf("%s has the image %s", name, image)
			}
			return err == nil && d.Status.ReadyReplicas > 0 && d.Status.ReadyReplicas == d.Status.Replicas, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	quickStart(ctx, t, k8s)
	call(here, "make", "--no-print-directory", "undeploy")
}
