// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"strings"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// kind of a byte.
type kind int

const (
	mark kind = iota
	smallLetter
	capitalLetter
	digit
)

// longest group of a kind that counts as one token.
var longest = [...]int{mark: 1, smallLetter: 3, capitalLetter: 2, digit: 2}

func kindOf(c byte) kind {
	switch {
	case 'a' <= c && c <= 'z':
		return smallLetter
	case 'A' <= c && c <= 'Z':
		return capitalLetter
	case '0' <= c && c <= '9':
		return digit
	}
	return mark
}

// meter counts the tokens of a text byte by byte, and more of them than models do: each model has tokens of its own, and none is called.
// Letters and digits count by the group. Two letters and more without a vowel do not belong to a word, and count two. A space belongs to
// the word behind it. Every other byte counts one, and so does each byte of a character that is not ASCII.
type meter struct {
	// closed groups have this number of tokens.
	closed int
	// group is the length of the last group, of its kind. A capital letter may begin a group of small ones.
	group int
	kind  kind
	vowel bool
}

func (m *meter) tokens() int {
	letters := m.kind == smallLetter || m.kind == capitalLetter
	switch {
	case m.group == 0:
		return m.closed
	case letters && m.group > 1 && !m.vowel:
		return m.closed + 2
	}
	return m.closed + 1
}

func (m *meter) add(text string, i int) {
	k := kindOf(text[i])
	if k == smallLetter && m.kind == capitalLetter && m.group == 1 {
		m.kind = smallLetter
	}
	if k != m.kind || m.group == longest[k] {
		m.closed, m.group, m.kind, m.vowel = m.tokens(), 0, k, false
		if letter := k == smallLetter || k == capitalLetter; letter && i > 0 && text[i-1] == ' ' {
			m.closed--
		}
	}
	m.group++
	m.vowel = m.vowel || strings.IndexByte("aeiouyAEIOUY", text[i]) >= 0
}

// tokens that a text has at most.
func tokens(text string) int {
	var m meter
	for i := range len(text) {
		m.add(text, i)
	}
	return m.tokens()
}

// within gives the beginning of a text that has at most the given tokens. A text that was cut ends with clip.Mark, which counts as its bytes.
func within(text string, limit int) string {
	var m meter
	end := 0
	for i := range len(text) {
		if utf8.RuneStart(text[i]) && m.tokens()+len(plain.CutMark) <= limit {
			end = i
		}
		m.add(text, i)
	}
	if m.tokens() <= limit {
		return text
	}
	return text[:end] + plain.CutMark
}
