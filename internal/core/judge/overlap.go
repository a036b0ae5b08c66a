// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "strings"

// Overlaps reports whether two plans may change a common path, and names a pattern of each that does; "" stands for
// everything, where a plan does not say. It errs on the side of yes: two patterns that can match a common path always
// overlap, and forbidden areas are not taken off.
func (p Plan) Overlaps(q Plan) (mine, others string, ok bool) {
	for _, m := range p.bounds() {
		for _, o := range q.bounds() {
			one, other, meet := overlap(m, o)
			if !meet {
				return "", "", false
			}
			if one != "" || mine == "" {
				mine = one
			}
			if other != "" || others == "" {
				others = other
			}
		}
	}
	return mine, others, true
}

// bounds are lists of patterns of which a path must match each that is not empty.
func (p Plan) bounds() [][]string {
	var files []string
	if p.Files != nil {
		files = append(append(append(files, p.Files.Create...), p.Files.Modify...), p.Files.Delete...)
	}
	if len(files) == 0 {
		return [][]string{p.Allowed}
	}
	return [][]string{p.Allowed, files}
}

// overlap finds two patterns that may match a common path. An empty list matches everything.
func overlap(a, b []string) (one, other string, ok bool) {
	switch {
	case len(a) == 0 && len(b) == 0:
		return "", "", true
	case len(a) == 0:
		return "", b[0], true
	case len(b) == 0:
		return a[0], "", true
	}
	for _, one := range a {
		for _, other := range b {
			if patternsMeet(one, other) {
				return one, other, true
			}
		}
	}
	return "", "", false
}

// patternsMeet reports whether two patterns may match a common path. One that cannot be used may mean anything.
func patternsMeet(a, b string) bool {
	p, errA := parsePattern(a, false)
	q, errB := parsePattern(b, false)
	if errA != nil || errB != nil {
		return true
	}
	m := meeting{a: p.segments, b: q.segments, seen: map[[2]int]bool{}}
	return m.from(0, 0)
}

// meeting looks for a path that two patterns match, reading both name by name.
type meeting struct {
	a, b []segment
	// seen are the places that were tried: each is tried once, so that the time is at most the product of the lengths.
	seen map[[2]int]bool
}

// from reports whether the rests of both patterns can match the rest of a path. Where one is at its end, what the other
// has yet to match is below what the one covers.
func (m *meeting) from(i, j int) bool {
	if i == len(m.a) || j == len(m.b) {
		return true
	}
	if m.seen[[2]int{i, j}] {
		return false
	}
	m.seen[[2]int{i, j}] = true
	a, b := m.a[i], m.b[j]
	switch {
	case a.dirs || b.dirs:
		// "**" takes no name, or the one that the other takes.
		return a.dirs && m.from(i+1, j) || b.dirs && m.from(i, j+1) || a.dirs && !b.dirs && m.from(i, j+1) || b.dirs && !a.dirs && m.from(i+1, j)
	default:
		return a.meets(b) && m.from(i+1, j+1)
	}
}

// meets reports whether two segments may match a common name.
func (s segment) meets(t segment) bool {
	switch {
	case s.literal != "":
		return t.match(s.literal)
	case t.literal != "":
		return s.match(t.literal)
	}
	begins := strings.HasPrefix(s.prefix, t.prefix) || strings.HasPrefix(t.prefix, s.prefix)
	ends := strings.HasSuffix(s.suffix, t.suffix) || strings.HasSuffix(t.suffix, s.suffix)
	return begins && ends
}
