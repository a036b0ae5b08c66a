// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// trashName begins the names that directories to be removed get next to the one that is removed, so that a tree of any
// depth is removed with two open directories.
const trashName = ".tidewaiter-trash-"

// maxPasses bounds how often a directory is read again that is not empty although all that it showed was removed: then
// something is being written there.
const maxPasses = 100

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

// removeDir empties a directory by moving its content up next to it, one level at a time, however deep it is. Each
// directory is opened once, and what is kept in memory is one number for each directory that waits.
func removeDir(d dir, name string) error {
	r := remover{parent: d, prefix: trashName + rand.Text() + "-", buffer: make([]byte, direntBuffer)}
	for passes := 0; ; passes++ {
		err := unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR)
		if err == nil || errors.Is(err, unix.ENOENT) {
			if len(r.waiting) == 0 {
				return nil
			}
			last := len(r.waiting) - 1
			name, r.waiting, passes = r.name(r.waiting[last]), r.waiting[:last], 0
			continue
		}
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) || passes >= maxPasses {
			return &os.PathError{Op: "remove directory", Path: name, Err: err}
		}
		if err := r.empty(name); err != nil {
			return err
		}
	}
}

// remover removes one directory with all below it.
type remover struct {
	parent dir
	prefix string
	// made counts the names that were given, waiting are the numbers of directories that are still there.
	made    uint64
	waiting []uint64
	buffer  []byte
}

func (r *remover) name(n uint64) string { return r.prefix + strconv.FormatUint(n, 36) }

// empty deletes the files of a directory and moves its directories up next to it.
func (r *remover) empty(name string) error {
	d, err := openGranted(r.parent, name)
	if err != nil {
		return err
	}
	defer d.close()
	return d.names(r.buffer, func(entry []byte) error { return r.take(d, string(entry)) })
}

func (r *remover) take(d dir, entry string) error {
	err := unix.Unlinkat(d.fd, entry, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return &os.PathError{Op: "remove", Path: entry, Err: err}
	}
	if unix.Unlinkat(d.fd, entry, unix.AT_REMOVEDIR) == nil {
		return nil
	}
	// Moving a directory changes its "..", so it must be writable itself.
	if sub, err := openGranted(d, entry); err == nil {
		sub.close()
	}
	r.made++
	if err := unix.Renameat2(d.fd, entry, r.parent.fd, r.name(r.made), unix.RENAME_NOREPLACE); err != nil {
		return &os.PathError{Op: "remove directory", Path: entry, Err: err}
	}
	r.waiting = append(r.waiting, r.made)
	return nil
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
