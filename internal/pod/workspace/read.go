// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxTarget bounds the target of a symbolic link, in bytes: Linux makes none longer.
const maxTarget = 4096

var (
	// errMoved says that a file changed while it was read.
	errMoved = errors.New("it changes while it is read")
	// errTooLarge says that a file exceeds the read limit and is none that the tree holds.
	errTooLarge = errors.New("too large to be captured")
	// errLarge says that a file is to be streamed.
	errLarge = errors.New("larger than what is read at once")
	// errSame says that a file is as it was when it was captured.
	errSame = errors.New("not changed")
	// errElse says that a path is no longer the file that it was.
	errElse = errors.New("no longer that file")
)

// content is what was read of one file or link.
type content struct {
	entry objects.Entry
	sig   signature
	// writer says that some process had the file open for writing.
	writer bool
	// uncertain says that leases do not work, so that there may be a writer.
	uncertain bool
}

// reader reads files of the workspace. What it gives was there, whole, at one moment.
type reader struct {
	root  dir
	pack  *objects.Pack
	limit int64
	tree  *objects.Tree
	// frozen says that no file gets or loses a writer meanwhile: one that had one when last read has it still.
	frozen bool
}

// fetch reads one small file or link into memory; errLarge says that it is larger. It may be called concurrently.
func (r reader) fetch(to *reading) {
	r.try(to, r.fetchOnce)
}

// stream reads one file of any size into the pack.
func (r reader) stream(to *reading) {
	r.try(to, r.streamOnce)
}

func (r reader) try(to *reading, read func(*reading) error) {
	for range readTries {
		to.clock = coarseClock()
		if to.err = read(to); !errors.Is(to.err, errMoved) {
			return
		}
	}
}

func (r reader) fetchOnce(to *reading) error {
	fd, err := r.root.open(to.path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil && to.captured {
		return errElse
	}
	if errors.Is(err, unix.ELOOP) {
		return r.fetchLink(to)
	}
	if err != nil {
		return err
	}
	defer dir{fd}.close()
	if err := r.begin(to, fd); err != nil {
		return err
	}
	size := to.content.sig.size
	if size > maxGathered || size > r.limit {
		return errLarge
	}
	if to.data, err = readExactly(fd, size); err != nil {
		return err
	}
	to.content.entry.ID = objects.Hash(objects.KindBlob, to.data)
	// A file that has grown has another size now.
	return unmoved(fd, to.content.sig)
}

// begin looks at an open file before it is read.
func (r reader) begin(to *reading, fd int) error {
	c := &to.content
	var err error
	if c.sig, err = fstat(fd); err != nil {
		return err
	}
	switch {
	case !c.sig.isRegular() && to.captured:
		return errElse
	case !c.sig.isRegular():
		return errMoved
	case to.captured && c.sig == to.old.sig && to.old.mark&again == 0:
		return errSame
	}
	if r.frozen && to.captured && to.old.mark&hot != 0 {
		c.writer = true
	} else {
		// Asked before reading: a writer that comes later changes the ctime, one that is there already need not.
		writer, ok := hasWriter(fd)
		c.writer, c.uncertain = writer, !ok
	}
	c.entry = objects.Entry{Mode: objects.ModeFile, Size: c.sig.size}
	if c.sig.executable() {
		c.entry.Mode = objects.ModeExecutable
	}
	return nil
}

// readExactly reads the given number of bytes; fewer say that the file was cut meanwhile.
func readExactly(fd int, size int64) ([]byte, error) {
	b := make([]byte, size)
	for have := 0; have < len(b); {
		n, err := unix.Read(fd, b[have:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, fmt.Errorf("read file: %w", err)
		case n == 0:
			return nil, errMoved
		default:
			have += n
		}
	}
	return b, nil
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

// fetchLink reads a symbolic link without following it.
func (r reader) fetchLink(to *reading) error {
	fd, err := r.root.open(to.path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer dir{fd}.close()
	c := &to.content
	if c.sig, err = fstat(fd); err != nil {
		return err
	}
	if !c.sig.isLink() {
		return errMoved
	}
	target := make([]byte, maxTarget+1)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil {
		return fmt.Errorf("read link: %w", err)
	}
	if n > maxTarget {
		return errTooLarge
	}
	to.data = bytes.Clone(target[:n]) // of its own size: it is kept for a while
	c.entry = objects.Entry{Mode: objects.ModeSymlink, Size: int64(n), ID: objects.Hash(objects.KindBlob, to.data)}
	return nil
}

func (r reader) streamOnce(to *reading) error {
	fd, err := r.root.open(to.path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return errMoved
	}
	if err != nil {
		return err
	}
	f := file(fd, to.path)
	defer f.Close()
	if err := r.begin(to, fd); err != nil {
		return err
	}
	c := &to.content
	if c.sig.size > r.limit {
		c.entry.ID, err = r.hashHeld(to.path, f, c.sig.size)
	} else {
		c.entry.ID, err = r.pack.AddBlob(f, c.sig.size)
	}
	if errors.Is(err, objects.ErrShort) {
		return errMoved
	}
	if err != nil {
		return err
	}
	return unmoved(fd, c.sig)
}

// hashHeld names the content of a file that is too large to be captured, provided that the tree holds it already.
func (r reader) hashHeld(path string, f io.Reader, size int64) (objects.ID, error) {
	id, err := hashExactly(f, size)
	if err != nil {
		return objects.ID{}, err
	}
	if e := r.tree.Lookup(path); e == nil || e.ID != id {
		return objects.ID{}, errTooLarge
	}
	return id, nil
}

// hashExactly names the content of a file of this size without keeping it.
func hashExactly(f io.Reader, size int64) (id objects.ID, err error) {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", objects.KindBlob, size)
	n, err := io.Copy(h, f)
	if err != nil {
		return id, err
	}
	if n != size {
		return id, errMoved
	}
	h.Sum(id[:0])
	return id, nil
}

// measure hashes one file of any size and keeps nothing of it.
func (r reader) measure(to *reading) {
	r.try(to, func(to *reading) error {
		fd, err := r.root.open(to.path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		f := file(fd, to.path)
		defer f.Close()
		if err := r.begin(to, fd); err != nil {
			return err
		}
		if to.content.entry.ID, err = hashExactly(f, to.content.sig.size); err != nil {
			return err
		}
		return unmoved(fd, to.content.sig)
	})
}
