// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// systemNamespace is where the manifest puts the gateway.
const systemNamespace = "tidewaiter-system"

// TestTwoGatewaysAndAnUpgrade runs the commands of the pages with kubectl: a Deployment that was patched for two gateways takes the manifest of an upgrade, which
// gives it its own ledger back, and then the patch again.
func TestTwoGatewaysAndAnUpgrade(t *testing.T) {
	all := pages(t)
	_, page, _ := strings.Cut(all["docs/operate/high-availability.md"], "## Run two gateways\n")
	commands := strings.Split(strings.TrimSpace(block.FindStringSubmatch(page)[3]), "\n")
	if len(commands) != 3 {
		t.Fatalf("the page has the commands %q", commands)
	}
	const apply = "kubectl apply --server-side --force-conflicts -f release/pushed/install.yaml"
	if !strings.Contains(all["docs/operate/upgrade.md"], apply) {
		t.Fatalf("the page about upgrades does not say %s", apply)
	}
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(gatewayManifest(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if err := client.IgnoreAlreadyExists(env.Client.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
	kubeconfig := adminConfig(t)
	run := func(command string) {
		t.Helper()
		shell := exec.Command("sh", "-ec", command)
		shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	install := strings.ReplaceAll(apply, "release/pushed/install.yaml", file)
	run(install)
	run(commands[0])
	for range 2 {
		wantLedger(t, 1, true)
		run(commands[1])
		wantLedger(t, 2, false)
		run(install)
	}
	wantLedger(t, 1, true)
}

// gatewayManifest is the gateway's Deployment in the manifest.
func gatewayManifest(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "dist/install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for manifest := range strings.SplitSeq(string(content), "\n---\n") {
		if strings.Contains(manifest, "kind: Deployment\n") && strings.Contains(manifest, "\n  name: tidewaiter-gateway\n") {
			return manifest
		}
	}
	t.Fatal("the manifest has no gateway")
	return ""
}

// wantLedger holds the gateway's Deployment against how many gateways there are, and whether their ledger is the file on its volume.
func wantLedger(t *testing.T, replicas int32, file bool) {
	t.Helper()
	var d appsv1.Deployment
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "tidewaiter-gateway"}, &d); err != nil {
		t.Fatal(err)
	}
	volumes := map[string]corev1.Volume{}
	claims := 0
	for _, v := range d.Spec.Template.Spec.Volumes {
		volumes[v.Name] = v
		if v.PersistentVolumeClaim != nil {
			claims++
		}
	}
	mounted := map[string]corev1.Volume{}
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		mounted[m.MountPath] = volumes[m.Name]
	}
	url, data := mounted["/etc/tidewaiter/ledger"].Secret, mounted["/var/lib/tidewaiter"]
	switch {
	case *d.Spec.Replicas != replicas:
		t.Errorf("%d replicas, want %d", *d.Spec.Replicas, replicas)
	case url == nil || ptr.Deref(url.Optional, false) != file:
		t.Errorf("the Secret with the URL is %+v", url)
	case file && (claims != 1 || data.PersistentVolumeClaim == nil):
		t.Errorf("the file of the ledger is on %+v, and %d claims are used", data.VolumeSource, claims)
	case !file && (claims != 0 || data.EmptyDir == nil):
		t.Errorf("without a file, the gateway has %+v, and %d claims are used", data.VolumeSource, claims)
	}
}
