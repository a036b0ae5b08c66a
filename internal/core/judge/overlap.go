// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// mostPlanSteps bounds the comparison of a plan with all others, as mostSteps bounds that with rules: it takes some 3 s at most. Twenty plans of 500 files
	// take most of them.
	mostPlanSteps = 16 << 20
	// matched is how many bytes of a pattern are compared with a byte of a name in one step, where it has wildcards at several places.
	matched = 16
)

// PlanComparison compares a plan with others.
type PlanComparison struct {
	comparison

	plan [][]compared
}

// Compare a plan with others. The time that it takes is bounded over all of them.
func Compare(p protocol.Plan) *PlanComparison {
	c := &PlanComparison{comparison: comparison{left: mostPlanSteps}}
	c.plan = c.read(p)
	return c
}

// Within is the comparison with a bound of its own, in steps. The patterns of the plan are already read.
func (c *PlanComparison) Within(steps int) *PlanComparison {
	return &PlanComparison{comparison: comparison{guards: c.guards, left: steps}, plan: c.plan}
}

// Overlaps reports whether two plans may change a common path, and names a pattern of each that does; "" stands for everything, if a plan
// has no areas. In doubt the answer is yes. Two patterns that can match a common path always overlap. Forbidden areas do not reduce a plan,
// and plans that take too long to compare overlap.
func (c *PlanComparison) Overlaps(q protocol.Plan) (mine, others string, ok bool) {
	return c.overlap(c.plan, c.read(q))
}

// comparison of patterns.
type comparison struct {
	// guards compares names as guards do, too: patterns meet that can match two paths of which a guard takes one for the other.
	guards bool
	// left is how many more bytes it may read and names it may compare. After these all patterns count as ones that meet.
	left int
}

// compared is a pattern to be compared: read exactly and, if the caller wants that, as a guard. One that cannot be used has neither.
type compared struct {
	text          string
	exact, folded []segment
}

// bounds of a plan are lists of patterns of which a path must match each that is not empty.
func bounds(p protocol.Plan) [][]string {
	var files []string
	if p.Files != nil {
		files = append(append(append(files, p.Files.Create...), p.Files.Modify...), p.Files.Delete...)
	}
	lists := [][]string{p.Allowed}
	if len(p.Proposed) > 0 {
		lists = append(lists, p.Proposed)
	}
	if len(files) > 0 {
		lists = append(lists, files)
	}
	return lists
}

// read the lists of patterns of a plan.
func (c *comparison) read(p protocol.Plan) [][]compared {
	var lists [][]compared
	for _, texts := range bounds(p) {
		list := make([]compared, len(texts))
		for i, text := range texts {
			list[i] = c.pattern(text)
		}
		lists = append(lists, list)
	}
	return lists
}

func (c *comparison) pattern(text string) compared {
	r := compared{text: text}
	if c.left -= len(text); c.left < 0 {
		return r
	}
	if p, err := parsePattern(text, false); err == nil {
		r.exact = p.segments
	}
	if p, err := parsePattern(text, true); err == nil && c.guards {
		r.folded = p.segments
	}
	return r
}

func (c *comparison) overlap(p, q [][]compared) (mine, others string, ok bool) {
	for _, m := range p {
		for _, o := range q {
			one, other, meet := c.lists(m, o)
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

// lists finds two patterns that may match a common path. An empty list matches everything.
func (c *comparison) lists(a, b []compared) (one, other string, ok bool) {
	switch {
	case len(a) == 0 && len(b) == 0:
		return "", "", true
	case len(a) == 0:
		return "", b[0].text, true
	case len(b) == 0:
		return a[0].text, "", true
	}
	for _, one := range a {
		for _, other := range b {
			if c.meet(one, other) {
				return one.text, other.text, true
			}
		}
	}
	return "", "", false
}

// meet reports whether two patterns may match a common path. One that cannot be used may mean anything.
func (c *comparison) meet(a, b compared) bool {
	if a.exact == nil || b.exact == nil {
		return true
	}
	exact, folded := meeting{a: a.exact, b: b.exact, left: &c.left}, meeting{a: a.folded, b: b.folded, left: &c.left}
	return exact.from(0, 0) || c.guards && folded.from(0, 0)
}

// meeting looks for a path that two patterns match, reading both name by name.
type meeting struct {
	a, b []segment
	// seen are the places with a "**" that were tried: each is tried once, so that the time is about the product of the lengths at most.
	seen map[[2]int]bool
	// left is how many more steps may be taken.
	left *int
}

// from reports whether the rests of both patterns can match the rest of a path. If one is at its end, what the other
// has yet to match is below what the one covers.
func (m *meeting) from(i, j int) bool {
	*m.left--
	if i == len(m.a) || j == len(m.b) || *m.left < 0 {
		return true
	}
	a, b := m.a[i], m.b[j]
	if !a.dirs && !b.dirs {
		if *m.left -= a.effort(b); *m.left < 0 {
			return true
		}
		return a.meets(b) && m.from(i+1, j+1)
	}
	if m.seen[[2]int{i, j}] {
		return false
	}
	if m.seen == nil {
		m.seen = map[[2]int]bool{}
	}
	m.seen[[2]int{i, j}] = true
	// "**" takes no name, or the one that the other takes.
	return a.dirs && m.from(i+1, j) || b.dirs && m.from(i, j+1) || a.dirs && !b.dirs && m.from(i, j+1) || b.dirs && !a.dirs && m.from(i+1, j)
}

// effort of meets, in steps in addition to the one: a name is compared with a glob in a time that is about the product of their lengths.
func (s segment) effort(t segment) int {
	if s.literal != "" {
		s, t = t, s
	}
	if s.literal != "" || t.literal == "" || s.star || len(t.literal) < len(s.prefix)+len(s.suffix) ||
		!strings.HasPrefix(t.literal, s.prefix) || !strings.HasSuffix(t.literal, s.suffix) {
		return 0
	}
	return len(s.glob) * len(t.literal) / matched
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
