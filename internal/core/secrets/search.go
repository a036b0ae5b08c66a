// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"context"
	"errors"
	"slices"
)

// ErrTooHard is returned for a text that takes more work than there is.
var ErrTooHard = errors.New("the search for secrets takes too much work")

const (
	// maxRaw bounds what is found before equal findings are put together.
	maxRaw = 4 * maxFindings
	// cheap is how many times faster an expression is on what is short enough for Go's backtracking matcher than on what
	// is not, where each byte costs as much as the expression has instructions.
	cheap = 8
	// dear is how many times slower it is where it reads byte by byte.
	dear = 4
	// maxBits and maxProgram say what is short enough (regexp/backtrack.go: maxBacktrackVector, maxBacktrackProg).
	maxBits, maxProgram = 256 << 10, 500
	// allowedSize stands for the size of the expressions of what is allowed.
	allowedSize = 4
	// glance is the work of looking at a keyword without an expression.
	glance = 16
	// attempt is the work of trying an expression at all.
	attempt = 100
	// textsPerWork is how many bytes are searched for one word with the work of one instruction on one byte.
	textsPerWork = 4
	// maxLineAround bounds what is looked at of a line on each side of a match.
	maxLineAround = 1024
)

// found is a secret, and the match that has it.
type found struct {
	from, to, matchFrom, matchTo int
}

// span is a part of the text that a rule has to search.
type span struct{ from, to int }

// search is one search of one text.
type search struct {
	*Scanner
	surroundings
	ctx  context.Context //nolint:containedctx // lives as long as one search
	path string
	old  []byte
	// head and tail are how many bytes the old text has in common at its beginning and end.
	head, tail int
	// budget is what work is left.
	budget int64
	err    error
	ends   keyEnds
	// options of commands, see newOptions.
	options [4]next
	// ended says for each rule where its last match did; open is what it has yet to search.
	ended []int
	open  []span
	// opened are the rules that have, or had, something to search.
	opened []int
	// inPaths and inOld remember answers.
	inPaths, inOld map[string]bool
	// list of what was found, and most that it may have.
	list []Place
	most int
	// heard are the first keywords of the text, as many as there is room for.
	heard []keyword
}

func (s *Scanner) newSearch(ctx context.Context, budget int64, path string, old, text []byte) *search {
	f := &search{
		Scanner: s, surroundings: newSurroundings(text), ctx: ctx, path: path, old: old, budget: budget, options: newOptions(),
		ended: s.ended, open: s.open, opened: s.opened[:0], most: maxRaw,
	}
	clear(f.ended)
	f.head = CommonPrefix(old, text)
	f.tail = CommonSuffix(old[f.head:], text[f.head:])
	return f
}

// run searches the text.
func (f *search) run() {
	f.words.each(f.text, func() bool {
		f.stop(f.ctx.Err())
		return f.goesOn()
	}, f.keywords)
	f.end()
}

// keywords looks at one for all rules that want it, and says whether to continue.
func (f *search) keywords(from, to int, rules []int) bool {
	if len(f.heard) < cap(f.heard) {
		f.heard = append(f.heard, keyword{from, to, rules})
	}
	for _, i := range rules {
		f.keyword(i, from, to)
	}
	return f.goesOn()
}

// end searches what is open.
func (f *search) end() {
	slices.Sort(f.opened)
	for _, i := range f.opened {
		f.close(i)
	}
}

// goesOn says whether there is a reason to search on.
func (f *search) goesOn() bool { return f.err == nil && len(f.list) < f.most }

func (f *search) stop(err error) {
	if f.err == nil {
		f.err = err
	}
}

// charge takes work from the budget; false where there is not enough.
func (f *search) charge(work int64) bool {
	if f.budget -= work; f.budget < 0 {
		f.stop(ErrTooHard)
	}
	return f.err == nil
}

// keyword looks for a rule's secret at or around one of its keywords. What the old text has at the same place is not
// looked at.
func (f *search) keyword(i, from, to int) {
	if from < f.ended[i] || to+furthest <= f.head || from >= len(f.text)-f.tail || !f.charge(glance) || !f.worth(i, from, to) {
		return
	}
	c := f.rule(i)
	if c.id == privateKey {
		f.privateKey(i, from)
		return
	}
	end := f.reach(i, from, to)
	switch {
	case end <= f.head:
	case c.lead:
		f.try(i, from, end)
	default:
		f.widen(i, f.start(i, from), end)
	}
}

// try tries a rule's expression at a place.
func (f *search) try(i, from, end int) {
	c := f.rule(i)
	part := f.text[from:end]
	var m []int
	if c.backtracks(len(part)) {
		if !f.charge(c.work(len(part))) {
			return
		}
		m = f.regex(c.expression).FindSubmatchIndex(part)
	} else {
		// Most fail after a few bytes, and these are what they cost.
		r := bytes.NewReader(part)
		m = f.regex(c.expression).FindReaderSubmatchIndex(r)
		if !f.charge(attempt + dear*c.size*int64(len(part)-r.Len())) {
			return
		}
	}
	if m != nil {
		f.ended[i] = from + m[1]
		f.match(i, from, m)
	}
}

// widen notes a part of the text for a rule, together with the one before where they overlap.
func (f *search) widen(i, from, to int) {
	if last := &f.open[i]; last.to > 0 && from <= last.to && last.to-last.from < maxJoined {
		last.to = max(last.to, to)
		return
	}
	f.close(i)
	f.open[i], f.opened = span{from, to}, append(f.opened, i)
}

// close searches what was noted for a rule.
func (f *search) close(i int) {
	part := f.open[i]
	f.open[i] = span{}
	if part.to == 0 || !f.goesOn() {
		return
	}
	c := f.rule(i)
	if !f.charge(c.work(part.to - part.from)) {
		return
	}
	for _, m := range f.regex(c.expression).FindAllSubmatchIndex(f.text[part.from:part.to], maxRaw) {
		f.match(i, part.from, m)
	}
}

// backtracks says whether Go tries an expression on the given bytes by backtracking.
func (c *candidate) backtracks(length int) bool {
	return c.size <= maxProgram && c.size*int64(length) <= maxBits
}

// work of an expression on the given bytes.
func (c *candidate) work(length int) int64 {
	if c.backtracks(length) {
		return attempt + c.size*int64(length)/cheap
	}
	return attempt + c.size*int64(length)
}

// match weighs a match of a rule's expression.
func (f *search) match(i, offset int, m []int) {
	matchFrom := offset + m[0]
	if f.rule(i).assigned { // with the rest of the name
		matchFrom = back(f.text, matchFrom, maxNamePrefix, nameByte)
	}
	from, to := group(m, f.rule(i).group)
	for from < to && f.text[offset+from] == '\n' {
		from++
	}
	for from < to && f.text[offset+to-1] == '\n' {
		to--
	}
	f.weigh(i, found{from: offset + from, to: offset + to, matchFrom: matchFrom, matchTo: offset + m[1]})
}

// weigh notes a secret, unless it is none after all or was there before.
func (f *search) weigh(i int, s found) {
	c := f.rule(i)
	secret := f.text[s.from:s.to]
	if c.entropy > 0 && entropy(secret) <= c.entropy {
		return
	}
	if !f.charge(f.allowWork(c.rule, s)) || f.allowed(c.rule, secret, f.text[s.matchFrom:s.matchTo], f.lineAround(s)) || f.was(s) {
		return
	}
	f.list = append(f.list, Place{c.id, s.from, s.to})
}

// was says whether the old text has a secret.
func (f *search) was(s found) bool {
	if s.to <= f.head || s.from >= len(f.text)-f.tail {
		return true
	}
	secret := string(f.text[s.from:s.to])
	is, known := f.inOld[secret]
	if !known && f.charge(int64(len(f.old)/textsPerWork)) {
		is = bytes.Contains(f.old, f.text[s.from:s.to])
		if f.inOld == nil {
			f.inOld = make(map[string]bool)
		}
		f.inOld[secret] = is
	}
	return is
}

// lineAround is the text from the beginning of a match's first line to the end of its last one, if they are not too far.
func (f *search) lineAround(s found) []byte {
	begin := max(0, s.matchFrom-maxLineAround)
	begin += bytes.LastIndexByte(f.text[begin:s.matchFrom], '\n') + 1
	rest := f.text[s.matchTo:min(len(f.text), s.matchTo+maxLineAround)]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	return f.text[begin : s.matchTo+len(rest)]
}

// inPath says whether the file's path matches an expression.
func (f *search) inPath(expression string) bool {
	is, known := f.inPaths[expression]
	if !known {
		is = f.regex(expression).MatchString(f.path)
		if f.inPaths == nil {
			f.inPaths = make(map[string]bool)
		}
		f.inPaths[expression] = is
	}
	return is
}

const step = 4096

// CommonPrefix counts the bytes that both texts begin with.
func CommonPrefix(a, b []byte) int {
	n, most := 0, min(len(a), len(b))
	for n+step <= most && bytes.Equal(a[n:n+step], b[n:n+step]) {
		n += step
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// CommonSuffix counts the bytes that both texts end with.
func CommonSuffix(a, b []byte) int {
	n, most := 0, min(len(a), len(b))
	for n+step <= most && bytes.Equal(a[len(a)-n-step:len(a)-n], b[len(b)-n-step:len(b)-n]) {
		n += step
	}
	for n < most && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
