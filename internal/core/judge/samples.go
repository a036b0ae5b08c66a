// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "strings"

// Object ids of samples.
const (
	sampleID = "1111111111111111111111111111111111111111"
	otherID  = "2222222222222222222222222222222222222222"
)

func addFile(path string) Change {
	return Change{Path: path, Kind: Added, New: Entry{Mode: ModeFile, ID: sampleID}}
}

func modifyFile(path string) Change {
	return Change{Path: path, Kind: Modified, Old: Entry{Mode: ModeFile, ID: sampleID}, New: Entry{Mode: ModeFile, ID: otherID}}
}

func deleteFile(path string) Change {
	return Change{Path: path, Kind: Deleted, Old: Entry{Mode: ModeFile, ID: sampleID}}
}

func addLink(path, target string) Change {
	return Change{Path: path, Kind: Added, New: Entry{Mode: ModeSymlink, ID: sampleID, Target: target}}
}

// treeOf is the Lookup of a tree with these paths.
func treeOf(paths ...string) Lookup {
	dirs := map[string][]string{}
	seen := map[string]bool{}
	for _, path := range paths {
		for path != "" && !seen[path] {
			seen[path] = true
			dir, name := split(path)
			dirs[dir] = append(dirs[dir], name)
			path = dir
		}
	}
	return func(wanted []string) map[string][]string {
		listed := map[string][]string{}
		for _, dir := range wanted {
			listed[dir] = dirs[dir]
		}
		return listed
	}
}

// longText is more than git looks at to tell binaries from text.
var longText = strings.Repeat("text\n", 2000)

// contentsOf serves blobs by id. An id that it does not have is a line of text.
func contentsOf(blobs map[string]string) Contents {
	return func(ids []string, _ int64, visit func(int, []byte, bool)) {
		for i, id := range ids {
			content, ok := blobs[id]
			if !ok {
				content = id + "\n"
			}
			visit(i, []byte(content), true)
		}
	}
}
