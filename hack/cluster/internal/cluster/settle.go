// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/build"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/config"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/host"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/image"
)

const (
	// A start takes seconds; this long means that it never ends.
	readyPatience = 3 * time.Minute
	pollInterval  = 100 * time.Millisecond

	containerdSocket = "run/containerd/containerd.sock"
)

// settle loads the cluster's own images, applies its objects, waits until pods can run, and records that they can.
func (c *Cluster) settle(ctx context.Context, conf config.Cluster, p programs) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	images := make(chan error, 1)
	go func() { images <- c.loadOwnImages(ctx, conf, p) }()

	api, err := newAPI(conf.Kubeconfig("admin"))
	if err != nil {
		return err
	}
	if err := c.await(ctx, "the API server", func() error { return api.get(ctx, "/readyz", nil) }); err != nil {
		return err
	}
	manifests, err := conf.Manifests()
	if err != nil {
		return err
	}
	// Right after its start the API server may still be creating the namespaces and roles that these objects need.
	if err := c.await(ctx, "the cluster's own objects", func() error { return apply(ctx, conf, manifests) }); err != nil {
		return err
	}
	if err := <-images; err != nil {
		return err
	}
	if err := c.awaitParts(ctx, conf); err != nil {
		return err
	}
	record, _, err := c.Running()
	if err != nil {
		return err
	}
	record.Settled = true
	return host.SaveRecord(conf.State, record)
}

// awaitParts waits for all that pods rely on. What objects say about node and DNS may be from before a restart, so the
// node is asked for a sign of life, and DNS a question.
func (c *Cluster) awaitParts(ctx context.Context, conf config.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	api, err := newAPI(conf.Kubeconfig("admin"))
	if err != nil {
		return err
	}
	record, _, err := c.Running()
	if err != nil {
		return err
	}
	for _, part := range []struct {
		what  string
		check func() error
	}{
		{"the node", func() error { return api.nodeReady(ctx, config.Node, record.Started) }},
		{"network policies", func() error { _, err := os.Stat(conf.ReadyFile("netpol")); return err }},
		{"volumes", func() error { _, err := os.Stat(conf.ReadyFile("volumes")); return err }},
		{"DNS", func() error { return resolves(ctx, config.DNSIP, "kubernetes.default.svc.cluster.local.") }},
	} {
		if err := c.await(ctx, part.what, part.check); err != nil {
			return err
		}
	}
	return nil
}

// await repeats check until it succeeds. It gives up when ctx ends or the node does.
func (c *Cluster) await(ctx context.Context, what string, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		if _, running, recordErr := c.Running(); recordErr != nil || !running {
			return errors.Join(fmt.Errorf("wait for %s: the node has ended", what), recordErr)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, err)
		case <-time.After(pollInterval):
		}
	}
}

func apply(ctx context.Context, conf config.Cluster, manifests string) error {
	command := exec.CommandContext(ctx, filepath.Join(conf.Kube, "kubectl"), "--kubeconfig", conf.Kubeconfig("admin"),
		"apply", "--server-side", "--force-conflicts", "-f", "-")
	command.Stdin = strings.NewReader(manifests)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, output)
	}
	return nil
}

// loadOwnImages makes and imports the images that the cluster itself runs.
func (c *Cluster) loadOwnImages(ctx context.Context, conf config.Cluster, p programs) error {
	for _, spec := range []image.Spec{
		{Name: config.PauseImage, User: "65535", Entrypoint: []string{"/pause"}, Files: []image.File{
			{Source: filepath.Join(p.small, "pause"), Target: "/pause", Mode: 0o755},
		}},
		{Name: conf.DNSImage, User: "65532", Entrypoint: []string{"/coredns"}, Files: []image.File{
			{Source: filepath.Join(p.dns, "coredns"), Target: "/coredns", Mode: 0o755},
		}},
	} {
		var archive bytes.Buffer
		if err := image.Write(&archive, spec, ""); err != nil {
			return err
		}
		path := filepath.Join(conf.State, "run", "image.tar")
		if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
			return fmt.Errorf("image: %w", err)
		}
		if err := c.await(ctx, "the import of "+spec.Name, func() error { return c.importImage(ctx, p.runtime, path) }); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	return nil
}

// Load makes the images in an archive known to the cluster.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	runtime, err := c.builder.Folder(build.Runtime())
	if err != nil {
		return err
	}
	if _, err := os.Stat(archive); err != nil {
		return fmt.Errorf("image archive: %w", err)
	}
	return c.importImage(ctx, runtime, archive)
}

func (c *Cluster) importImage(ctx context.Context, runtime, archive string) error {
	record, running, err := c.Running()
	if err != nil {
		return err
	}
	if !running {
		return errors.New("no cluster is running: bring it up first (make cluster-up)")
	}
	// The node's own view of the socket, so that nothing has to be shared with it by path.
	socket := filepath.Join("/proc", strconv.Itoa(record.Process.PID), "root", containerdSocket)
	output, err := exec.CommandContext(ctx, filepath.Join(runtime, "ctr"), "--address", socket, "--namespace", "k8s.io",
		"images", "import", archive).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr images import: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Status describes the cluster for a user.
func (c *Cluster) Status(ctx context.Context) (string, error) {
	record, running, err := c.Running()
	if err != nil {
		return "", err
	}
	if !running {
		return "The local cluster is down.\n", nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, "The local cluster is up: process %d, version %s.\nKubeconfig: %s\nState and logs: %s\n\n",
		record.Process.PID, record.Version, c.Kubeconfig(), c.layout.State())
	kube, err := c.builder.Folder(build.Kube(c.versions))
	if err != nil {
		return "", err
	}
	for _, what := range [][]string{{"get", "nodes"}, {"get", "pods", "--all-namespaces"}} {
		command := exec.CommandContext(ctx, filepath.Join(kube, "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig()}, what...)...)
		output, err := command.CombinedOutput()
		if err != nil {
			return out.String(), fmt.Errorf("kubectl: %w: %s", err, output)
		}
		out.Write(output)
		out.WriteByte('\n')
	}
	if devices, err := host.LoopDevices(filepath.Join(c.layout.State(), "volumes")); err == nil {
		fmt.Fprintf(&out, "Volumes: %d\n", len(devices))
	}
	return out.String(), nil
}

// Probe is the path of the program that `verify` runs in pods.
func (c *Cluster) Probe() (string, error) {
	folder, err := c.builder.Folder(build.Small())
	return filepath.Join(folder, "probe"), err
}
