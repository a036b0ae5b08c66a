// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster brings the local cluster up and down and keeps it in the state that its sources describe.
package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/build"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/config"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/debian"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/host"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/place"
	"github.com/tidewaiter/tidewaiter/hack/cluster/internal/progress"
)

// steps is how many steps of the report `up` has.
const steps = 7

// Cluster is the local cluster of this machine.
type Cluster struct {
	layout   place.Layout
	builder  build.Builder
	versions build.Versions
	out      io.Writer // for progress
}

// New returns the cluster that the driver's sources describe, with the minor version of Kubernetes that is given, or the usual one where it is empty.
// Progress is written to out.
func New(sources, kubernetes string, layout place.Layout, out io.Writer) (*Cluster, error) {
	versions, err := build.ReadVersions(sources, kubernetes)
	if err != nil {
		return nil, err
	}
	if err := layout.MakeAll(); err != nil {
		return nil, err
	}
	return &Cluster{layout: layout, builder: build.Builder{Sources: sources, Layout: layout}, versions: versions, out: out}, nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string {
	return config.Cluster{State: c.layout.State()}.Kubeconfig("admin")
}

// Assets builds the programs that envtest needs, and returns their folder.
func (c *Cluster) Assets(ctx context.Context) (string, error) {
	kube := build.Kube(c.versions)
	built, err := c.builder.IsBuilt(kube)
	if err != nil {
		return "", err
	}
	if built {
		return c.builder.Folder(kube)
	}
	return c.builder.Ensure(ctx, kube, progress.New(c.out, time.Now, 1))
}

// Up brings the cluster up, or makes sure that it is, and waits until it is ready for pods.
func (c *Cluster) Up(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("a local cluster needs root: run as root, or set KUBECONFIG to a cluster that you have")
	}
	report := progress.New(c.out, time.Now, steps)
	release, err := c.lock(report)
	if err != nil {
		return err
	}
	defer release()

	if err := report.Step("Checking what the machine has", nil, func() error { return c.installTools(ctx, report) }); err != nil {
		return err
	}
	programs, err := c.ensurePrograms(ctx, report)
	if err != nil {
		return err
	}
	conf := programs.config(c)
	version, err := programs.version(c.builder.Sources)
	if err != nil {
		return err
	}
	settled, err := c.ensureStarted(conf, version, report)
	if err != nil {
		return err
	}
	err = report.Step("Waiting for the cluster", nil, func() error {
		if settled {
			return c.awaitParts(ctx, conf)
		}
		return c.settle(ctx, conf, programs)
	})
	if err != nil {
		return fmt.Errorf("%w\nThe node's logs are in %s", err, filepath.Join(conf.State, "log"))
	}
	report.Note("The cluster is up after %s; its kubeconfig is %s", report.Elapsed(), c.Kubeconfig())
	return nil
}

// Down takes the cluster away. What it built stays in the cache; keepState also keeps its objects, images and volumes
// for the next `up`.
func (c *Cluster) Down(keepState bool) error {
	report := progress.New(c.out, time.Now, 1)
	release, err := c.lock(report)
	if err != nil {
		return err
	}
	defer release()
	return report.Step("Taking the cluster down", nil, func() error { return c.stop(keepState) })
}

// Running reports whether the cluster runs, and since which process.
func (c *Cluster) Running() (host.Record, bool, error) {
	record, ok, err := host.LoadRecord(c.layout.State())
	return record, ok && record.Process.Runs(), err
}

func (c *Cluster) lock(report *progress.Reporter) (func(), error) {
	return place.Hold(c.layout.Lock("cluster"), func() {
		report.Note("waiting for another process that is changing the cluster")
	})
}

func (c *Cluster) installTools(ctx context.Context, report *progress.Reporter) error {
	tools := debian.NodeTools()
	built, err := c.builder.IsBuilt(build.Runtime())
	if err != nil {
		return err
	}
	if !built {
		tools = append(tools, debian.BuildTools()...)
	}
	missing := debian.Missing(tools)
	if len(missing) == 0 {
		return nil
	}
	report.Note("installing the Debian packages %s", strings.Join(missing, " "))
	return debian.Install(ctx, missing)
}

// programs are the folders of what has been built.
type programs struct{ kube, dns, runtime, small string }

func (c *Cluster) ensurePrograms(ctx context.Context, report *progress.Reporter) (programs, error) {
	var p programs
	for _, item := range []struct {
		product build.Product
		folder  *string
	}{
		{build.Kube(c.versions), &p.kube},
		{build.Runtime(), &p.runtime},
		{build.DNS(c.versions), &p.dns},
		{build.Small(), &p.small},
	} {
		folder, err := c.builder.Ensure(ctx, item.product, report)
		if err != nil {
			return programs{}, err
		}
		*item.folder = folder
	}
	return p, nil
}

func (p programs) config(c *Cluster) config.Cluster {
	return config.Cluster{
		State: c.layout.State(), Kube: p.kube, Runtime: p.runtime,
		DNSImage: "local.test/coredns:" + strings.TrimPrefix(c.versions.CoreDNS, "v"),
	}
}

// version is a hash of all that decides what the running node is: the programs, and the driver's part of it.
func (p programs) version(sources string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), filepath.Base(p.kube), filepath.Base(p.runtime), filepath.Base(p.dns), filepath.Base(p.small))
	for _, folder := range []string{"config", "host", "node", "pki"} {
		if err := build.HashFolder(h, filepath.Join(sources, "internal", folder)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// ensureStarted makes sure that the very node that is wanted runs, and reports whether it has been ready before. A node
// of other sources is replaced.
func (c *Cluster) ensureStarted(conf config.Cluster, version string, report *progress.Reporter) (settled bool, err error) {
	record, running, err := c.Running()
	if err != nil {
		return false, err
	}
	same := record.Version == version
	title := "Starting the node"
	switch {
	case running && same:
		title = "The node runs"
	case running:
		report.Note("a cluster of other sources is running; it is replaced")
	}
	err = report.Step(title, nil, func() error {
		if running && same {
			return nil
		}
		// Also takes away what a node has left that ended by itself; its objects and volumes are kept.
		if err := c.stop(same); err != nil {
			return err
		}
		return c.start(conf, version)
	})
	return running && same && record.Settled, err
}
