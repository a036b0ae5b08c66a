// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volumes provisions PersistentVolumeClaims on the node with volumes of the requested size. Each is a sparse file with an ext4 file
// system in it, mounted by a loop device and handed to the kubelet as a `local` volume. Directories on the node's own disk, which simple
// provisioners hand out, never run full.
package volumes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Provisioner is the name that a StorageClass names this provisioner by.
const Provisioner = "tidewaiter.dev/loop"

// options are the program's flags.
type options struct {
	kubeconfig string
	node       string
	files      string // folder of the volumes' files; survives a restart of the node
	mounts     string // folder that the volumes are mounted in; on the node only
	mountOnly  bool   // mount what exists and end
	ready      string // file that is created once claims are being served
}

// Main runs the program until it is signalled, and returns its exit code.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	var o options
	flags := flag.NewFlagSet("volumes", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	flags.StringVar(&o.node, "node", "", "name of this node")
	flags.StringVar(&o.files, "files", "", "folder of the volumes' files")
	flags.StringVar(&o.mounts, "mounts", "", "folder to mount the volumes in")
	flags.BoolVar(&o.mountOnly, "mount-only", false, "mount the volumes that exist and end: for the start of the node, before a pod can use one")
	flags.StringVar(&o.ready, "ready-file", "", "file to create once claims are served")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		klog.ErrorS(err, "Volumes are not provisioned")
		return 1
	}
	return 0
}

func run(ctx context.Context, o options) error {
	disk, err := newStore(o.files, o.mounts)
	if err != nil {
		return err
	}
	if o.mountOnly {
		return disk.mountAll(ctx)
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return newController(client, disk, o.node).run(ctx, func() error {
		return os.WriteFile(o.ready, nil, 0o600)
	})
}
