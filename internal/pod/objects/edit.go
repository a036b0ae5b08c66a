// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"strings"
)

// Edit sets or removes one path of a tree.
type Edit struct {
	// Path with '/' between names.
	Path string
	// Entry to put there; its Name is taken from Path. A nil Entry removes the path, and with it a whole directory.
	Entry *Entry
}

// Apply returns the tree with the edits made; emit is given every tree object that is new, children first. Only the
// directories that an edit changes are made again, with the modes that Git writes; directories left empty vanish. Where two edits name one path the
// later wins; a removal of a directory is made before edits beneath it. Edits are reordered in place.
func (t *Tree) Apply(edits []Edit, emit func(id ID, content []byte) error) (*Tree, error) {
	slices.SortStableFunc(edits, func(a, b Edit) int { return comparePaths(a.Path, b.Path) })
	root, err := apply(t, edits, 0, emit)
	if err != nil {
		return nil, err
	}
	if root == nil {
		root = &Tree{ID: EmptyTree}
		err = emit(root.ID, nil)
	}
	return root, err
}

// comparePaths sorts by components, so that all paths of one directory stand together, the directory itself first.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return pathByte(a[i]) - pathByte(b[i])
		}
	}
	return len(a) - len(b)
}

// pathByte orders '/' before every other byte; NUL cannot occur in a path.
func pathByte(c byte) int {
	if c == '/' {
		return 0
	}
	return int(c)
}

// apply makes the edits of one directory, whose path is skip bytes long with its '/'. Nil is an empty directory.
func apply(t *Tree, edits []Edit, skip int, emit func(ID, []byte) error) (*Tree, error) {
	changed := make(map[string]*Entry, 1)
	for len(edits) > 0 {
		name, _, _ := strings.Cut(edits[0].Path[skip:], "/")
		n := 1
		for n < len(edits) && sameName(edits[n].Path[skip:], name) {
			n++
		}
		e, err := applyChild(t.Child(name), name, edits[:n], skip+len(name), emit)
		if err != nil {
			return nil, err
		}
		changed[name] = e
		edits = edits[n:]
	}
	var entries []Entry
	if t != nil {
		entries = make([]Entry, 0, len(t.Entries)+len(changed))
		for i := range t.Entries {
			if _, found := changed[t.Entries[i].Name]; !found {
				entries = append(entries, t.Entries[i])
			}
		}
	}
	for _, e := range changed {
		if e != nil {
			entries = append(entries, *e)
		}
	}
	if len(entries) == 0 {
		return nil, nil
	}
	made, content := NewTree(entries)
	// The ID may differ all the same, where the tree has modes that Git does not write any more.
	if t != nil && slices.EqualFunc(made.Entries, t.Entries, sameEntry) {
		return t, nil
	}
	return made, emit(made.ID, content)
}

func sameEntry(a, b Entry) bool { return a.Name == b.Name && a.Mode == b.Mode && a.ID == b.ID }

// applyChild makes the edits of one name: the name's own first, then the ones beneath it.
func applyChild(old *Entry, name string, edits []Edit, end int, emit func(ID, []byte) error) (*Entry, error) {
	for len(edits) > 0 && len(edits[0].Path) == end {
		old = edits[0].Entry
		if old != nil {
			set := *old
			set.Name = name
			old = &set
		}
		edits = edits[1:]
	}
	if len(edits) == 0 {
		return old, nil
	}
	var sub *Tree
	if old != nil {
		sub = old.Tree
	}
	made, err := apply(sub, edits, end+1, emit)
	if err != nil {
		return nil, err
	}
	if made == nil {
		// Removing what was beneath must not remove a file that stands where the directory was.
		if old != nil && old.Mode != ModeTree {
			return old, nil
		}
		return nil, nil
	}
	return &Entry{Name: name, Mode: ModeTree, ID: made.ID, Tree: made}, nil
}

func sameName(path, name string) bool {
	return strings.HasPrefix(path, name) && (len(path) == len(name) || path[len(name)] == '/')
}
