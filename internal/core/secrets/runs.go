// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"slices"
)

const (
	// shortWord is the length of keywords that many words of every text have; then there must be a token around it.
	shortWord = 3
	// minToken is the least length of such a token, with a digit, and minLetters without one: this number of letters in a row are
	// seldom a name.
	minToken, minLetters = 16, 28
	// maxName is how much of a name may follow a keyword before a value is assigned: rules have up to 20 characters there,
	// after a part of their own.
	maxName = 64
	// maxOperator is how much an assignment and the quotes after it can take: ":::=" and five more, after three before it.
	maxOperator = 12
	// minValue is the least length of an assigned secret.
	minValue = 8
)

// run remembers the last run of bytes of one kind. Keywords come in the order of the text, so each byte is looked at a
// bounded number of times, however long a run is and however many keywords it has. Of a run that is very long no more is
// known than reach bytes before and after the place of the question.
type run struct {
	of       *kind
	reach    int
	from, to int
	// open: it may continue after to.
	open bool
}

// kind of bytes.
type kind [256]bool

func kindOf(is func(byte) bool) *kind {
	var k kind
	for c := range k {
		k[c] = is(byte(c)) //nolint:gosec // there are 256
	}
	return &k
}

// Kinds of bytes that each keyword needs.
var (
	valueKind = kindOf(valueByte)
	nameKind  = kindOf(nameOrSpace)
)

// at gives the run that has a place; an empty one where the byte there is of another kind.
func (r *run) at(text []byte, i int) (from, to int) {
	if i < 0 || i >= len(text) || !r.of[text[i]] {
		return i, i
	}
	if i < r.from || i >= r.to {
		r.from, r.to, r.open = i, i+1, true
		for end := max(0, i-r.reach); r.from > end && r.of[text[r.from-1]]; {
			r.from--
		}
	}
	for end := min(len(text), i+r.reach); r.open && r.to < end; {
		if r.open = r.of[text[r.to]]; r.open {
			r.to++
		}
	}
	return r.from, r.to
}

// surroundings of keywords.
type surroundings struct {
	text []byte
	// left and right of a keyword, value after an assignment: runs of what secrets are made of.
	left, right, value run
	// name after a keyword.
	name run
	// plainFrom and plainTo: from the one to the other there is no character that no name has.
	plainFrom, plainTo int
}

func newSurroundings(text []byte) surroundings {
	return surroundings{
		text: text, left: run{of: valueKind, reach: maxAfter}, right: run{of: valueKind, reach: maxAfter},
		value: run{of: valueKind, reach: maxAfter}, name: run{of: nameKind, reach: maxName},
	}
}

// token is the run of characters that secrets are made of around a keyword.
func (s *surroundings) token(from, to int) (begin, end int) {
	begin, end = from, to
	if from > 0 && valueByte(s.text[from-1]) {
		begin, _ = s.left.at(s.text, from-1)
	}
	if to < len(s.text) {
		_, end = s.right.at(s.text, to)
	}
	return begin, end
}

// random says at a glance whether the token around a keyword can be a secret.
func (s *surroundings) random(from, to int) bool {
	begin, end := s.token(from, to)
	return end-begin >= minLetters || end-begin >= minToken && slices.ContainsFunc(s.text[begin:end], digit)
}

// assigned is the value that is assigned to a name that has a keyword ending at i; it is empty where there is none.
func (s *surroundings) assigned(i int) (begin, end int) {
	_, nameEnd := s.name.at(s.text, i)
	i = min(nameEnd, i+maxName)
	i = skip(s.text, i, 3, quoteOrSpace)
	begin = skip(s.text, i, maxOperator, operator)
	if !slices.ContainsFunc(s.text[i:begin], assigns) {
		return begin, begin
	}
	_, end = s.value.at(s.text, begin)
	return begin, end
}

// plain says whether a value has only characters that names have, too.
func (s *surroundings) plain(begin, end int) bool {
	if begin < s.plainFrom || begin > s.plainTo {
		s.plainFrom, s.plainTo = begin, begin
	}
	for s.plainTo < end && ofName(s.text[s.plainTo]) {
		s.plainTo++
	}
	return s.plainTo >= end
}

// next remembers where the word stands next, for places in the order of the text.
type next struct {
	word     string
	from, at int
	used     bool
}

// after gives the place of the first one at a place or later; the length of the text where there is none.
func (n *next) after(text []byte, i int) int {
	if !n.used || i < n.from || i > n.at {
		n.used, n.from, n.at = true, i, len(text)
		if at := bytes.Index(text[i:], []byte(n.word)); at >= 0 {
			n.at = i + at
		}
	}
	return n.at
}

// skip passes over at most the given bytes of a kind.
func skip(text []byte, i, most int, of func(byte) bool) int {
	for end := min(len(text), i+most); i < end && of(text[i]); {
		i++
	}
	return i
}

// back is how far a run of at most the given bytes of a kind goes back from a place.
func back(text []byte, i, most int, of func(byte) bool) int {
	for end := max(0, i-most); i > end && of(text[i-1]); {
		i--
	}
	return i
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

func nameByte(c byte) bool { return alphanumeric(c) || c == '.' || c == '-' }

func nameOrSpace(c byte) bool { return nameByte(c) || c == ' ' || c == '\t' }

func quoteOrSpace(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' || c == '\'' || c == '"'
}

func assigns(c byte) bool {
	return c == '=' || c == '>' || c == ':' || c == '|' || c == '?' || c == ','
}

func operator(c byte) bool { return quoteOrSpace(c) || assigns(c) || c == '`' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

func valueByte(c byte) bool {
	return alphanumeric(c) || c == '.' || c == '=' || c == '+' || c == '/' || c == '-' || c == '~'
}

// ofName says whether a character can stand in a name by the generic rule.
func ofName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '.' || c == '-'
}
