// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// write puts one entry of a tree into the workspace, by way of a temporary name, so that a file is there whole or not
// at all. Directories on the way are made; what stands in their way is removed.
func (r *restorer) write(root dir, path string, e *objects.Entry) error {
	err := r.writeEntry(root, path, e)
	if err != nil {
		return fmt.Errorf("%s: %w", strconv.QuoteToASCII(path), err)
	}
	r.written++
	return nil
}

func (r *restorer) writeEntry(root dir, path string, e *objects.Entry) error {
	d, name, err := makeParents(root, path)
	if err != nil {
		return err
	}
	defer d.close()
	switch e.Mode {
	case objects.ModeGitlink:
		return makeDir(d, name)
	case objects.ModeSymlink:
		return r.writeLink(d, name, e)
	default:
		return r.writeFile(d, name, e)
	}
}

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

func (r *restorer) writeFile(d dir, name string, e *objects.Entry) error {
	mode := uint32(0o644)
	if e.Mode == objects.ModeExecutable {
		mode = 0o755
	}
	tmp := temporary()
	fd, err := d.open(tmp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, mode)
	if err != nil {
		return err
	}
	f := file(fd, name)
	a := r.attempt
	err = a.engine.options.Repository.Objects().Copy(a.ctx, e.ID, f)
	// The process's umask must not decide whether a file is executable.
	if err = errors.Join(err, f.Chmod(os.FileMode(mode)), f.Close()); err != nil {
		return errors.Join(err, unix.Unlinkat(d.fd, tmp, 0))
	}
	return moveInto(d, tmp, name)
}

func (r *restorer) writeLink(d dir, name string, e *objects.Entry) error {
	a := r.attempt
	_, target, err := a.engine.options.Repository.Objects().Read(a.ctx, e.ID, maxTarget)
	if err != nil {
		return err
	}
	tmp := temporary()
	if err := unix.Symlinkat(string(target), d.fd, tmp); err != nil {
		return wrapPath("make link", name, err)
	}
	return moveInto(d, tmp, name)
}

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
