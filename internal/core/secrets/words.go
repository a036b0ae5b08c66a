// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"slices"
)

// words finds many words in a text at once, without regard to the case of ASCII letters: the automaton of Aho and Corasick
// (1975), with every transition worked out.
type words struct {
	// class of each byte: those that no word has share one, capitals that of their small letters.
	class [256]uint8
	// classes is how many there are.
	classes int
	// next state by state and class.
	next []uint16
	// hits of each state: the words that end there.
	hits [][]hit
}

// hit is a word that was found: its length and who wanted it.
type hit struct {
	length int
	rules  []int
}

// newWords makes the automaton for words in lower case.
func newWords(rules map[string][]int) *words {
	w := &words{classes: 1, hits: [][]hit{nil}}
	list := slices.Sorted(maps.Keys(rules))
	for _, word := range list {
		for i := range len(word) {
			c := word[i]
			if w.class[c] == 0 {
				w.class[c] = uint8(w.classes) //nolint:gosec // at most 256 bytes
				w.classes++
			}
			if 'a' <= c && c <= 'z' {
				w.class[c-'a'+'A'] = w.class[c]
			}
		}
	}
	w.next = make([]uint16, w.classes)
	for _, word := range list {
		w.add(word, rules[word])
	}
	w.link()
	return w
}

// add makes the states of one word.
func (w *words) add(word string, rules []int) {
	state := 0
	for i := range len(word) {
		at := state*w.classes + int(w.class[word[i]])
		if w.next[at] == 0 {
			w.next[at] = uint16(len(w.hits)) //nolint:gosec // a test counts the states
			w.next = append(w.next, make([]uint16, w.classes)...)
			w.hits = append(w.hits, nil)
		}
		state = int(w.next[at])
	}
	w.hits[state] = append(w.hits[state], hit{len(word), rules})
}

// link gives each state the transitions and the hits of the longest other state that it ends with, breadth first.
func (w *words) link() {
	fallback := make([]int, len(w.hits))
	var queue []int
	for class := range w.classes {
		if s := int(w.next[class]); s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		w.hits[state] = append(w.hits[state], w.hits[fallback[state]]...)
		for class := range w.classes {
			at, other := state*w.classes+class, w.next[fallback[state]*w.classes+class]
			if s := int(w.next[at]); s != 0 {
				fallback[s] = int(other)
				queue = append(queue, s)
			} else {
				w.next[at] = other
			}
		}
	}
}

// each calls found for every word in a text, with the place after it.
func (w *words) each(text []byte, found func(end int, h hit)) {
	state := 0
	for i, c := range text {
		state = int(w.next[state*w.classes+int(w.class[c])])
		for _, h := range w.hits[state] {
			found(i+1, h)
		}
	}
}
