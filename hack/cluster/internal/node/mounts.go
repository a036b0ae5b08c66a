// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// mountAll makes the mount namespace the node's own. What it mounts is seen by the node alone and vanishes with it.
func mountAll(state string) error {
	// From the machine to the node, never back.
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error {
			return mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "")
		},
		func() error { return mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755") },
		mountSys,
		func() error { return hide("/var/lib") },
		func() error { return bind(filepath.Join(state, "log"), "/var/log") },
		func() error { return bind(filepath.Join(state, "kubelet"), "/var/lib/kubelet") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	// Last, and from the node to its pods and back: the kubelet's and volumes' mounts must reach running containers.
	return mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "")
}

// mountSys mounts a sysfs that shows the node's own network, with the machine's control groups in it.
func mountSys() error {
	const cgroups, aside = "/sys/fs/cgroup", "/run/cgroup"
	if err := os.Mkdir(aside, 0o755); err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	if err := mount(cgroups, aside, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return err
	}
	if err := mount("sysfs", "/sys", "sysfs", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return err
	}
	// Moved, not bound again: taking away a second mount would propagate and take the first away too.
	if err := mount(aside, cgroups, "", syscall.MS_MOVE, ""); err != nil {
		return err
	}
	return os.Remove(aside)
}

// hide lets the node write to a folder that programs have hard-coded (/var/lib/cni, /var/lib/kubelet), in memory and
// without the machine's own folder changing.
func hide(path string) error {
	upper := filepath.Join("/run/overlay", path, "upper")
	work := filepath.Join("/run/overlay", path, "work")
	for _, folder := range []string{upper, work} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
	}
	return mount("overlay", path, "overlay", 0, "lowerdir="+path+",upperdir="+upper+",workdir="+work)
}

func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	return mount(from, to, "", syscall.MS_BIND, "")
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s %s at %s: %w", kind, source, target, err)
	}
	return nil
}
