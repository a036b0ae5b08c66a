// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Versions are the versions of the programs that report one, as the module files pin them.
type Versions struct {
	Kubernetes string // with a leading v
	CoreDNS    string // with a leading v
	// kubernetesFile is the module file of components that pins Kubernetes; go.mod where it is empty.
	kubernetesFile string
}

// ReadVersions reads them from the module files in the sources. kubernetes is the minor version wanted, such as 1.35; where it is empty, the version
// is that of components/go.mod. Another one has a module file of its own, components/kubernetes-1.35.mod.
func ReadVersions(sources, kubernetes string) (v Versions, err error) {
	components := filepath.Join(sources, "components")
	if v.CoreDNS, err = required(filepath.Join(components, "go.mod"), "github.com/coredns/coredns"); err != nil {
		return Versions{}, err
	}
	if v.Kubernetes, err = required(filepath.Join(components, "go.mod"), "k8s.io/kubernetes"); err != nil {
		return Versions{}, err
	}
	if kubernetes == "" || minor(v.Kubernetes) == kubernetes {
		return v, nil
	}
	known := []string{minor(v.Kubernetes)}
	files, err := filepath.Glob(filepath.Join(components, "kubernetes-*.mod"))
	if err != nil {
		return Versions{}, fmt.Errorf("module files: %w", err)
	}
	for _, file := range files {
		if v.Kubernetes, err = required(file, "k8s.io/kubernetes"); err != nil {
			return Versions{}, err
		}
		if minor(v.Kubernetes) == kubernetes {
			v.kubernetesFile = filepath.Base(file)
			return v, nil
		}
		known = append(known, minor(v.Kubernetes))
	}
	slices.Sort(known)
	return Versions{}, fmt.Errorf("there is no Kubernetes %q here: set TIDEWAITER_KUBERNETES to one of %s", kubernetes, strings.Join(known, ", "))
}

// required is the version of a module that a module file requires.
func required(file, module string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("module file: %w", err)
	}
	found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(content)
	if found == nil {
		return "", fmt.Errorf("%s: it requires no %s", file, module)
	}
	return string(found[1]), nil
}

// minor is 1.35 of v1.35.4.
func minor(version string) string {
	version = strings.TrimPrefix(version, "v")
	return version[:strings.LastIndexByte(version, '.')]
}

// Kube is every Kubernetes program, etcd, and the node's own daemons, in one binary.
func Kube(v Versions) Product {
	links := map[string]string{}
	for _, name := range []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl", "netpol", "volumes",
	} {
		links[name] = "kube"
	}
	return Product{
		Name: "kube", Title: "Kubernetes " + v.Kubernetes + " and etcd", Hint: "(about 6 minutes on two cores)", Module: "components",
		ModFile:  v.kubernetesFile,
		Sources:  []string{"kube", "netpol", "volumes"},
		Commands: []Command{{Packages: []string{"./kube"}, LDFlags: versionFlags(v.Kubernetes)}},
		Links:    links,
	}
}

// DNS is CoreDNS.
func DNS(v Versions) Product {
	return Product{
		Name: "dns", Title: "CoreDNS " + v.CoreDNS, Module: "components",
		Sources:  []string{"coredns"},
		Commands: []Command{{Packages: []string{"./coredns"}}},
	}
}

// Runtime is what starts containers: containerd, runc, the network plugins.
func Runtime() Product {
	return Product{
		Name: "runtime", Title: "containerd, runc and network plugins", Module: "runtime",
		Commands: []Command{
			{Packages: []string{
				"github.com/containerd/containerd/v2/cmd/containerd",
				"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
				"github.com/containerd/containerd/v2/cmd/ctr",
			}},
			{Into: "cni", Packages: []string{
				"github.com/containernetworking/plugins/plugins/ipam/host-local",
				"github.com/containernetworking/plugins/plugins/main/loopback",
				"github.com/containernetworking/plugins/plugins/main/ptp",
				"github.com/containernetworking/plugins/plugins/meta/portmap",
			}},
			// Without seccomp no sandbox starts: its profile is the runtime's default. User namespaces are C code.
			{Packages: []string{"github.com/opencontainers/runc"}, Cgo: true, Tags: "seccomp"},
		},
	}
}

// Small is the programs of the driver's own module: the sandbox's first process and the one that `verify` runs in pods.
func Small() Product {
	return Product{
		Name: "small", Title: "the sandbox and probe programs", Module: ".",
		Sources:  []string{"pause", "probe"},
		Commands: []Command{{Packages: []string{"./pause", "./probe"}}},
	}
}

// versionFlags make the programs report the version that they are.
func versionFlags(version string) string {
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	var flags []string
	for _, variables := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", variables+".gitVersion="+version,
			"-X", variables+".gitMajor="+numbers[0],
			"-X", variables+".gitMinor="+numbers[1],
			"-X", variables+".gitTreeState=clean",
		)
	}
	return strings.Join(flags, " ")
}
