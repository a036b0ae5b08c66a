// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// MaxPeers is how many files of the repository a reviewer compares the changes with.
	MaxPeers = 3
	// MaxPeer bounds the size of such a file, in bytes: a larger one was often written by a program.
	MaxPeer = 64 << 10
	// MaxListed bounds the files that can be peers, and maxFolders the folders that they are in.
	MaxListed  = 4096
	maxFolders = 32
	// maxPeers bounds what is shown of all peers, in bytes. They get at most a third of the room that the changes have beyond minChanges.
	maxPeers, minChanges = 3600, 4000
)

// Listed is a file of the repository before the Feature.
type Listed struct {
	Path string
	// Size in bytes.
	Size int64
}

// Peer is an existing file of the repository, with its text.
type Peer struct{ Path, Text string }

// Folders are the folders of changed files, each once: those with the most changes first, then by name. Peers are looked for there.
func Folders(changes []Change) []string {
	count := map[string]int{}
	for _, c := range changes {
		if c.Kind != judge.Deleted {
			count[path.Dir(c.Path)]++
		}
	}
	folders := make([]string, 0, len(count))
	for f := range count {
		folders = append(folders, f)
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b)) })
	return folders[:min(len(folders), maxFolders)]
}

// Peers are the files that are most like the changed ones: files of the same sort, first by the words that their names have in common with the name of a
// changed file, then by the nearest size, then by path. The changed files are not among them. They are twice MaxPeers, because some may not be text. The
// result does not depend on the sequence of either list.
func Peers(changes []Change, files []Listed) []string {
	changed := map[string]bool{}
	like := map[string]*kin{}
	for _, c := range changes {
		changed[c.Path] = true
		if c.Kind == judge.Deleted {
			continue
		}
		if like[sort(c.Path)] == nil {
			like[sort(c.Path)] = &kin{having: map[string][]int{}}
		}
		like[sort(c.Path)].add(nameWords(c.Path), c.Size)
	}
	type match struct {
		path   string
		common int
		apart  int64
	}
	var matches []match
	for _, f := range files {
		k := like[sort(f.Path)]
		if k == nil || changed[f.Path] || f.Size == 0 || f.Size > MaxPeer || len(f.Path) > MaxPath {
			continue
		}
		best := match{path: f.Path, common: -1}
		for i, common := range k.common(nameWords(f.Path)) {
			m := match{f.Path, common, max(k.sizes[i]-f.Size, f.Size-k.sizes[i])}
			if cmp.Or(cmp.Compare(best.common, m.common), cmp.Compare(m.apart, best.apart)) < 0 {
				best = m
			}
		}
		matches = append(matches, best)
	}
	plain.SortStable(matches, func(a, b *match) int {
		return cmp.Or(cmp.Compare(b.common, a.common), cmp.Compare(a.apart, b.apart), strings.Compare(a.path, b.path))
	})
	var picked []string
	for _, m := range matches[:min(len(matches), 2*MaxPeers)] {
		picked = append(picked, m.path)
	}
	return picked
}

// sort of a file: its extension, or its name if it has none.
func sort(file string) string { return cmp.Or(path.Ext(file), path.Base(file)) }

// kin are the changed files of one sort.
type kin struct {
	sizes []int64
	// having says which of them have a word in their names. Without it, a comparison of each word with each other one takes seconds.
	having map[string][]int
}

// add a changed file, with the words of its name.
func (k *kin) add(words []string, size int64) {
	for _, w := range words {
		k.having[w] = append(k.having[w], len(k.sizes))
	}
	k.sizes = append(k.sizes, size)
}

// common is how many words of a name are in the name of each changed file.
func (k *kin) common(words []string) []int {
	n := make([]int, len(k.sizes))
	for _, w := range words {
		for _, i := range k.having[w] {
			n[i]++
		}
	}
	return n
}

// nameWords are the words of the name of a file without its extension, in lower case, each once; at most 16.
func nameWords(file string) (words []string) {
	name := strings.TrimSuffix(path.Base(file), path.Ext(file))
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !slices.Contains(words, word) {
			if words = append(words, word); len(words) == 16 {
				break
			}
		}
	}
	return words
}

// peers are shown within a number of bytes, with the same share of it each.
func (d data) peers(all []Peer, room int) string {
	var b strings.Builder
	for i, p := range all {
		head := fmt.Sprintf("== %s\n", d.name(p.Path))
		l := list{budget: (room-b.Len())/(len(all)-i) - len(head), left: "(the rest of this file is left out)"}
		for line := range strings.Lines(body(p.Text)) {
			if !l.add(strings.TrimSuffix(d.row("  "+strings.TrimRight(line, "\r\n")), "\n")) {
				break
			}
		}
		if l.kept.Len() > 0 {
			b.WriteString(head + l.text(false))
		}
	}
	return b.String()
}

// body is a file without the paragraphs about its license at its beginning.
func body(text string) string {
	for range 2 { // a copyright line can stand apart
		first, rest, is := strings.Cut(text, "\n\n")
		if about := strings.ToLower(plain.CutBytes(first, maxPeers)); !is || !strings.Contains(about, "copyright") && !strings.Contains(about, "license") {
			break
		}
		text = rest
	}
	return strings.TrimLeft(text, "\n")
}
