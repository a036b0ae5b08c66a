// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strings"
)

// matcher matches paths against a list of patterns. It remembers directories, so that a check looks at each of them once: it serves one
// check, and is not safe for concurrent use.
type matcher struct {
	guard bool
	// named are the patterns whose last name is literal, by that name; wild are the others.
	named map[string][]*pattern
	wild  []*pattern
	// way are the directories on the way to guarded paths: an entry that takes the place of one moves what is guarded.
	way map[string]*pattern
	// exact has the patterns of a guard as they are written, where some have wildcards. A name can match one of them and
	// its fold not, when folding changes its length ("?" and an invisible character).
	exact *matcher
	// dirs remembers, by key, which pattern matches a directory or one above it; "" where none does.
	dirs map[string]string
	// parts is the path being matched, name by name.
	parts []string
}

// newMatcher compiles patterns. Those that cannot be used are returned as errors; the matcher has the others.
func newMatcher(texts []string, guard bool) (*matcher, []error) {
	m := &matcher{
		guard: guard,
		named: map[string][]*pattern{}, way: map[string]*pattern{},
		dirs: map[string]string{"": ""},
	}
	var errs []error
	globs := false
	for _, text := range texts {
		p, err := parsePattern(text, guard)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		globs = globs || slices.ContainsFunc(p.segments, func(s segment) bool { return s.glob != "" })
		m.add(&p)
	}
	if guard && globs {
		m.exact, _ = newMatcher(texts, false)
	}
	return m, errs
}

func (m *matcher) add(p *pattern) {
	if m.guard {
		// A file that replaces a guarded directory is a change to what is guarded.
		p.inside = false
		m.addWay(p)
	}
	if name := p.segments[len(p.segments)-1].literal; name != "" {
		m.named[name] = append(m.named[name], p)
	} else {
		m.wild = append(m.wild, p)
	}
}

// addWay adds the directories before the first wildcard of an anchored pattern.
func (m *matcher) addWay(p *pattern) {
	var key string
	for _, s := range p.segments[:len(p.segments)-1] {
		if s.literal == "" {
			return
		}
		key = join(key, s.literal)
		if m.way[key] == nil {
			m.way[key] = p
		}
	}
}

// match returns the text of a pattern that matches a path of a tree, or "".
func (m *matcher) match(path string) string {
	if len(m.named)+len(m.wild) == 0 {
		return ""
	}
	if !m.guard {
		return m.matchKey(path)
	}
	key := guardKey(path)
	by := m.matchKey(key)
	if by == "" && m.exact != nil && !(len(key) == len(path) && visibleASCII(path)) {
		by = m.exact.match(path)
	}
	return by
}

// matchKey is match for a path as the matcher compares it.
func (m *matcher) matchKey(key string) string {
	m.parts = appendNames(m.parts[:0], key)
	if by := m.above(key); by != "" {
		return by
	}
	if p, ok := m.way[key]; ok {
		return p.text
	}
	return m.find(m.parts, true)
}

// above returns the text of a pattern that matches one of the directories of a path, the uppermost first.
func (m *matcher) above(key string) string {
	dir, _ := split(key)
	if by, ok := m.dirs[dir]; ok {
		return by
	}
	by, depth := "", 0
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}
		depth++
		known, ok := m.dirs[key[:i]]
		switch {
		case ok:
			by = known
		case by == "":
			by = m.find(m.parts[:depth], false)
		}
		if !ok {
			m.dirs[key[:i]] = by
		}
	}
	return by
}

// find returns the text of a pattern that matches one path by itself; entry is false for a directory.
func (m *matcher) find(names []string, entry bool) string {
	for _, p := range m.named[names[len(names)-1]] {
		if !(p.inside && entry) && p.match(names) {
			return p.text
		}
	}
	for _, p := range m.wild {
		if !(p.inside && entry) && p.match(names) {
			return p.text
		}
	}
	return ""
}

// match says whether a pattern matches a path given by its names.
func (p *pattern) match(names []string) bool {
	segments := p.segments
	if !segments[len(segments)-1].match(names[len(names)-1]) {
		return false // most end here; the last segment is never "**"
	}
	if p.inner {
		return matchSegments(segments, names)
	}
	if p.floating() {
		segments = segments[1:]
		if len(names) < len(segments) {
			return false
		}
		names = names[len(names)-len(segments):]
	}
	if len(names) != len(segments) {
		return false
	}
	for i := range names {
		if !segments[i].match(names[i]) {
			return false
		}
	}
	return true
}

// matchSegments matches names against segments. Only the last "**" that was met has to be tried again with one more
// name: an earlier one could not take more without taking from it. So the time is at most the product of the lengths.
func matchSegments(segments []segment, names []string) bool {
	s, n := 0, 0
	retryS, retryN := -1, 0
	for n < len(names) {
		switch {
		case s < len(segments) && segments[s].dirs:
			retryS, retryN = s, n
			s++
		case s < len(segments) && segments[s].match(names[n]):
			s++
			n++
		case retryS >= 0:
			retryN++
			s, n = retryS+1, retryN
		default:
			return false
		}
	}
	for s < len(segments) && segments[s].dirs {
		s++
	}
	return s == len(segments)
}

// guardKey is a path as guards compare it: the alias of each name.
func guardKey(path string) string {
	if simple(path) {
		return strings.ToLower(path)
	}
	var b strings.Builder
	for name := range strings.SplitSeq(path, "/") {
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(guardName(name))
	}
	return b.String()
}

// guardName is the alias of a name, never empty and never with a slash: some characters are composed to one, and a name
// may be all invisible, yet a key must have as many names as its path.
func guardName(name string) string {
	key := strings.ReplaceAll(alias(name), "/", "\x00")
	if key == "" {
		return "\x00"
	}
	return key
}

// simple says whether the aliases of a path's names differ from them by case only, at a glance.
func simple(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case c <= ' ' || c >= 0x7f || c == ':':
			return false
		case c == '.' && (i+1 == len(path) || path[i+1] == '/'):
			return false
		}
	}
	return true
}

// appendNames appends the names of a path.
func appendNames(names []string, path string) []string {
	for name := range strings.SplitSeq(path, "/") {
		names = append(names, name)
	}
	return names
}

// split cuts a path into directory and name.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
