// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// beneath is how every path of the workspace is resolved: below the root, through directories only. A link, a magic link
// or a mount on the way is an error, whatever the agent swaps while the kernel walks.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// dir is an open directory of the workspace.
type dir struct {
	fd int
}

// noDir means no open directory.
var noDir = dir{fd: -1}

// openRoot opens the workspace's root, whose own path is trusted.
func openRoot(path string) (dir, error) {
	const flags = unix.O_DIRECTORY | unix.O_RDONLY | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, 0)
	if err == unix.EACCES && os.Chmod(path, 0o700) == nil {
		// The agent took the permission away; it is the same user's to give back.
		fd, err = unix.Open(path, flags, 0)
	}
	if err != nil {
		return noDir, &os.PathError{Op: "open workspace", Path: path, Err: err}
	}
	return dir{fd}, nil
}

func (d dir) close() {
	if d == noDir {
		return
	}
	// Nothing is written through a directory's descriptor, so there is nothing to lose.
	_ = unix.Close(d.fd)
}

// open opens a path beneath the directory. EAGAIN says that something was renamed while the kernel looked; it is tried
// again a few times.
func (d dir) open(path string, flags uint64, mode uint32) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Mode: uint64(mode), Resolve: beneath}
	const tries = 8
	for try := 1; ; try++ {
		fd, err := unix.Openat2(d.fd, path, &how)
		if err == nil {
			return fd, nil
		}
		// A lease of the agent makes a non-blocking open fail with EAGAIN as well: not worth more tries than a rename.
		if (err == unix.EAGAIN || err == unix.EINTR) && try < tries {
			continue
		}
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
}

// sub opens a directory beneath this one.
func (d dir) sub(path string) (dir, error) {
	fd, err := d.open(path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NONBLOCK, 0)
	return dir{fd}, err
}

// stat looks at a name without following it.
func (d dir) stat(name string) (signature, error) {
	var st unix.Statx_t
	err := unix.Statx(d.fd, name, statFlags, statMask, &st)
	if err != nil {
		return signature{}, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return signatureOf(&st), nil
}

// fstat looks at an open file.
func fstat(fd int) (signature, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|statFlags, statMask, &st); err != nil {
		return signature{}, fmt.Errorf("stat open file: %w", err)
	}
	return signatureOf(&st), nil
}

// file wraps a descriptor that will be read or written.
func file(fd int, path string) *os.File {
	return os.NewFile(uintptr(fd), path)
}

// vanished tells whether an error says that the path is not there (any more), or that something on the way is no longer a directory.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// hasWriter tells whether some process has the file open for writing, or mapped so. It does so by asking for a read
// lease, which the kernel grants only when there is none; ok is false where leases do not work.
func hasWriter(fd int) (writer, ok bool) {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	switch err {
	case nil:
		// The lease is given back at once, so that nobody waits for it.
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return false, err == nil
	case unix.EAGAIN:
		return true, true
	default:
		return false, false
	}
}
