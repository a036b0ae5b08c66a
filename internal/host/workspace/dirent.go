// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listing is what one directory holds, in a few pieces of memory that are used again for the next directory: a tree of
// 100,000 files is looked at without an allocation for each.
type listing struct {
	// arena holds the names, each ended by NUL.
	arena   []byte
	entries []listed
	buffer  []byte
	// nodes is where the next state of the directory is put together.
	nodes []node
}

// listed is one name of a directory.
type listed struct {
	// The name is arena[start:end].
	start, end int
	sig        signature
	// err says why it could not be looked at.
	err error
	// class is what is to be done with it.
	class class
}

// direntHeader is the size of what precedes the name in a struct linux_dirent64: inode, offset, length and type.
const direntHeader = 8 + 8 + 2 + 1

// largeListing is how many entries a listing may have and still be kept for the next directory.
const largeListing = 16 << 10

// list reads all names of a directory, sorted, and looks at each. More than limit of them is errTooMany.
func (l *listing) list(d dir, limit int64) error {
	if l.buffer == nil {
		l.buffer = make([]byte, 32<<10)
	}
	l.reset()
	for {
		n, err := unix.Getdents(d.fd, l.buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("read directory: %w", err)
		}
		if n == 0 {
			break
		}
		l.parse(l.buffer[:n])
		if int64(len(l.entries)) > limit {
			return errTooMany
		}
	}
	l.look(d)
	return nil
}

func (l *listing) reset() {
	if cap(l.entries) > largeListing {
		l.arena, l.entries, l.nodes = nil, nil, nil
	}
	clear(l.nodes)
	l.arena, l.entries, l.nodes = l.arena[:0], l.entries[:0], l.nodes[:0]
}

// add appends one name.
func (l *listing) add(name []byte) {
	start := len(l.arena)
	l.arena = append(append(l.arena, name...), 0)
	l.entries = append(l.entries, listed{start: start, end: start + len(name)})
}

func (l *listing) parse(b []byte) {
	for len(b) > direntHeader {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		name := b[direntHeader:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if s := string(name); s != "." && s != ".." {
			l.add(name)
		}
		b = b[size:]
	}
}

// look sorts the names and takes the signature of each.
func (l *listing) look(d dir) {
	slices.SortFunc(l.entries, func(a, b listed) int {
		return bytes.Compare(l.arena[a.start:a.end], l.arena[b.start:b.end])
	})
	for i := range l.entries {
		l.entries[i].sig, l.entries[i].err = l.stat(d, l.entries[i].start)
	}
}

// name is valid until the listing is used again.
func (l *listing) name(e *listed) []byte {
	return l.arena[e.start:e.end]
}

// stat looks at the name that begins at an offset of the arena. The call is made here because unix.Statx would copy each
// name to the heap.
func (l *listing) stat(d dir, start int) (signature, error) {
	var st unix.Statx_t
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(d.fd), uintptr(unsafe.Pointer(&l.arena[start])),
		statFlags, statMask, uintptr(unsafe.Pointer(&st)), 0)
	if errno != 0 {
		return signature{}, errno
	}
	return signatureOf(&st), nil
}
