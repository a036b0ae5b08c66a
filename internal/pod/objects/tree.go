// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Modes of tree entries, as Git stores them.
const (
	ModeTree       uint32 = 0o040000
	ModeFile       uint32 = 0o100644
	ModeExecutable uint32 = 0o100755
	ModeSymlink    uint32 = 0o120000
	ModeGitlink    uint32 = 0o160000
)

// Entry is one name in a tree.
type Entry struct {
	// Name without '/'.
	Name string
	// Tree is set for directories only.
	Tree *Tree
	// Size in bytes of a blob; 0 for others.
	Size int64
	// Mode as Git writes it.
	Mode uint32
	// ID of the blob, subtree or linked commit.
	ID ID
}

// Tree is an immutable directory. Trees share the subtrees that they have in common, so that the trees of the base and of the last capture
// together cost one tree and the differences.
type Tree struct {
	// ID of the tree object.
	ID ID
	// Entries in Git's order: by name, with the name of a directory as if it ended in '/'.
	Entries []Entry
}

// NewTree sorts the entries, names the tree and returns it with its encoded content.
func NewTree(entries []Entry) (*Tree, []byte) {
	slices.SortFunc(entries, compareEntries)
	content := encodeEntries(entries)
	return &Tree{ID: Hash(KindTree, content), Entries: entries}, content
}

func encodeEntries(entries []Entry) []byte {
	size := 0
	for i := range entries {
		size += len(entries[i].Name) + len(ID{}) + 8
	}
	b := make([]byte, 0, size)
	for i := range entries {
		e := &entries[i]
		b = strconv.AppendUint(b, uint64(e.Mode), 8)
		b = append(b, ' ')
		b = append(b, e.Name...)
		b = append(b, 0)
		b = append(b, e.ID[:]...)
	}
	return b
}

// compareEntries is Git's order of names in a tree.
func compareEntries(a, b Entry) int {
	return compareNames(a.Name, a.Mode == ModeTree, b.Name, b.Mode == ModeTree)
}

func compareNames(a string, aDir bool, b string, bDir bool) int {
	n := min(len(a), len(b))
	if c := strings.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	return cmp.Compare(terminator(a, n, aDir), terminator(b, n, bDir))
}

// terminator is the byte at position n of a name that ends in '/' when it is a directory's, else in NUL.
func terminator(name string, n int, dir bool) int {
	switch {
	case n < len(name):
		return int(name[n])
	case dir:
		return '/'
	default:
		return 0
	}
}

// ParseTree reads the content of a tree object, with modes as Git reads them. Subtrees have only their ID.
func ParseTree(content []byte) ([]Entry, error) {
	// A tree may stay in memory for long: it gets no room that append would leave over.
	entries := make([]Entry, 0, countEntries(content))
	for len(content) > 0 {
		space := bytes.IndexByte(content, ' ')
		nul := bytes.IndexByte(content, 0)
		if space < 0 || nul < space || len(content) < nul+1+len(ID{}) {
			return nil, errors.New("tree object is cut short")
		}
		if nul == space+1 {
			return nil, errors.New("tree entry without a name")
		}
		mode, err := strconv.ParseUint(string(content[:space]), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("mode of tree entry: %w", err)
		}
		e := Entry{Name: string(content[space+1 : nul]), Mode: canonical(uint32(mode))}
		copy(e.ID[:], content[nul+1:])
		entries = append(entries, e)
		content = content[nul+1+len(ID{}):]
	}
	return entries, nil
}

// countEntries counts the entries of a tree object, as far as it is whole.
func countEntries(content []byte) (n int) {
	for {
		nul := bytes.IndexByte(content, 0)
		if nul < 0 || len(content) < nul+1+len(ID{}) {
			return n
		}
		n++
		content = content[nul+1+len(ID{}):]
	}
}

// canonical is the mode that Git takes a mode for: old versions wrote others, such as 100664.
func canonical(mode uint32) uint32 {
	const kinds, ownerExecutes = 0o170000, 0o100
	switch mode & kinds {
	case ModeFile & kinds:
		if mode&ownerExecutes != 0 {
			return ModeExecutable
		}
		return ModeFile
	case ModeSymlink:
		return ModeSymlink
	case ModeTree:
		return ModeTree
	default:
		return ModeGitlink
	}
}

// Child finds the entry of this name, file or directory; nil if there is none. A nil tree has no entries.
func (t *Tree) Child(name string) *Entry {
	if t == nil {
		return nil
	}
	for _, dir := range []bool{false, true} {
		i, found := slices.BinarySearchFunc(t.Entries, name, func(e Entry, name string) int {
			return compareNames(e.Name, e.Mode == ModeTree, name, dir)
		})
		if found {
			return &t.Entries[i]
		}
	}
	return nil
}

// Lookup finds the entry at a path with '/' between names; nil if there is none.
func (t *Tree) Lookup(path string) *Entry {
	for {
		name, rest, more := strings.Cut(path, "/")
		e := t.Child(name)
		if e == nil || !more {
			return e
		}
		t, path = e.Tree, rest
	}
}

// Walk visits every entry that is not a directory, in Git's order, until visit returns false.
func (t *Tree) Walk(visit func(path string, e *Entry) bool) bool {
	return t.walk("", visit)
}

func (t *Tree) walk(prefix string, visit func(string, *Entry) bool) bool {
	if t == nil {
		return true
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		path := prefix + e.Name
		if e.Mode == ModeTree {
			if !e.Tree.walk(path+"/", visit) {
				return false
			}
		} else if !visit(path, e) {
			return false
		}
	}
	return true
}

// Share makes a new tree use the subtrees of another one if they are equal, so that two trees take
// little more memory than one. Nobody else may hold the tree yet.
func (t *Tree) Share(with *Tree) {
	for i := range t.Entries {
		e := &t.Entries[i]
		other := with.Child(e.Name)
		switch {
		case e.Mode != ModeTree || other == nil || other.Mode != ModeTree:
		case e.ID == other.ID:
			e.Tree = other.Tree
		default:
			e.Tree.Share(other.Tree)
		}
	}
}

// Kind of object that an entry of this mode names.
func (e *Entry) Kind() Kind {
	switch e.Mode {
	case ModeTree:
		return KindTree
	case ModeGitlink:
		return KindCommit
	default:
		return KindBlob
	}
}
