// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// maxTarget bounds the target of a symbolic link, in bytes: Linux makes none longer.
const maxTarget = 4096

// errMoved says that a file changed while it was read.
var errMoved = errors.New("it changes while it is read")

// errTooLarge says that a file exceeds the read limit and is none that the tree holds.
var errTooLarge = errors.New("too large to be captured")

// content is what was read of one file or link.
type content struct {
	entry objects.Entry
	sig   signature
	// writer says that some process had the file open for writing.
	writer bool
	// uncertain says that leases do not work, so that there may be a writer.
	uncertain bool
}

// reader reads files of the workspace into a pack.
type reader struct {
	root  dir
	pack  *objects.Pack
	limit int64
	tree  *objects.Tree
}

// read reads one path. What it gives was there, whole, at one moment.
func (r reader) read(path string) (content, error) {
	fd, err := r.root.open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return r.readLink(path)
	}
	if err != nil {
		return content{}, err
	}
	f := file(fd, path)
	defer f.Close()
	var c content
	if c.sig, err = fstat(fd); err != nil {
		return content{}, err
	}
	if !c.sig.isRegular() {
		return content{}, errMoved
	}
	// Asked before reading: a writer that comes later changes the ctime, one that is there already need not.
	writer, ok := hasWriter(fd)
	c.writer, c.uncertain = writer, !ok
	c.entry = objects.Entry{Mode: objects.ModeFile, Size: c.sig.size}
	if c.sig.executable() {
		c.entry.Mode = objects.ModeExecutable
	}
	if c.sig.size > r.limit {
		c.entry.ID, err = r.hashHeld(path, f, c.sig.size)
	} else {
		c.entry.ID, err = r.pack.AddBlob(f, c.sig.size)
	}
	if errors.Is(err, objects.ErrShort) {
		return content{}, errMoved
	}
	if err != nil {
		return content{}, err
	}
	return c, unmoved(fd, c.sig)
}

// unmoved makes sure that an open file is still what it was.
func unmoved(fd int, sig signature) error {
	now, err := fstat(fd)
	if err != nil {
		return err
	}
	if now != sig {
		return errMoved
	}
	return nil
}

// readLink reads a symbolic link without following it.
func (r reader) readLink(path string) (content, error) {
	fd, err := r.root.open(path, unix.O_PATH, 0)
	if err != nil {
		return content{}, err
	}
	defer dir{fd}.close()
	var c content
	if c.sig, err = fstat(fd); err != nil {
		return content{}, err
	}
	if !c.sig.isLink() {
		return content{}, errMoved
	}
	target := make([]byte, maxTarget+1)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil {
		return content{}, fmt.Errorf("read link: %w", err)
	}
	if n > maxTarget {
		return content{}, errTooLarge
	}
	c.entry = objects.Entry{Mode: objects.ModeSymlink, Size: int64(n)}
	c.entry.ID, err = r.pack.Add(objects.KindBlob, target[:n:n])
	return c, err
}

// hashHeld names the content of a file that is too large to be captured, provided that the tree holds it already.
func (r reader) hashHeld(path string, f io.Reader, size int64) (objects.ID, error) {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", objects.KindBlob, size)
	n, err := io.Copy(h, f)
	if err != nil {
		return objects.ID{}, err
	}
	if n != size {
		return objects.ID{}, errMoved
	}
	var id objects.ID
	h.Sum(id[:0])
	if e := r.tree.Lookup(path); e == nil || e.ID != id {
		return objects.ID{}, errTooLarge
	}
	return id, nil
}
