// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// trashName begins the names that directories to be removed get at the root, so that a tree of any depth is removed
// with two open directories.
const trashName = ".tidewaiter-trash-"

// remove deletes a name of a directory with all below it, following nothing. That it is not there is no error.
func remove(d dir, name string) error {
	err := unix.Unlinkat(d.fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		// A directory without write permission keeps its names; it is the agent's to take away and ours to give.
		if err != unix.EACCES || grant(d) != nil {
			return &os.PathError{Op: "remove", Path: name, Err: err}
		}
		if err = unix.Unlinkat(d.fd, name, 0); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
	}
	return removeDir(d, name)
}

// removeDir empties a directory by moving what is in it up beside it, one level at a time, however deep it is.
func removeDir(d dir, name string) error {
	queue := []string{name}
	for serial := 0; len(queue) > 0; {
		name := queue[len(queue)-1]
		err := unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR)
		if err == nil || errors.Is(err, unix.ENOENT) {
			queue = queue[:len(queue)-1]
			continue
		}
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return &os.PathError{Op: "remove directory", Path: name, Err: err}
		}
		moved, err := empty(d, name, &serial)
		if err != nil {
			return err
		}
		queue = append(queue, moved...)
	}
	return nil
}

// empty deletes the files of a directory and moves its directories up beside it.
func empty(parent dir, name string, serial *int) ([]string, error) {
	d, err := openGranted(parent, name)
	if err != nil {
		return nil, err
	}
	defer d.close()
	var list listing
	if err := list.list(d, 1<<62); err != nil {
		return nil, err
	}
	var moved []string
	for i := range list.entries {
		entry := string(list.name(&list.entries[i]))
		err := unix.Unlinkat(d.fd, entry, 0)
		if err == nil || errors.Is(err, unix.ENOENT) {
			continue
		}
		if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
			return nil, &os.PathError{Op: "remove", Path: entry, Err: err}
		}
		if unix.Unlinkat(d.fd, entry, unix.AT_REMOVEDIR) == nil {
			continue
		}
		// Moving a directory changes its "..", so it must be writable itself.
		if sub, err := openGranted(d, entry); err == nil {
			sub.close()
		}
		to, err := moveUp(d, entry, parent, serial)
		if err != nil {
			return nil, err
		}
		moved = append(moved, to)
	}
	return moved, nil
}

// moveUp gives a directory a new name in parent.
func moveUp(d dir, entry string, parent dir, serial *int) (string, error) {
	for {
		*serial++
		to := trashName + strconv.Itoa(*serial)
		err := unix.Renameat2(d.fd, entry, parent.fd, to, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return "", &os.PathError{Op: "remove directory", Path: entry, Err: err}
		}
		return to, nil
	}
}

// openGranted opens a directory, and makes it ours to read and change if the agent took that away.
func openGranted(parent dir, name string) (dir, error) {
	d, err := parent.sub(name)
	if errors.Is(err, unix.EACCES) {
		// The name could be swapped for a link meanwhile, so the permission is set through a descriptor of the directory.
		fd, err := parent.open(name, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return noDir, err
		}
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
		dir{fd}.close()
		if err != nil {
			return noDir, &os.PathError{Op: "chmod", Path: name, Err: err}
		}
		d, err = parent.sub(name)
		if err != nil {
			return noDir, err
		}
	} else if err != nil {
		return noDir, err
	}
	// Best effort: where it is not ours to change, removing fails and says so.
	_ = grant(d)
	return d, nil
}

// grant makes a directory readable and writable for its owner.
func grant(d dir) error {
	sig, err := fstat(d.fd)
	if err != nil || sig.mode&0o700 == 0o700 {
		return err
	}
	if err := unix.Fchmod(d.fd, uint32(sig.mode&0o7777|0o700)); err != nil {
		return fmt.Errorf("make directory writable: %w", err)
	}
	return nil
}
