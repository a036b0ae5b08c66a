// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cgroupPatience is how long the kernel may take to see that a control group's last process is gone.
const cgroupPatience = 10 * time.Second

// MakeCgroups makes a control group in every hierarchy.
func MakeCgroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		group := filepath.Join(root, name)
		if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("control group: %w", err)
		}
		if err := inheritCPUs(root, group); err != nil {
			return err
		}
		if err := delegate(root); err != nil {
			return err
		}
	}
	return nil
}

// RemoveCgroups removes the control group and all below it from every hierarchy. Its processes must have ended.
func RemoveCgroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		group := filepath.Join(root, name)
		err := until(cgroupPatience, "control group "+group+" is empty", func() (bool, error) {
			err := removeTree(group)
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a control group from its leaves up: only folders can be removed in this file system.
func removeTree(group string) error {
	var folders []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	slices.Reverse(folders)
	for _, folder := range folders {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// hierarchies are the mount points of all control group hierarchies. Where those of version 1 are in use, one of
// version 2 may be mounted beside them, and runc makes groups in it as well.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	all := cgroupMounts(string(mounts))
	if len(all) == 0 {
		return nil, errors.New("no control groups are mounted: the kubelet needs them in /sys/fs/cgroup")
	}
	return all, nil
}

func cgroupMounts(mounts string) []string {
	var all []string
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") && !slices.Contains(all, fields[1]) {
			all = append(all, fields[1])
		}
	}
	return all
}

// inheritCPUs lets the group use the CPUs and memory nodes of its parent: in version 1 a new group may use none.
func inheritCPUs(root, group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		parent, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("control group: %w", err)
		}
		if err := os.WriteFile(filepath.Join(group, file), parent, 0o644); err != nil {
			return fmt.Errorf("control group: %w", err)
		}
	}
	return nil
}

// delegate gives a version 2 hierarchy's controllers to its groups.
func delegate(root string) error {
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		// One that cannot be given is missed by the kubelet, which says so better.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
	return nil
}
