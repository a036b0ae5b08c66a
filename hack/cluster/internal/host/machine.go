// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// loopPatience is how long the kernel may take to unmount what the node's mount namespace had mounted.
const loopPatience = 30 * time.Second

// settings are those of the machine's that a kubelet changes, though it runs in namespaces of its own.
func settings() []string {
	return []string{
		"/proc/sys/vm/overcommit_memory",
		"/proc/sys/vm/panic_on_oom",
		"/proc/sys/kernel/panic",
		"/proc/sys/kernel/panic_on_oops",
		"/proc/sys/kernel/keys/root_maxkeys",
		"/proc/sys/kernel/keys/root_maxbytes",
	}
}

// ReadSettings returns the machine's settings as they are.
func ReadSettings() (map[string]string, error) {
	all := map[string]string{}
	for _, path := range settings() {
		value, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("setting: %w", err)
		}
		all[path] = strings.TrimSpace(string(value))
	}
	return all, nil
}

// RestoreSettings puts back what differs.
func RestoreSettings(before map[string]string) error {
	now, err := ReadSettings()
	if err != nil {
		return err
	}
	var errs []error
	for path, value := range before {
		if now[path] == value {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("setting: %w", err))
		}
	}
	return errors.Join(errs...)
}

// LoopDevices lists the loop devices whose files are in a folder.
func LoopDevices(folder string) ([]string, error) {
	backing, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("loop devices: %w", err)
	}
	var all []string
	for _, path := range backing {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // freed in between
		}
		if strings.HasPrefix(string(content), folder+"/") {
			all = append(all, filepath.Base(filepath.Dir(filepath.Dir(path))))
		}
	}
	return all, nil
}

// AwaitLoopDevices waits until no loop device uses a file in the folder: each frees itself with its last mount.
func AwaitLoopDevices(folder string) error {
	return until(loopPatience, "loop devices of "+folder+" are free", func() (bool, error) {
		devices, err := LoopDevices(folder)
		return err == nil && len(devices) == 0, err
	})
}
