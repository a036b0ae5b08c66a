// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	extension = ".ext4"

	// A smaller file system has no room for a journal of journalMiB, the smallest that mkfs.ext4 makes.
	journalMinBytes = 32 << 20
	journalMiB      = 4
	// One inode for each 8 KiB: source trees have many small files, and the default (16 KiB) runs out before the space.
	bytesPerInode = 8192
)

// store keeps volumes on disk. A volume's file gets its name only when its file system is complete, so that a file
// with that name is always a volume.
type store struct {
	files  string
	mounts string
}

func newStore(files, mounts string) (*store, error) {
	for _, folder := range []string{files, mounts} {
		if !filepath.IsAbs(folder) {
			return nil, fmt.Errorf("--files and --mounts: %q is not an absolute path", folder)
		}
		if err := os.MkdirAll(folder, 0o711); err != nil {
			return nil, fmt.Errorf("folder of volumes: %w", err)
		}
	}
	return &store{files: files, mounts: mounts}, nil
}

func (s *store) file(name string) string { return filepath.Join(s.files, name+extension) }

// path is where the volume is mounted.
func (s *store) path(name string) string { return filepath.Join(s.mounts, name) }

// create makes the volume, mounts it, and does nothing that is done already.
func (s *store) create(ctx context.Context, name string, bytes int64) error {
	if _, err := os.Stat(s.file(name)); errors.Is(err, fs.ErrNotExist) {
		if err := s.format(ctx, name, bytes); err != nil {
			return err
		}
	} else if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	return s.mount(ctx, name)
}

func (s *store) format(ctx context.Context, name string, bytes int64) error {
	partial := s.file(name) + ".partial"
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("volume file: %w", err)
	}
	err = errors.Join(file.Truncate(bytes), file.Close())
	if err != nil {
		return fmt.Errorf("volume file: %w", err)
	}
	if err := command(ctx, "mkfs.ext4", formatArguments(partial, bytes)...); err != nil {
		return err
	}
	return os.Rename(partial, s.file(name))
}

// formatArguments are those of mkfs.ext4: no blocks kept for root (a pod's root is not the node's), and nothing zeroed
// that a sparse file holds as zeros already.
func formatArguments(file string, bytes int64) []string {
	arguments := []string{
		"-q", "-F", "-m", "0", "-i", strconv.Itoa(bytesPerInode),
		"-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
	}
	if bytes < journalMinBytes {
		arguments = append(arguments, "-O", "^has_journal")
	} else {
		arguments = append(arguments, "-J", "size="+strconv.Itoa(journalMiB))
	}
	return append(arguments, file)
}

// mount mounts the volume unless it is mounted. The loop device frees itself when the last mount goes, which also
// happens when the node's mount namespace ends.
func (s *store) mount(ctx context.Context, name string) error {
	path := s.path(name)
	if mounted, err := isMountPoint(path); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	// noinit_itable: the inode tables are zeros already; writing them would only use up the disk. nobarrier: a cluster of tests does not outlive the
	// machine's power, and each fsync of a pod would flush the machine's disk.
	if err := command(ctx, "mount", "-t", "ext4", "-o", "loop,nodev,nosuid,noinit_itable,nobarrier", s.file(name), path); err != nil {
		return err
	}
	// fsck would make it again; a pod that wants an empty folder must find one.
	if err := os.Remove(filepath.Join(path, "lost+found")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lost+found: %w", err)
	}
	return nil
}

// remove unmounts and deletes the volume. It fails while a pod still uses it.
func (s *store) remove(name string) error {
	path := s.path(name)
	mounted, err := isMountPoint(path)
	if err != nil {
		return err
	}
	if mounted {
		if err := unix.Unmount(path, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mount point: %w", err)
	}
	if err := os.Remove(s.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("volume file: %w", err)
	}
	return nil
}

// names lists the volumes.
func (s *store) names() ([]string, error) {
	entries, err := os.ReadDir(s.files)
	if err != nil {
		return nil, fmt.Errorf("folder of volumes: %w", err)
	}
	var all []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), extension); ok {
			all = append(all, name)
		}
	}
	return all, nil
}

// mountAll mounts every volume, and goes on past one that cannot be.
func (s *store) mountAll(ctx context.Context) error {
	names, err := s.names()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, s.mount(ctx, name))
	}
	return errors.Join(errs...)
}

// isMountPoint reports whether something is mounted at path: then it is on another device than its parent.
func isMountPoint(path string) (bool, error) {
	var self, parent unix.Stat_t
	if err := unix.Lstat(path, &self); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("mount point %s: %w", path, err)
	}
	if err := unix.Lstat(filepath.Dir(path), &parent); err != nil {
		return false, fmt.Errorf("mount point %s: %w", path, err)
	}
	return self.Dev != parent.Dev, nil
}

func command(ctx context.Context, name string, arguments ...string) error {
	if output, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(output)))
	}
	return nil
}
