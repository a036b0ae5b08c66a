// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config renders the configuration of every part of the local cluster from one description of it.
package config

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/pki"
)

//go:embed templates
var templates embed.FS

// Addresses and names of the one local cluster of a machine.
const (
	Node        = "tidewaiter"    // the node
	NodeIP      = "10.200.0.2"    // the node, and the API server on it
	HostIP      = "10.200.0.1"    // the machine, as the node and the pods see it
	LinkCIDR    = "10.200.0.0/30" // the link between the two
	PodCIDR     = "10.244.0.0/16"
	ServiceCIDR = "10.96.0.0/16"
	ServiceIP   = "10.96.0.1" // the API server as a Service: the first of ServiceCIDR
	DNSIP       = "10.96.0.10"
	CgroupRoot  = "/tidewaiter-dev"
	PauseImage  = "local.test/pause:1"
)

// Cluster has the values that the configuration depends on.
type Cluster struct {
	State    string // folder of all that the running cluster keeps
	Kube     string // folder of the Kubernetes programs
	Runtime  string // folder of containerd, runc and cni/
	DNSImage string
}

// PKI has the names for the certificates.
func (c Cluster) PKI() pki.Cluster {
	return pki.Cluster{Node: Node, NodeIP: NodeIP, ServiceIP: ServiceIP}
}

// Kubeconfig is the path of the kubeconfig of one of the cluster's clients, such as "admin".
func (c Cluster) Kubeconfig(client string) string {
	return filepath.Join(c.State, "kubeconfig", client)
}

// ReadyFile is the file that one of the node's own daemons creates when it does its work.
func (c Cluster) ReadyFile(daemon string) string { return filepath.Join(c.State, "ready", daemon) }

func (c Cluster) conf(name string) string { return filepath.Join(c.State, "conf", name) }

func (c Cluster) pem(name string) string { return filepath.Join(c.State, "pki", name) }

// Write writes the configuration files below the state folder.
func (c Cluster) Write() error {
	for _, folder := range []string{"conf/cni", "ready", "log", "volumes", "kubelet", "kubelet-plugins", "run"} {
		if err := os.MkdirAll(filepath.Join(c.State, folder), 0o755); err != nil {
			return fmt.Errorf("state folder: %w", err)
		}
	}
	files := map[string]string{
		"containerd.toml": c.conf("containerd.toml"),
		"cni.json":        c.conf("cni/10-tidewaiter.conflist"),
		"kubelet.yaml":    c.conf("kubelet.yaml"),
		"kube-proxy.yaml": c.conf("kube-proxy.yaml"),
	}
	for name, path := range files {
		content, err := c.render(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	// Pods have no resolver but the cluster's: what the machine resolves by is none of their business.
	if err := os.WriteFile(c.conf("resolv.conf"), nil, 0o644); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// Manifests are the objects that make a bare API server the cluster: DNS, the default StorageClass, roles.
func (c Cluster) Manifests() (string, error) { return c.render("manifests.yaml") }

func (c Cluster) render(name string) (string, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(templates, "templates/"+name)
	if err != nil {
		return "", fmt.Errorf("template: %w", err)
	}
	var out strings.Builder
	err = t.Execute(&out, map[string]string{
		"State": c.State, "Runtime": c.Runtime, "DNSImage": c.DNSImage,
		"PauseImage": PauseImage, "Node": Node, "PodCIDR": PodCIDR, "DNSIP": DNSIP, "CgroupRoot": CgroupRoot,
		"KubeletClients": pki.KubeletClients, "NetpolUser": pki.NetpolUser, "VolumesUser": pki.VolumesUser,
	})
	if err != nil {
		return "", fmt.Errorf("template: %w", err)
	}
	return out.String(), nil
}
