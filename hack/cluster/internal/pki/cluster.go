// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names that the cluster's parts know each other by.
const (
	// KubeletClients is the group of the API server's client certificate towards kubelets.
	KubeletClients = "tidewaiter:kubelet-clients"
	// NetpolUser and VolumesUser are the users that the node's own daemons are.
	NetpolUser  = "tidewaiter:netpol"
	VolumesUser = "tidewaiter:volumes"
)

// Cluster has the names for the certificates.
type Cluster struct {
	Node      string // the node's name
	NodeIP    string // the node's address, also the API server's
	ServiceIP string // the API server's address as a Service
}

// Folder of the PKI: `pki` holds PEM files, `kubeconfig` one kubeconfig for each client.
type folder struct {
	pki, kubeconfig string
	cluster         Cluster
	now             time.Time
}

// Write makes everything in root/pki and root/kubeconfig, unless it has been made.
func Write(root string, c Cluster, now time.Time) error {
	f := folder{pki: filepath.Join(root, "pki"), kubeconfig: filepath.Join(root, "kubeconfig"), cluster: c, now: now}
	complete := filepath.Join(f.pki, "complete")
	if _, err := os.Stat(complete); err == nil {
		return nil
	}
	for _, path := range []string{f.pki, f.kubeconfig} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("PKI folder: %w", err)
		}
	}
	for _, write := range []func() error{f.writeCluster, f.writeEtcd, f.writeFrontProxy, f.writeServiceAccountKey} {
		if err := write(); err != nil {
			return err
		}
	}
	return WriteFile(f.pki, "complete", nil)
}

func (f folder) writeCluster() error {
	authority, err := f.authority("ca")
	if err != nil {
		return err
	}
	key, err := authority.KeyPEM()
	if err != nil {
		return err
	}
	if err := WriteFile(f.pki, "ca.key", key); err != nil {
		return err
	}
	c := f.cluster
	pairs := map[string]Subject{
		"apiserver": {Name: "kube-apiserver", Hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
			"127.0.0.1", c.NodeIP, c.ServiceIP,
		}},
		"apiserver-kubelet-client": {Name: "kube-apiserver-kubelet-client", Groups: []string{KubeletClients}},
		"kubelet-server":           {Name: "system:node:" + c.Node, Groups: []string{"system:nodes"}, Hosts: []string{c.Node, c.NodeIP}},
	}
	for name, subject := range pairs {
		if err := f.issue(authority, name, subject); err != nil {
			return err
		}
	}
	for name, subject := range map[string]Subject{
		"admin":                   {Name: "admin", Groups: []string{"system:masters"}},
		"kube-controller-manager": {Name: "system:kube-controller-manager"},
		"kube-scheduler":          {Name: "system:kube-scheduler"},
		"kube-proxy":              {Name: "system:kube-proxy"},
		"kubelet":                 {Name: "system:node:" + c.Node, Groups: []string{"system:nodes"}},
		"netpol":                  {Name: NetpolUser},
		"volumes":                 {Name: VolumesUser},
	} {
		pair, err := authority.Issue(subject, f.now)
		if err != nil {
			return err
		}
		if err := WriteFile(f.kubeconfig, name, Kubeconfig("https://"+c.NodeIP+":6443", authority.PEM, pair)); err != nil {
			return err
		}
	}
	return nil
}

// writeEtcd gives etcd an authority of its own: a process that can read the API server's certificates of the cluster's
// authority still cannot talk to etcd.
func (f folder) writeEtcd() error {
	authority, err := f.authority("etcd-ca")
	if err != nil {
		return err
	}
	if err := f.issue(authority, "etcd", Subject{Name: "etcd", Hosts: []string{"localhost", "127.0.0.1"}}); err != nil {
		return err
	}
	return f.issue(authority, "apiserver-etcd-client", Subject{Name: "kube-apiserver"})
}

func (f folder) writeFrontProxy() error {
	authority, err := f.authority("front-proxy-ca")
	if err != nil {
		return err
	}
	return f.issue(authority, "front-proxy-client", Subject{Name: "front-proxy-client"})
}

func (f folder) writeServiceAccountKey() error {
	private, public, err := NewKey()
	if err != nil {
		return err
	}
	if err := WriteFile(f.pki, "sa.key", private); err != nil {
		return err
	}
	return WriteFile(f.pki, "sa.pub", public)
}

func (f folder) authority(name string) (*Authority, error) {
	authority, err := NewAuthority("tidewaiter-"+name, f.now)
	if err != nil {
		return nil, err
	}
	return authority, WriteFile(f.pki, name+".crt", authority.PEM)
}

func (f folder) issue(authority *Authority, name string, subject Subject) error {
	pair, err := authority.Issue(subject, f.now)
	if err != nil {
		return err
	}
	if err := WriteFile(f.pki, name+".crt", pair.Certificate); err != nil {
		return err
	}
	return WriteFile(f.pki, name+".key", pair.Key)
}

// Kubeconfig is a kubeconfig with everything in it.
func Kubeconfig(server string, authority []byte, client Pair) []byte {
	data := base64.StdEncoding.EncodeToString
	return []byte(strings.Join([]string{
		"apiVersion: v1",
		"kind: Config",
		"clusters:",
		"- name: tidewaiter",
		"  cluster:",
		"    server: " + server,
		"    certificate-authority-data: " + data(authority),
		"users:",
		"- name: tidewaiter",
		"  user:",
		"    client-certificate-data: " + data(client.Certificate),
		"    client-key-data: " + data(client.Key),
		"contexts:",
		"- name: tidewaiter",
		"  context: {cluster: tidewaiter, user: tidewaiter}",
		"current-context: tidewaiter",
		"",
	}, "\n"))
}
