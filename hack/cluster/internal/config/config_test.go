// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func testCluster(t *testing.T) Cluster {
	t.Helper()
	return Cluster{State: t.TempDir(), Kube: "/programs/kube", Runtime: "/programs/runtime", DNSImage: "local.test/coredns:1.2.3"}
}

func TestWriteRendersEverything(t *testing.T) {
	c := testCluster(t)
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ file, want string }{
		"containerd finds the plugins":        {"containerd.toml", `bin_dirs = ["/programs/runtime/cni"]`},
		"containerd keeps state in its place": {"containerd.toml", `root = "` + c.State + `/containerd"`},
		"containerd's sandbox is not pulled":  {"containerd.toml", `sandbox = "local.test/pause:1"`},
		"kubelet limits a pod's processes":    {"kubelet.yaml", "podPidsLimit: 4096"},
		"kubelet asks the API server":         {"kubelet.yaml", "authorization: {mode: Webhook}"},
		"kubelet refuses strangers":           {"kubelet.yaml", "anonymous: {enabled: false}"},
		"kubelet stays in its control group":  {"kubelet.yaml", "cgroupRoot: /tidewaiter-dev"},
		"proxy uses nftables":                 {"kube-proxy.yaml", "mode: nftables"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(c.State, "conf", test.file))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), test.want) {
				t.Errorf("%s lacks %q:\n%s", test.file, test.want, content)
			}
		})
	}
	content, err := os.ReadFile(filepath.Join(c.State, "conf", "cni", "10-tidewaiter.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(content) {
		t.Errorf("the network configuration is not JSON:\n%s", content)
	}
}

func TestManifestsNameTheImage(t *testing.T) {
	manifests, err := testCluster(t).Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`image: "local.test/coredns:1.2.3"`, "clusterIP: 10.96.0.10", "provisioner: tidewaiter.dev/loop"} {
		if !strings.Contains(manifests, want) {
			t.Errorf("manifests lack %q", want)
		}
	}
}

func TestPlan(t *testing.T) {
	plan := testCluster(t).Plan()
	var names []string
	for _, daemon := range plan.Daemons {
		names = append(names, daemon.Name)
		if !filepath.IsAbs(daemon.Path) {
			t.Errorf("%s: path %q is not absolute", daemon.Name, daemon.Path)
		}
	}
	slices.Sort(names)
	want := []string{
		"containerd", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet", "netpol", "volumes",
	}
	if !slices.Equal(names, want) {
		t.Errorf("daemons %v, want %v", names, want)
	}
	if len(plan.Before) != 1 || !slices.Contains(plan.Before[0].Arguments, "--mount-only") {
		t.Errorf("volumes are not mounted before the kubelet starts: %v", plan.Before)
	}
}

// The API server and the kubelet must not answer to strangers, whatever else changes.
func TestAPIServerIsClosed(t *testing.T) {
	for _, want := range []string{
		"--anonymous-auth=false", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
	} {
		if got := testCluster(t).apiServer().Arguments; !slices.Contains(got, want) {
			t.Errorf("arguments lack %q", want)
		}
	}
	if got := testCluster(t).controllerManager().Arguments; !slices.Contains(got, "--use-service-account-credentials") {
		t.Error("controllers share one identity")
	}
}
