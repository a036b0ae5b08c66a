// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

// Diff calls visit for every path below which the trees differ and that is a file, link or gitlink on at least one
// side; the missing side is nil. Subtrees that are equal are not looked at, so that the cost is that of the difference.
// Paths come directory by directory, not sorted.
func Diff(a, b *Tree, visit func(path string, before, after *Entry)) {
	diff("", a, b, visit)
}

func diff(prefix string, a, b *Tree, visit func(string, *Entry, *Entry)) {
	if a == b || (a != nil && b != nil && a.ID == b.ID) {
		return
	}
	DiffDirectory(prefix, a, b, visit, func(path string, before, after *Entry) {
		diff(path+"/", subtree(before), subtree(after), visit)
	})
}

// DiffDirectory is Diff for one directory, whose path ends in '/' or is empty for the root. It calls descend for every name that is a
// directory on at least one side and differs, and looks at no subtree, so that the caller may read subtrees when it needs them.
func DiffDirectory(prefix string, a, b *Tree, visit, descend func(path string, before, after *Entry)) {
	if a == nil {
		a = &Tree{}
	}
	if b == nil {
		b = &Tree{}
	}
	i, j := 0, 0
	for i < len(a.Entries) || j < len(b.Entries) {
		var x, y *Entry
		switch c := compareHeads(a.Entries[i:], b.Entries[j:]); {
		case c < 0:
			x = &a.Entries[i]
			i++
		case c > 0:
			y = &b.Entries[j]
			j++
		default:
			x, y = &a.Entries[i], &b.Entries[j]
			i++
			j++
		}
		diffEntry(prefix, x, y, visit, descend)
	}
}

// compareHeads orders the first entries of two lists; an empty list comes last.
func compareHeads(a, b []Entry) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	default:
		return compareEntries(a[0], b[0])
	}
}

// diffEntry reports one name. A file and a directory of one name stand at different places in the order, so that the
// file is reported on one side and what is in the directory on the other.
func diffEntry(prefix string, x, y *Entry, visit, descend func(string, *Entry, *Entry)) {
	switch {
	case x != nil && y != nil && x.ID == y.ID && x.Mode == y.Mode:
	case isTree(x) || isTree(y):
		descend(prefix+nameOf(x, y), x, y)
	default:
		visit(prefix+nameOf(x, y), x, y)
	}
}

func isTree(e *Entry) bool { return e != nil && e.Mode == ModeTree }

func subtree(e *Entry) *Tree {
	if e == nil {
		return nil
	}
	return e.Tree
}

func nameOf(x, y *Entry) string {
	if x != nil {
		return x.Name
	}
	return y.Name
}
