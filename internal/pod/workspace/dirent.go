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
	// below are the nodes that are directories to be visited.
	below []int
}

// listed is one name of a directory.
type listed struct {
	// The name is arena[start:end].
	start, end int
	sig        signature
	// held is how many bytes of it the volume has.
	held int64
	// err says why it could not be looked at.
	err error
	// class is what is to be done with it.
	class class
}

// direntHeader is the size of what precedes the name in a struct linux_dirent64: inode, offset, length and type.
const direntHeader = 8 + 8 + 2 + 1

// direntBuffer is how many bytes of a directory are read at once.
const direntBuffer = 32 << 10

// largeListing is how many entries a listing may have and still be kept for the next directory.
const largeListing = 16 << 10

// list reads all names of a directory, sorted, and looks at each. More than limit of them is errTooMany.
func (l *listing) list(d dir, limit int64) error {
	l.reset()
	err := d.names(l.room(), func(name []byte) error {
		l.add(name)
		if int64(len(l.entries)) > limit {
			return errTooMany
		}
		return nil
	})
	if err == nil {
		l.look(d)
	}
	return err
}

// room is where a directory is read into.
func (l *listing) room() []byte {
	if l.buffer == nil {
		l.buffer = make([]byte, direntBuffer)
	}
	return l.buffer
}

// names visits every name of a directory but "." and "..", in the order that the file system has them. A name is valid
// during its visit only; the byte after it is NUL.
func (d dir) names(buffer []byte, visit func(name []byte) error) error {
	if _, err := unix.Seek(d.fd, 0, unix.SEEK_SET); err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	for {
		n, err := unix.Getdents(d.fd, buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("read directory: %w", err)
		}
		if n == 0 {
			return nil
		}
		if err := parseNames(buffer[:n], visit); err != nil {
			return err
		}
	}
}

func parseNames(b []byte, visit func(name []byte) error) error {
	for len(b) > direntHeader {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		name := b[direntHeader:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if s := string(name); s != "." && s != ".." {
			if err := visit(name); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}

func (l *listing) reset() {
	if cap(l.entries) > largeListing {
		l.arena, l.entries, l.nodes, l.below = nil, nil, nil, nil
	}
	clear(l.nodes)
	l.arena, l.entries, l.nodes, l.below = l.arena[:0], l.entries[:0], l.nodes[:0], l.below[:0]
}

// add appends one name.
func (l *listing) add(name []byte) {
	start := len(l.arena)
	l.arena = append(append(l.arena, name...), 0)
	l.entries = append(l.entries, listed{start: start, end: start + len(name)})
}

// look sorts the names and takes the signature of each.
func (l *listing) look(d dir) {
	slices.SortFunc(l.entries, func(a, b listed) int {
		return bytes.Compare(l.arena[a.start:a.end], l.arena[b.start:b.end])
	})
	for i := range l.entries {
		e := &l.entries[i]
		e.sig, e.held, e.err = statName(d, &l.arena[e.start])
	}
}

// name is valid until the listing is used again.
func (l *listing) name(e *listed) []byte {
	return l.arena[e.start:e.end]
}

// statName looks at a name that ends in NUL. The call is made here because unix.Statx would copy each name to the heap. Held
// is how many bytes the volume has for it: a file with holes is larger than that.
func statName(d dir, name *byte) (sig signature, held int64, err error) {
	var st unix.Statx_t
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(d.fd), uintptr(unsafe.Pointer(name)),
		statFlags, statMask, uintptr(unsafe.Pointer(&st)), 0)
	if errno != 0 {
		return signature{}, 0, errno
	}
	sig = signatureOf(&st)
	return sig, min(sig.size, int64(st.Blocks)*blockSize), nil
}

// blockSize is the unit that stat counts blocks in, whatever a file system uses itself.
const blockSize = 512
