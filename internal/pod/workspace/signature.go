// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	statFlags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	statMask  = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_INO | unix.STATX_SIZE |
		unix.STATX_BLOCKS | unix.STATX_MTIME | unix.STATX_CTIME
)

// signature tells two states of a file apart without reading it. ctime cannot be set by the agent; the others catch what
// a coarse clock does not.
type signature struct {
	inode uint64
	size  int64
	// Nanoseconds since 1970.
	mtime int64
	ctime int64
	mode  uint16
	// links is the count of names, capped.
	links uint16
}

func signatureOf(st *unix.Statx_t) signature {
	return signature{
		inode: st.Ino,
		size:  int64(st.Size),
		mtime: st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec),
		ctime: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec),
		mode:  st.Mode,
		links: uint16(min(st.Nlink, 1<<15)),
	}
}

func (s signature) kind() uint16     { return s.mode & unix.S_IFMT }
func (s signature) isDir() bool      { return s.kind() == unix.S_IFDIR }
func (s signature) isRegular() bool  { return s.kind() == unix.S_IFREG }
func (s signature) isLink() bool     { return s.kind() == unix.S_IFLNK }
func (s signature) executable() bool { return s.mode&0o100 != 0 }

// mark says what is known of a name in addition to its signature.
type mark uint8

const (
	// hot: the file had a live writer when it was read; a shared mapping writes without any sign, so read it again.
	hot mark = 1 << iota
	// racy: the file changed so shortly before it was read that a later change could bear the same ctime.
	racy
	// linked: the inode has other names, through which it changes without an event here.
	linked
	// ignored by the base's rules: counted, never captured.
	ignored
	// outside: cannot be in a tree; each scan reports found again.
	outside
	// unread: not captured yet, or reading it failed; captured at the next occasion.
	unread
	// denied: the agent's permissions, or its depth, keep a file or a directory from being read. What was captured of it
	// before stays in the tree; found is reported until it can be read.
	denied
)

// again are the marks that call for reading whatever the signature says.
const again = hot | racy | unread | denied

// node is one name of the workspace as it was when last looked at.
type node struct {
	name string
	sub  *folder
	sig  signature
	mark mark
}

// folder is a directory: names sorted as bytes. Folders of one capture may be shared with the previous capture's;
// only the one named by owner may change a folder in place.
type folder struct {
	nodes []node
	owner *owner
}

// owner identifies a capture in progress.
type owner struct{ _ byte }

func compareNodes(a, b node) int { return strings.Compare(a.name, b.name) }

// find gives the index of a name, and whether it is there.
func (f *folder) find(name string) (int, bool) {
	if f == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(f.nodes, name, func(n node, name string) int { return strings.Compare(n.name, name) })
}

// lookup gives the node at a path; nil if there is none.
func (f *folder) lookup(path string) *node {
	for {
		name, rest, more := strings.Cut(path, "/")
		i, found := f.find(name)
		if !found {
			return nil
		}
		n := &f.nodes[i]
		if !more {
			return n
		}
		f, path = n.sub, rest
	}
}

// set puts a node at a path (or takes it away) and gives the folder that is then the root: the same one where owner may
// change it, else a copy of the folders on the way.
func (f *folder) set(o *owner, path string, n *node) *folder {
	name, rest, more := strings.Cut(path, "/")
	i, found := f.find(name)
	switch {
	case more:
		var sub *folder
		if found {
			sub = f.nodes[i].sub
		}
		changed := sub.set(o, rest, n)
		if changed == sub && found {
			return f
		}
		if changed == nil {
			return f
		}
		below := node{name: name, sub: changed, sig: signature{mode: unix.S_IFDIR}}
		if found {
			below.mark = f.nodes[i].mark & denied
		}
		return f.put(o, i, found, below)
	case n == nil && !found:
		return f
	case n == nil:
		own := f.own(o)
		own.nodes = slices.Delete(own.nodes, i, i+1)
		return own
	default:
		put := *n
		put.name = name
		if found {
			// Keep the string that is there: equal names share memory.
			put.name = f.nodes[i].name
		}
		return f.put(o, i, found, put)
	}
}

// replace puts a folder at a path; "" is the root.
func (f *folder) replace(o *owner, path string, sub *folder) *folder {
	if path == "" {
		return sub
	}
	return f.set(o, path, &node{sub: sub, sig: signature{mode: unix.S_IFDIR}})
}

func (f *folder) put(o *owner, i int, found bool, n node) *folder {
	own := f.own(o)
	if found {
		own.nodes[i] = n
	} else {
		own.nodes = slices.Insert(own.nodes, i, n)
	}
	return own
}

// own gives a folder that owner may change.
func (f *folder) own(o *owner) *folder {
	if f == nil {
		return &folder{owner: o}
	}
	if f.owner == o {
		return f
	}
	return &folder{nodes: slices.Clone(f.nodes), owner: o}
}

// distrusted gives a folder in which every file that is captured, however far below, is to be read again.
func (f *folder) distrusted(o *owner) *folder {
	own := f.own(o)
	for i := range own.nodes {
		own.nodes[i] = *own.nodes[i].distrusted(o)
	}
	return own
}

// distrusted gives a name of which everything that is captured is to be read again.
func (n *node) distrusted(o *owner) *node {
	distrusted := *n
	switch {
	case n.sub != nil:
		distrusted.sub = n.sub.distrusted(o)
	case n.mark&(ignored|outside) == 0:
		distrusted.mark |= unread
	}
	return &distrusted
}

// walk visits every name that is not a directory.
func (f *folder) walk(prefix string, visit func(path string, n *node)) {
	f.marked(prefix, 0, visit)
}

// marked visits the names that bear one of the marks; no marks visit all that are not directories.
func (f *folder) marked(prefix string, marks mark, visit func(path string, n *node)) {
	if f == nil {
		return
	}
	for i := range f.nodes {
		switch n := &f.nodes[i]; {
		case n.sub != nil:
			if n.mark&marks != 0 {
				visit(prefix+n.name, n)
			}
			n.sub.marked(prefix+n.name+"/", marks, visit)
		case marks == 0 || n.mark&marks != 0:
			visit(prefix+n.name, n)
		}
	}
}
