// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package undeploy

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// version of the release that the tests make.
const version = "9.8.7"

// release makes a release twice, in two directories, and compares them byte for byte. Then it installs Tidewaiter from the one in the directory made, on a
// cluster that has none, does what the quick start says, and removes Tidewaiter.
func release(t *testing.T, made string) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	k8s := connect(t)
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// Only this machine's architecture: the other one would be compiled from nothing.
	elsewhere, second := filepath.Join(t.TempDir(), "another", "path"), filepath.Join(t.TempDir(), "second")
	call(ctx, t, here, "sh", "-c", `mkdir -p "$1" && git ls-files --cached --others --exclude-standard -z | tar --create --null --files-from=- | tar --extract --directory="$1"`, "sh", elsewhere)
	call(ctx, t, here, "make", "--no-print-directory", "release", "VERSION="+version, "OUT="+made, "ARCHITECTURES="+runtime.GOARCH)
	call(ctx, t, elsewhere, "make", "--no-print-directory", "release", "VERSION="+version, "OUT="+second, "ARCHITECTURES="+runtime.GOARCH)
	call(ctx, t, made, "sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS")
	// A copy is no commit, and the provenance says so.
	call(ctx, t, here, "diff", "--recursive", "--exclude=provenance.json", "--exclude=SHA256SUMS", made, second)

	loaded := call(ctx, t, here, "hack/release/load.sh", made, "local")
	if !strings.Contains(loaded, "kubectl apply --server-side -f "+made+"/install.yaml") || !strings.Contains(loaded, "helm install tidewaiter "+packed(made)) {
		t.Errorf("load.sh does not say what comes next:\n%s", loaded)
	}
	kubectl(ctx, t, "apply", "--server-side", "-f", filepath.Join(made, "install.yaml"))
	ready(ctx, t, k8s)
	quickStart(ctx, t, k8s, true)
	call(ctx, t, here, "make", "--no-print-directory", "undeploy")
}

// ready waits until the manager and the gateway of the release are.
func ready(ctx context.Context, t *testing.T, k8s *cluster.Cluster) {
	t.Helper()
	for _, name := range []string{"tidewaiter-manager", "tidewaiter-gateway"} {
		err := cluster.Until(ctx, name+" to be ready", func(ctx context.Context) (bool, error) {
			var d appsv1.Deployment
			err := k8s.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: name}, &d)
			image := ""
			if err == nil {
				image = d.Spec.Template.Spec.Containers[0].Image
			}
			if err == nil && !strings.HasPrefix(image, "tidewaiter:"+version+"@sha256:") {
				t.Fatalf("%s has the image %s", name, image)
			}
			return err == nil && d.Status.ReadyReplicas > 0 && d.Status.ReadyReplicas == d.Status.Replicas, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
