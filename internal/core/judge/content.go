// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"errors"

	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// maxContent bounds what is checked by its content, in bytes: more than the built-in limit of a file (50 MiB), and what
// a pod without a limit of its own bears to hold twice.
const maxContent = 64 << 20

// maxWork bounds the search for secrets in all files of a check: 50 that are as hard as can be, or some 4 GB of what
// programmers write.
const maxWork = 50 * secrets.Budget

// Contents reads blobs. It calls visit once for each id, in their sequence; ok is false if the blob cannot be read or has more than limit
// bytes. The visitor may keep the content, and must not change it.
type Contents func(ids []string, limit int64, visit func(i int, content []byte, ok bool))

// LineCounts counts the lines of text files that differ from the base, as git diff --numstat does.
type LineCounts struct {
	Added, Removed int64
}

// facts are what the content of one change was found to be. They do not depend on policy or plan.
type facts struct {
	lines LineCounts
	// binary: the new content has NUL bytes.
	binary bool
	// hidden characters that the new content has, where it is read as code and has more of them than the old one.
	hidden hidden
	// secrets that the new content has and the old one has not.
	secrets []secrets.Finding
	// work that the search for them took.
	work int64
	// hard says why the content is too hard to check; what else is known of it is known all the same.
	hard string
	// fault says why the content could not be checked; all else is zero then.
	fault string
}

// lasts says whether facts are the same at each check of a change.
func (f *facts) lasts() bool { return f.fault == "" && f.hard != tooMuchWork }

// factsKey is all that facts depend on.
type factsKey struct {
	path     string
	old, now Entry
}

// Cache keeps findings about contents and compiled checks from one call of Judge to the next, so that a changed file is read once and not
// at each checkpoint. It does not change results. It is not safe for concurrent use.
type Cache struct {
	facts  map[factsKey]facts
	checks map[string]compiled
	// scanner for secrets; it keeps the regular expressions that were needed.
	scanner *secrets.Scanner
	// known and fresh count the changes of the last check.
	known, fresh int64
}

// Last returns how many changes in the last call of Judge were known from the call before, and how many Judge had to check.
func (m *Cache) Last() (known, fresh int64) { return m.known, m.fresh }

// Beside returns an empty memory for another set of changes. It shares the scanner and the compiled checks with this one, which are
// expensive and do not depend on changes. Do not use the two at the same time.
func (m *Cache) Beside() *Cache {
	if m.checks == nil {
		m.checks = make(map[string]compiled)
	}
	return &Cache{scanner: m.secrets(), checks: m.checks}
}

// secrets is the scanner, made when it is needed first.
func (m *Cache) secrets() *secrets.Scanner {
	if m.scanner == nil {
		m.scanner = secrets.New()
	}
	return m.scanner
}

// begin starts the counts at zero. There may be no memory.
func (m *Cache) begin() {
	if m != nil {
		m.known, m.fresh = 0, 0
	}
}

// pair is the two sides of one change as they arrive.
type pair struct {
	// missing counts the sides that have not arrived; it is 0 where none is waited for, or one cannot be had.
	missing  int
	old, now []byte
}

// take keeps one side.
func (p *pair) take(s side, content []byte) {
	p.missing--
	if s.now {
		p.now = content
		return
	}
	p.old = content
}

// look reads what changed and finds out the facts. What is remembered is not read again.
func (v *view) look() {
	v.facts = make([]facts, len(v.changes))
	v.Cache.begin()
	var ids []string
	// sides says for each id which change and which side it is.
	var sides []side
	pairs := make([]pair, len(v.changes))
	for i, c := range v.changes {
		if known, ok := v.remembered(c); ok {
			v.facts[i] = known
			if !c.read() {
				v.work += known.work
			}
			continue
		}
		p := pair{old: target(c.Old), now: target(c.New)}
		if c.read() && c.New.regular() && c.New.Size > maxContent {
			v.facts[i].fault = tooLarge(c.New.Size)
			continue
		}
		for _, s := range c.sides(i) {
			ids, sides = append(ids, s.of(c).ID), append(sides, s)
			p.missing++
		}
		if p.missing == 0 {
			v.facts[i] = v.inspect(c, p.old, p.now, v.work)
			if !c.read() {
				v.work += v.facts[i].work
			}
			continue
		}
		pairs[i] = p
	}
	v.read(ids, sides, pairs)
	v.remember()
}

// side is the old or the new side of a change, by its index.
type side struct {
	change int
	now    bool
}

func (s side) of(c Change) Entry {
	if s.now {
		return c.New
	}
	return c.Old
}

// sides of change i that have to be read, and can be.
func (c Change) sides(i int) []side {
	if !c.read() {
		return nil
	}
	var sides []side
	for _, s := range []side{{i, false}, {i, true}} {
		if e := s.of(c); e.regular() && e.Size <= maxContent {
			sides = append(sides, s)
		}
	}
	return sides
}

// read asks for contents. A change of which one side cannot be had, or is never brought, stays at fault.
func (v *view) read(ids []string, sides []side, pairs []pair) {
	for _, s := range sides {
		v.facts[s.change].fault = "the watchdog cannot read its content from the trusted repository"
	}
	if len(ids) == 0 || v.Contents == nil {
		return
	}
	summed := 0
	v.Contents(ids, maxContent, func(i int, content []byte, ok bool) {
		s := sides[i]
		p := &pairs[s.change]
		switch {
		case p.missing == 0 || v.stopped():
		case !ok:
			*p = pair{}
		default:
			p.take(s, content)
			if p.missing == 0 {
				// The work of what stands before this change, whether it was remembered or not: a memory changes nothing.
				for ; summed < s.change; summed++ {
					if v.changes[summed].read() {
						v.work += v.facts[summed].work
					}
				}
				v.facts[s.change] = v.inspect(v.changes[s.change], p.old, p.now, v.work)
				*p = pair{}
			}
		}
	})
}

// remembered gives the facts of a change that was looked at before.
func (v *view) remembered(c Change) (facts, bool) {
	if v.Cache == nil {
		return facts{}, false
	}
	known, ok := v.Cache.facts[factsKey{c.Path, c.Old, c.New}]
	if ok {
		v.Cache.known++
	} else {
		v.Cache.fresh++
	}
	return known, ok
}

// remember keeps the facts of this check, and no others: a memory is no larger than one set of changes. What could
// not be read is read again.
func (v *view) remember() {
	if v.Cache == nil {
		return
	}
	v.Cache.facts = make(map[factsKey]facts, len(v.changes))
	for i, c := range v.changes {
		if v.facts[i].lasts() {
			v.Cache.facts[factsKey{c.Path, c.Old, c.New}] = v.facts[i]
		}
	}
}

// read says whether the content of a change has to be read.
func (c Change) read() bool { return c.Old.ID != c.New.ID || c.Old.regular() != c.New.regular() }

// inspect finds out the facts of one change, given the work that was spent before. A side that is not a file or link, or too
// large an old one, is nil.
func (v *view) inspect(c Change, old, now []byte, spent int64) facts {
	var f facts
	if !gitBinary(old) && !gitBinary(now) && c.Old.Size <= maxContent {
		f.lines = countLines(old, now)
	}
	switch {
	case c.New.regular() && (c.New.ID != c.Old.ID || !c.Old.regular()):
		f.binary = bytes.IndexByte(now, 0) >= 0
		if !f.binary && readAsCode(c.Path) {
			f.hidden = findHidden(now, v.stopped)
			if f.hidden.count > 0 && f.hidden.count <= findHidden(old, v.stopped).count {
				f.hidden = hidden{}
			}
		}
		v.search(&f, c.Path, old, now, spent)
	case c.New.Mode == ModeSymlink && !bytes.Equal(old, now):
		v.search(&f, c.Path, old, now, spent)
	}
	return f
}

// search looks for secrets, with the work that a file may take or what is left of all.
func (v *view) search(f *facts, path string, old, now []byte, spent int64) {
	budget := min(int64(secrets.Budget), max(0, maxWork-spent))
	var err error
	f.secrets, f.work, err = v.scanner().Find(v.ctx, budget, path, old, now)
	switch {
	case err == nil:
	case !errors.Is(err, secrets.ErrTooHard): // the check ends with its context
		f.fault = err.Error()
	case budget < secrets.Budget:
		f.hard = tooMuchWork
	default:
		f.hard = tooHard
	}
}

// Why a content is not checked.
const (
	tooHard     = "the search for secrets in this file takes too much work"
	tooMuchWork = "the search for secrets in all changed files together takes too much work, and this file is not searched to its end"
)

// scanner for secrets.
func (v *view) scanner() *secrets.Scanner {
	if v.Cache == nil {
		v.Cache = &Cache{}
	}
	return v.Cache.secrets()
}

// gitBinary says what git diff takes for binary: a NUL within the first 8000 bytes (xdiff-interface.c).
func gitBinary(content []byte) bool {
	const first = 8000
	return bytes.IndexByte(content[:min(len(content), first)], 0) >= 0
}

// regular says whether an entry is a file.
func (e Entry) regular() bool { return e.Mode == ModeFile || e.Mode == ModeExecutable }

// target is what git diff shows for a symbolic link: one line without an end.
func target(e Entry) []byte {
	if e.Mode != ModeSymlink {
		return nil
	}
	return []byte(e.Target)
}

// lines counts the changed lines of all files.
func (v *view) lines() LineCounts {
	var all LineCounts
	for _, f := range v.facts {
		all.Added += f.lines.Added
		all.Removed += f.lines.Removed
	}
	return all
}
