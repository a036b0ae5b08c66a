// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// UnfitError says why a path of the workspace is not a file that can be read. What is at the path is the fault of who wrote it.
type UnfitError struct{ Reason string }

// Error is the end of a sentence that begins with the path.
func (e *UnfitError) Error() string { return e.Reason }

// unfits are errors of the kernel for paths that are as somebody made them.
var unfits = []struct {
	err    error
	reason string
}{
	{unix.ENOENT, "it is not there"},
	{unix.ENOTDIR, "a part of its path is not a directory"},
	{unix.ELOOP, "a symbolic link is in its path"},
	{unix.EXDEV, "its path leaves the volume of the workspace"},
	{unix.EACCES, "its permissions do not let anybody read it"},
	{unix.ENXIO, "it is not a regular file"},
	{unix.ENAMETOOLONG, "its path is too long"},
}

// unfit turns an error of the kernel into an UnfitError if it is one.
func unfit(err error) error {
	for _, u := range unfits {
		if errors.Is(err, u.err) {
			return &UnfitError{u.reason}
		}
	}
	return err
}

// ReadFile reads a regular file below the root, through directories only, of at most the given number of bytes. No process of the container may
// run. The error is an UnfitError if there is no such file.
func (e *Engine) ReadFile(name string, limit int64) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	fd, err := e.root.open(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, unfit(err)
	}
	defer dir{fd}.close()
	sig, err := fstat(fd)
	switch {
	case err != nil:
		return nil, err
	case !sig.isRegular():
		return nil, &UnfitError{"it is not a regular file"}
	case sig.size > limit:
		return nil, &UnfitError{fmt.Sprintf("it has more than %d bytes", limit)}
	}
	return readExactly(fd, sig.size)
}

// RemoveFile removes what is at a path below the root, unless it is a directory or not reachable through directories.
func (e *Engine) RemoveFile(name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	parent, err := e.root.sub(path.Dir(name))
	if _, is := errors.AsType[*UnfitError](unfit(err)); is {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.close()
	err = unix.Unlinkat(parent.fd, path.Base(name), 0)
	if errors.Is(err, unix.EACCES) && grant(parent) == nil {
		err = unix.Unlinkat(parent.fd, path.Base(name), 0)
	}
	if err == nil || slices.ContainsFunc([]error{unix.ENOENT, unix.EISDIR, unix.EPERM}, func(e error) bool { return errors.Is(err, e) }) {
		return nil
	}
	return &os.PathError{Op: "remove", Path: name, Err: err}
}
