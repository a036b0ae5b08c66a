// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import "bytes"

const (
	// before and after bound what is looked at around a keyword, in bytes: of what rules match beside a keyword within a
	// line, at most 50 characters stand before it, and some 230 after it before the secret's own end is in sight.
	before, after = 128, 320
	// maxAfter bounds the rest of the line that is looked at for a secret's end.
	maxAfter = 4096
	// shortWord is the length of keywords that many words of every text have; then there must be a token around it.
	shortWord = 3
	// minToken is the least length of such a token, with a digit, and minLetters without one: so many letters in a row are
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

// place is a part of a text that a rule has to look at.
type place struct {
	rule, from, to int
}

// places finds what is worth a regular expression, which is a hundred times slower than all of this.
func (s *Scanner) places(text []byte) []place {
	var places []place
	clear(s.last)
	s.words.each(text, func(begin, end int, rules []int) {
		for _, rule := range rules {
			from, to, ok := s.rules[rule].around(text, begin, end)
			switch i := s.last[rule] - 1; {
			case !ok:
			case i >= 0 && from <= places[i].to:
				places[i].to = max(places[i].to, to)
			default:
				places = append(places, place{rule, from, to})
				s.last[rule] = len(places)
			}
		}
	})
	for i, c := range s.rules {
		if len(c.keywords) == 0 {
			places = append(places, place{i, 0, len(text)})
		}
	}
	return places
}

// around is the part of a text to look at for a keyword's sake, in whole lines where they are not too long; false where
// there can be no secret.
func (c *candidate) around(text []byte, from, to int) (begin, end int, ok bool) {
	switch {
	case c.whole:
		return 0, len(text), true
	case c.id == generic:
		if value := assigned(text, to); len(value) < minValue || !bytes.ContainsFunc(value, notOfName) {
			return 0, 0, false
		}
	case c.assigned:
		// Of some rules the keyword is in the value.
		if len(assigned(text, to)) < minValue && !random(token(text, from, to)) {
			return 0, 0, false
		}
	case to-from <= shortWord:
		if !random(token(text, from, to)) {
			return 0, 0, false
		}
	}
	begin = max(0, from-before)
	if line := bytes.LastIndexByte(text[begin:from], '\n'); line >= 0 && !c.assigned {
		begin += line + 1
	}
	end = min(len(text), to+after)
	rest := text[end:min(len(text), end+maxAfter)]
	if line := bytes.IndexByte(rest, '\n'); line >= 0 {
		return begin, end + line + 1, true
	}
	return begin, end + len(rest), true
}

// assigned is the value that is assigned to a name that has a keyword ending at i; nil where there is none.
func assigned(text []byte, i int) []byte {
	i = skip(text, i, maxName, nameOrSpace)
	i = skip(text, i, 3, quoteOrSpace)
	begin := skip(text, i, maxOperator, operator)
	if !bytes.ContainsAny(text[i:begin], "=>:|?,") {
		return nil
	}
	return text[begin:skip(text, begin, len(text), valueByte)]
}

// token is the run of characters that secrets are made of around a keyword.
func token(text []byte, from, to int) []byte {
	for from > 0 && valueByte(text[from-1]) {
		from--
	}
	return text[from:skip(text, to, len(text), valueByte)]
}

// random says at a glance whether a token can be a secret.
func random(token []byte) bool {
	return len(token) >= minLetters || len(token) >= minToken && bytes.ContainsAny(token, "0123456789")
}

// skip passes over at most so many bytes of a kind.
func skip(text []byte, i, most int, of func(byte) bool) int {
	for end := min(len(text), i+most); i < end && of(text[i]); {
		i++
	}
	return i
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

func nameOrSpace(c byte) bool {
	return alphanumeric(c) || c == ' ' || c == '\t' || c == '.' || c == '-'
}

func quoteOrSpace(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' || c == '\'' || c == '"'
}

func operator(c byte) bool {
	return quoteOrSpace(c) || c == '=' || c == '>' || c == ':' || c == '|' || c == '?' || c == ',' || c == '`'
}

func valueByte(c byte) bool {
	return alphanumeric(c) || c == '.' || c == '=' || c == '+' || c == '/' || c == '-' || c == '~'
}

// notOfName says whether a character cannot stand in what the generic rule takes for a name.
func notOfName(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	return !letter && r != '_' && r != '.' && r != '-'
}
