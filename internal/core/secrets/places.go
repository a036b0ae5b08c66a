// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import "bytes"

const (
	// before and after bound what is looked at around a keyword, in bytes: of what rules match around a keyword within a line, at most 50
	// characters stand before it, and some 230 after it before the secret's own end is in sight.
	before, after = 128, 320
	// maxAfter bounds the rest of a token, or of a line, that is looked at for a secret's end.
	maxAfter = 4096
	// ending is what an expression looks at after a token.
	ending = 16
	// maxCommand bounds the command line of which the option that has a password is looked for.
	maxCommand = 2048
	// maxDocument bounds how far apart a document says that it is a secret and has it.
	maxDocument = 2048
	// furthest is the furthest that is looked at after a keyword, whatever the rule.
	furthest = 8 << 10
	// maxJoined bounds places that are put together because they overlap: what is searched between two looks at whether
	// to stop.
	maxJoined = 16 << 10
)

// Rules that match more than one line.
const (
	privateKey = "private-key"
	kubernetes = "kubernetes-secret-yaml"
	curlHeader = "curl-auth-header"
	curlUser   = "curl-auth-user"
)

// worth says whether there can be a secret of a rule at a keyword. Expressions are a thousand times slower than this.
func (f *search) worth(i, from, to int) bool {
	c := f.rule(i)
	text := f.text
	switch {
	case c.boundary && from > 0 && alphanumeric(text[from-1]):
		return false
	case c.path != "" && !f.inPath(c.path):
		return false
	case c.id == kubernetes:
		return afterKind(text, from)
	case c.id == curlHeader:
		return f.hasOption(to, headerOptions)
	case c.id == curlUser:
		return f.hasOption(to, userOptions)
	case c.id == generic:
		begin, end := f.assigned(to)
		return end-begin >= minValue && !f.plain(begin, end)
	case c.assigned:
		// Of some rules the keyword is in the value.
		begin, end := f.assigned(to)
		return end-begin >= minValue || f.random(from, to)
	case to-from <= shortWord:
		return f.random(from, to)
	}
	return true
}

// reach is the end of what is looked at after a keyword.
func (f *search) reach(i, from, to int) int {
	c := f.rule(i)
	text := f.text
	switch {
	case c.longest > 0:
		return min(len(text), from+c.longest)
	case c.id == curlHeader, c.id == curlUser:
		return min(len(text), to+maxCommand)
	case c.id == kubernetes:
		return min(len(text), to+maxDocument)
	}
	end := min(len(text), to+after)
	begin := to
	if c.assigned {
		begin, _ = f.assigned(to)
	}
	if begin < len(text) {
		_, token := f.right.at(text, begin)
		end = max(end, min(token+ending, to+maxAfter, len(text)))
	}
	if line := bytes.IndexByte(text[end:min(len(text), end+after)], '\n'); line >= 0 {
		end += line + 1
	}
	return end
}

// start is where what is searched before a keyword begins.
func (f *search) start(i int, from int) int {
	c := f.rule(i)
	if c.id == kubernetes {
		return max(0, from-maxDocument)
	}
	begin := max(0, from-before)
	if c.assigned { // the name may be on another line
		return begin
	}
	return begin + bytes.LastIndexByte(f.text[begin:from], '\n') + 1
}

// afterKind says whether a document says here of what kind it is.
func afterKind(text []byte, from int) bool {
	const most, kind = 16, "kind:"
	i := back(text, from, 1, func(c byte) bool { return c == '"' || c == '\'' })
	i = back(text, i, most, func(c byte) bool { return c == ' ' || c == '\t' })
	return i >= len(kind) && bytes.EqualFold(text[i-len(kind):i], []byte(kind))
}

// The options of curl that secrets are given with, each in its two spellings, as in search.options.
const (
	headerOptions = 0
	userOptions   = 2
)

// newOptions are the options in the order of the constants.
func newOptions() [4]next {
	return [...]next{{word: "-H"}, {word: "--header"}, {word: "-u"}, {word: "--user"}}
}

// hasOption says whether a command that continues here has one of two spellings of an option.
func (f *search) hasOption(from, first int) bool {
	end := from + maxCommand
	return f.options[first].after(f.text, from) < min(end, len(f.text)) || f.options[first+1].after(f.text, from) < min(end, len(f.text))
}
