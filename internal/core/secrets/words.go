// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"slices"
)

const (
	// gramBytes is how many bytes are looked at to tell whether some word can begin there.
	gramBytes = 3
	// classBits holds the class of a byte, so that a gram is a number of gramBits.
	classBits = 6
	gramBits  = gramBytes * classBits
	// between is how many bytes are searched from one question whether to continue to the next.
	between = 64 << 10
)

// words finds many words in a text at once, without regard to the case of ASCII letters. Nearly everywhere in a text the next three bytes
// begin none of them, which one look into a table tells; only elsewhere a tree of the words is descended.
type words struct {
	// class of each byte: 0 for bytes that none of the words has, capitals the class of their small letters.
	class [256]uint8
	// classes is how many there are.
	classes int
	// begins has a bit for each gram that begins one of the words.
	begins [1 << gramBits / 64]uint64
	// next state by state and class; 0 if none of the words continues.
	next []uint16
	// rules by state: the rules that want the word that ends there.
	rules [][]int
}

// newWords makes the table and the tree for words in lower case.
func newWords(rules map[string][]int) *words {
	w := &words{classes: 1, rules: [][]int{nil}}
	list := slices.Sorted(maps.Keys(rules))
	for _, word := range list {
		for i := range len(word) {
			c := word[i]
			if w.class[c] == 0 {
				w.class[c] = uint8(w.classes) //nolint:gosec // a test counts them
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
	return w
}

// add makes the states of one word.
func (w *words) add(word string, rules []int) {
	state, gram := 0, uint32(0)
	for i := range len(word) {
		class := w.class[word[i]]
		if i < gramBytes {
			gram = gram<<classBits | uint32(class)
		}
		at := state*w.classes + int(class)
		if w.next[at] == 0 {
			w.next[at] = uint16(len(w.rules)) //nolint:gosec // a test counts the states
			w.next = append(w.next, make([]uint16, w.classes)...)
			w.rules = append(w.rules, nil)
		}
		state = int(w.next[at])
	}
	w.rules[state] = rules
	// After a shorter word anything may stand.
	rest := classBits * max(0, gramBytes-len(word))
	for g := gram << rest; g < (gram+1)<<rest; g++ {
		w.begins[g/64] |= 1 << (g % 64)
	}
}

// each calls found for every word in a text, sorted by where they begin, with the rules that want it, until it says no; and now and then
// asks whether to continue.
func (w *words) each(text []byte, goOn func() bool, found func(from, to int, rules []int) bool) {
	gram := uint32(0)
	for begin := 0; begin < len(text); begin += between {
		if !goOn() {
			return
		}
		for i := begin; i < min(len(text), begin+between); i++ {
			gram = (gram<<classBits | uint32(w.class[text[i]])) % (1 << gramBits)
			if w.begins[gram/64]>>(gram%64)&1 != 0 && !w.descend(text, i-gramBytes+1, found) {
				return
			}
		}
	}
	for from := len(text) - gramBytes + 1; from < len(text); from++ { // shorter words at the end
		gram = gram << classBits % (1 << gramBits)
		if w.begins[gram/64]>>(gram%64)&1 != 0 && !w.descend(text, from, found) {
			return
		}
	}
}

// descend calls found for every word that begins at a place, until it says no.
func (w *words) descend(text []byte, from int, found func(from, to int, rules []int) bool) bool {
	state := 0
	for i := from; i < len(text); i++ {
		state = int(w.next[state*w.classes+int(w.class[text[i]])])
		if state == 0 {
			return true
		}
		if rules := w.rules[state]; rules != nil && !found(from, i+1, rules) {
			return false
		}
	}
	return true
}
