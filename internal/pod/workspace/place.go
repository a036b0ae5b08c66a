// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// makeParents opens the directory that a path belongs into, and gives the last name of the path.
func makeParents(root dir, path string) (dir, string, error) {
	d, err := root.sub(".")
	if err != nil {
		return noDir, "", err
	}
	for {
		name, rest, more := strings.Cut(path, "/")
		if !more {
			return d, name, nil
		}
		below := noDir
		if err = makeDir(d, name); err == nil {
			below, err = openGranted(d, name)
		}
		d.close()
		if err != nil {
			return noDir, "", err
		}
		d, path = below, rest
	}
}

// makeDir makes a directory unless there is one; something else of that name is removed.
func makeDir(d dir, name string) error {
	err := unix.Mkdirat(d.fd, name, 0o755)
	if !errors.Is(err, unix.EEXIST) {
		return wrapPath("make directory", name, err)
	}
	sig, err := d.stat(name)
	if err != nil || sig.isDir() {
		return err
	}
	if err := remove(d, name); err != nil {
		return err
	}
	return wrapPath("make directory", name, unix.Mkdirat(d.fd, name, 0o755))
}

func wrapPath(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

// temporary is a name that nobody expects.
func temporary() string { return ".tidewaiter-" + rand.Text() }

// moveInto gives a temporary file its name; a directory of that name is removed first.
func moveInto(d dir, tmp, name string) error {
	err := unix.Renameat(d.fd, tmp, d.fd, name)
	if err == unix.EISDIR || err == unix.ENOTEMPTY || err == unix.EEXIST {
		if err := remove(d, name); err != nil {
			return errors.Join(err, unix.Unlinkat(d.fd, tmp, 0))
		}
		err = unix.Renameat(d.fd, tmp, d.fd, name)
	}
	if err != nil {
		return errors.Join(wrapPath("place", name, err), unix.Unlinkat(d.fd, tmp, 0))
	}
	return nil
}
