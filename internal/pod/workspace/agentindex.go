// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxIndexName is the longest name whose length an index entry can hold; longer ones say so much.
const maxIndexName = 0xfff

// agentIndex is what a Git index is made of: the workspace as the last capture knew it.
type agentIndex struct {
	root  dir
	known *folder
	tree  *objects.Tree
}

// of makes a Git index (version 2) of a tree, with the stat data of the files that are in the workspace now: git status then
// needs to read none of them, and attributes of the base (line endings, filters) make no file look changed.
func (x agentIndex) of(tree *objects.Tree) []byte {
	type file struct {
		path  string
		entry *objects.Entry
	}
	var files []file
	tree.Walk(func(path string, entry *objects.Entry) bool {
		files = append(files, file{path, entry})
		return true
	})
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	b := []byte("DIRC")
	b = binary.BigEndian.AppendUint32(b, 2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(files)))
	for _, f := range files {
		start := len(b)
		b = x.appendStat(b, f.path, f.entry)
		b = append(b, f.entry.ID[:]...)
		b = binary.BigEndian.AppendUint16(b, uint16(min(len(f.path), maxIndexName)))
		b = append(b, f.path...)
		// One to eight NUL bytes make the entry a multiple of eight long.
		b = append(b, make([]byte, 8-(len(b)-start)%8)...)
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

// appendStat writes the stat data of one entry. If the workspace may not hold the entry, it writes zeros, which
// make git look for itself.
func (x agentIndex) appendStat(b []byte, path string, entry *objects.Entry) []byte {
	var st unix.Stat_t
	if x.holds(path, entry) {
		if fd, err := x.root.open(path, unix.O_PATH, 0); err == nil {
			if unix.Fstat(fd, &st) != nil {
				st = unix.Stat_t{}
			}
			dir{fd}.close()
		}
	}
	for _, v := range []uint32{
		uint32(st.Ctim.Sec), uint32(st.Ctim.Nsec), uint32(st.Mtim.Sec), uint32(st.Mtim.Nsec),
		uint32(st.Dev), uint32(st.Ino), entry.Mode, st.Uid, st.Gid, uint32(st.Size),
	} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// holds tells whether the last capture read this entry at the path.
func (x agentIndex) holds(path string, entry *objects.Entry) bool {
	n := x.known.lookup(path)
	if n == nil || n.sub != nil || n.mark&(unread|outside|ignored|denied) != 0 {
		return false
	}
	have := x.tree.Lookup(path)
	return have != nil && have.ID == entry.ID && have.Mode == entry.Mode
}
