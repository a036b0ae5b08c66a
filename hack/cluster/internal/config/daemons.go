// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/node"
)

// mounts is where the node mounts volumes. On the node this folder is not on a disk, so a volume that is not mounted
// is a missing folder and never an empty one.
const mounts = "/var/lib/tidewaiter-volumes"

const (
	etcdAddress       = "127.0.0.1:2379"
	etcdPeerAddress   = "127.0.0.1:2380"
	apiAddress        = NodeIP + ":6443"
	containerdAddress = "/run/containerd/containerd.sock"
)

// Plan says what the node's first process must do.
func (c Cluster) Plan() node.Plan {
	return node.Plan{
		Hostname: Node,
		State:    c.State,
		Link:     node.Link{Name: NodeLink, Address: NodeIP + "/30", Gateway: HostIP},
		// The runtime's folder first: containerd looks for its shim there.
		Path: c.Runtime + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		// Before the kubelet can start a pod that uses one.
		Before: []node.Program{c.kube("volumes", "", "--mount-only", "--files="+c.volumeFiles(), "--mounts="+mounts)},
		Daemons: []node.Program{
			{Name: "containerd", Path: filepath.Join(c.Runtime, "containerd"), Arguments: []string{"--config=" + c.conf("containerd.toml")}},
			c.etcd(),
			c.apiServer(),
			c.controllerManager(),
			c.scheduler(),
			c.kubelet(),
			c.kube("kube-proxy", apiAddress, "--config="+c.conf("kube-proxy.yaml")),
			c.kube("netpol", apiAddress, "--kubeconfig="+c.Kubeconfig("netpol"), "--node="+Node, "--pod-cidr="+PodCIDR,
				"--ready-file="+c.ReadyFile("netpol")),
			c.kube("volumes", apiAddress, "--kubeconfig="+c.Kubeconfig("volumes"), "--node="+Node,
				"--files="+c.volumeFiles(), "--mounts="+mounts, "--ready-file="+c.ReadyFile("volumes")),
		},
	}
}

// Names of the two ends of the link between machine and node.
const (
	HostLink = "tw-host"
	NodeLink = "tw-node"
)

func (c Cluster) volumeFiles() string { return filepath.Join(c.State, "volumes") }

func (c Cluster) kube(name, after string, arguments ...string) node.Program {
	return node.Program{Name: name, Path: filepath.Join(c.Kube, name), Arguments: arguments, After: after}
}

func (c Cluster) etcd() node.Program {
	return c.kube("etcd", "",
		"--name="+Node,
		"--data-dir="+filepath.Join(c.State, "etcd"),
		"--listen-client-urls=https://"+etcdAddress,
		"--advertise-client-urls=https://"+etcdAddress,
		"--listen-peer-urls=https://"+etcdPeerAddress,
		"--initial-advertise-peer-urls=https://"+etcdPeerAddress,
		"--initial-cluster="+Node+"=https://"+etcdPeerAddress,
		"--client-cert-auth", "--trusted-ca-file="+c.pem("etcd-ca.crt"),
		"--cert-file="+c.pem("etcd.crt"), "--key-file="+c.pem("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+c.pem("etcd-ca.crt"),
		"--peer-cert-file="+c.pem("etcd.crt"), "--peer-key-file="+c.pem("etcd.key"),
		// What survives a killed process is enough here; only a crash of the machine can lose writes.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
}

func (c Cluster) apiServer() node.Program {
	return c.kube("kube-apiserver", etcdAddress,
		"--advertise-address="+NodeIP,
		"--service-cluster-ip-range="+ServiceCIDR,
		"--etcd-servers=https://"+etcdAddress,
		"--etcd-cafile="+c.pem("etcd-ca.crt"),
		"--etcd-certfile="+c.pem("apiserver-etcd-client.crt"), "--etcd-keyfile="+c.pem("apiserver-etcd-client.key"),
		"--tls-cert-file="+c.pem("apiserver.crt"), "--tls-private-key-file="+c.pem("apiserver.key"),
		"--client-ca-file="+c.pem("ca.crt"),
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--kubelet-certificate-authority="+c.pem("ca.crt"),
		"--kubelet-client-certificate="+c.pem("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+c.pem("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+c.pem("sa.pub"),
		"--service-account-signing-key-file="+c.pem("sa.key"),
		"--requestheader-client-ca-file="+c.pem("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+c.pem("front-proxy-client.crt"),
		"--proxy-client-key-file="+c.pem("front-proxy-client.key"),
		"--profiling=false",
	)
}

// fast lifts the client limits that would hold the controllers to 20 pods a second.
func fast() []string { return []string{"--kube-api-qps=300", "--kube-api-burst=600"} }

func (c Cluster) controllerManager() node.Program {
	kubeconfig := c.Kubeconfig("kube-controller-manager")
	return c.kube("kube-controller-manager", apiAddress, append(fast(),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--root-ca-file="+c.pem("ca.crt"),
		"--service-account-private-key-file="+c.pem("sa.key"),
		"--cluster-signing-cert-file="+c.pem("ca.crt"), "--cluster-signing-key-file="+c.pem("ca.key"),
		"--flex-volume-plugin-dir="+filepath.Join(c.State, "kubelet-plugins"),
		"--profiling=false",
	)...)
}

func (c Cluster) scheduler() node.Program {
	kubeconfig := c.Kubeconfig("kube-scheduler")
	return c.kube("kube-scheduler", apiAddress, append(fast(),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--profiling=false",
	)...)
}

func (c Cluster) kubelet() node.Program {
	return c.kube("kubelet", apiAddress,
		"--config="+c.conf("kubelet.yaml"),
		"--kubeconfig="+c.Kubeconfig("kubelet"),
		"--hostname-override="+Node,
		"--node-ip="+NodeIP,
	)
}
