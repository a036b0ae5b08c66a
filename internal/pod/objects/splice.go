// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

// Splice returns the tree with the selected paths as they are in another one, and names the paths that differ by that,
// directory by directory. It calls emit with every new tree object, children first. A selected file replaces a directory of its name, or
// a file where its directory must be.
func (t *Tree) Splice(from *Tree, selected func(path string) bool, emit func(id ID, content []byte) error) (*Tree, []string, error) {
	var edits []Edit
	Diff(t, from, func(path string, _, after *Entry) {
		if selected(path) {
			edits = append(edits, Edit{Path: path, Entry: after})
		}
	})
	spliced, err := t.Apply(edits, emit)
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	Diff(t, spliced, func(path string, _, _ *Entry) { paths = append(paths, path) })
	return spliced, paths, nil
}
