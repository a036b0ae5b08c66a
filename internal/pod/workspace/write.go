// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const (
	// writeWindow is how many entries a writer takes at once. They are read from the repository together.
	writeWindow = 500
	// maxHeld is the largest content that is read into memory, in bytes; larger ones are copied.
	maxHeld = 1 << 20
	// maxWriters is how many write at once. Each has a git process of its own to read from.
	maxWriters = 4
)

// placing is one entry of a tree that is put into the workspace.
type placing struct {
	path  string
	entry *objects.Entry
	// fresh says that there was nothing of that name.
	fresh bool
	// sig is what the file is after it was written.
	sig signature
}

// writeAll puts everything that is missing into the workspace, and takes note of it: what was written needs no reading,
// because its bytes were hashed on their way, and the signature tells any later change.
func (r *restorer) writeAll() error {
	if len(r.todo) == 0 {
		return nil
	}
	if err := r.makeDirs(); err != nil {
		return err
	}
	writers := min(runtime.GOMAXPROCS(0), maxWriters, 1+len(r.todo)/writeWindow)
	var next atomic.Int64
	var group sync.WaitGroup
	failures := make([]error, writers)
	ctx, cancel := context.WithCancel(r.capture.ctx)
	defer cancel()
	for i := range writers {
		group.Go(func() {
			if failures[i] = r.writeSome(ctx, &next, i == 0); failures[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil && !errors.Is(err, context.Canceled) || err != nil && r.capture.ctx.Err() != nil {
			return err
		}
	}
	return r.adoptWritten()
}

// makeDirs makes the directories that entries go into, and directories for linked commits, one after the other: what
// is in their way is removed, and no two shall do that at once.
func (r *restorer) makeDirs() error {
	l := ladder{root: r.capture.engine.root, open: func(parent dir, name string) (dir, error) {
		if err := makeDir(parent, name); err != nil {
			return noDir, err
		}
		return openGranted(parent, name)
	}}
	defer l.close()
	for i := range r.todo {
		p := &r.todo[i]
		d, name, err := l.to(p.path)
		if err == nil && p.entry.Mode == objects.ModeGitlink {
			err = makeDir(d, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", strconv.QuoteToASCII(p.path), err)
		}
	}
	return nil
}

// writeSome writes windows of entries until there are none left.
func (r *restorer) writeSome(ctx context.Context, next *atomic.Int64, first bool) error {
	repository := r.capture.engine.options.Repository
	from := repository.Objects()
	if !first {
		from = repository.MoreObjects()
		defer func() { _ = from.Close() }()
	}
	w := writer{ladder: ladder{root: r.capture.engine.root, open: dir.sub}, from: from, hasher: sha1.New()}
	defer w.close()
	for {
		begin := int(next.Add(writeWindow)) - writeWindow
		if begin >= len(r.todo) {
			return nil
		}
		if err := w.window(ctx, r.todo[begin:min(begin+writeWindow, len(r.todo))]); err != nil {
			return err
		}
	}
}

// adoptWritten makes what was written known. It waits until a later change bears a later time, which is some milliseconds.
func (r *restorer) adoptWritten() error {
	c := r.capture
	latest := int64(0)
	for i := range r.todo {
		latest = max(latest, r.todo[i].sig.ctime)
	}
	for tries := 0; coarseClock() <= latest && tries < 50; tries++ {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		time.Sleep(time.Millisecond)
	}
	racing := coarseClock() <= latest // the volume has a clock of its own
	for i := range r.todo {
		p := &r.todo[i]
		r.written++
		if p.entry.Mode == objects.ModeGitlink {
			c.known = c.known.set(c.owner, p.path, &node{sub: &folder{owner: c.owner}, sig: signature{mode: unix.S_IFDIR}})
			continue
		}
		n := node{sig: p.sig}
		if racing {
			n.mark = racy
		}
		c.settleEntry(p.path, p.entry, n)
	}
	r.todo = r.todo[:0]
	return nil
}

// writer writes entries of a tree, one directory after the other.
type writer struct {
	ladder
	from   *git.Objects
	hasher hash.Hash
}

// window writes some entries: small ones as they come from git, large ones one by one.
func (w *writer) window(ctx context.Context, list []placing) error {
	var ids []objects.ID
	var small []*placing
	for i := range list {
		switch p := &list[i]; {
		case p.entry.Mode == objects.ModeGitlink:
		case p.entry.Size > maxHeld:
			err := w.put(p, func(fd int) error { return w.copy(ctx, p, fd) })
			if err != nil {
				return err
			}
		default:
			ids, small = append(ids, p.entry.ID), append(small, p)
		}
	}
	var failure error
	err := w.from.ReadAll(ctx, ids, maxHeld, func(i int, content []byte, err error) {
		if failure != nil {
			return
		}
		if err == nil {
			err = w.check(small[i], content)
		}
		if err == nil {
			err = w.put(small[i], func(fd int) error { return writeExactly(fd, content) }, content...)
		}
		failure = err
	})
	if failure != nil {
		return failure
	}
	return err
}

// check makes sure that the repository gave the right content: nothing reads the file again.
func (w *writer) check(p *placing, content []byte) error {
	if objects.Hash(objects.KindBlob, content) != p.entry.ID {
		return fmt.Errorf("%w: object %s is not what its name says", git.ErrCorrupt, p.entry.ID)
	}
	return nil
}

func (w *writer) copy(ctx context.Context, p *placing, fd int) error {
	w.hasher.Reset()
	fmt.Fprintf(w.hasher, "%s %d\x00", objects.KindBlob, p.entry.Size)
	err := w.from.Copy(ctx, p.entry.ID, writes(func(b []byte) error {
		w.hasher.Write(b)
		return writeExactly(fd, b)
	}))
	if err != nil {
		return err
	}
	var id objects.ID
	if w.hasher.Sum(id[:0]); id != p.entry.ID {
		return fmt.Errorf("%w: object %s is not what its name says", git.ErrCorrupt, p.entry.ID)
	}
	return nil
}

// writes is an io.Writer.
type writes func([]byte) error

// Write implements io.Writer.
func (w writes) Write(b []byte) (int, error) {
	if err := w(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func writeExactly(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil && err != unix.EINTR {
			return os.NewSyscallError("write", err)
		}
		b = b[max(n, 0):]
	}
	return nil
}

// put writes one file or link. What replaces something is written by way of a temporary name, so that it is there whole or
// not at all. Target is a link's.
func (w *writer) put(p *placing, content func(fd int) error, target ...byte) error {
	d, name, err := w.to(p.path)
	if err == nil && p.entry.Mode == objects.ModeSymlink {
		err = putLink(d, name, string(target), p)
	} else if err == nil {
		err = putFile(d, name, content, p)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strconv.QuoteToASCII(p.path), err)
	}
	return nil
}

func putLink(d dir, name, target string, p *placing) (err error) {
	tmp := temporary()
	if err := unix.Symlinkat(target, d.fd, tmp); err != nil {
		return wrapPath("make link", name, err)
	}
	if err := moveInto(d, tmp, name); err != nil {
		return err
	}
	p.sig, err = d.stat(name)
	return err
}

func putFile(d dir, name string, content func(fd int) error, p *placing) error {
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY
	mode := uint32(0o644)
	if p.entry.Mode == objects.ModeExecutable {
		mode = 0o755
	}
	tmp := name
	fd, err := -1, error(unix.EEXIST)
	if p.fresh {
		fd, err = d.open(tmp, flags, mode)
	}
	if errors.Is(err, unix.EEXIST) {
		tmp = temporary()
		fd, err = d.open(tmp, flags, mode)
	}
	if err != nil {
		return err
	}
	err = content(fd)
	if err == nil {
		err = setMode(fd, mode)
	}
	if err != nil {
		return errors.Join(err, unix.Close(fd), unix.Unlinkat(d.fd, tmp, 0))
	}
	if tmp != name {
		err = moveInto(d, tmp, name)
	}
	if err == nil {
		p.sig, err = fstat(fd)
	}
	return errors.Join(err, unix.Close(fd))
}

// setMode makes sure that the process's umask has not decided whether a file is executable.
func setMode(fd int, mode uint32) error {
	sig, err := fstat(fd)
	if err != nil || uint32(sig.mode)&0o777 == mode {
		return err
	}
	return os.NewSyscallError("fchmod", unix.Fchmod(fd, mode))
}
