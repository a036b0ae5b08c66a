// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/tidewaiter/tidewaiter/internal/core/protocol"

// mostTouches bounds the comparison of paths with patterns, in steps as for plans: it takes some 2 s at most. Patterns without wildcards, or with one
// "*" in a name, take next to nothing of them.
const mostTouches = 4 << 20

// Touching compares paths with patterns. What that takes is bounded over all that it compares, because others choose both.
type Touching struct {
	// left is how many more steps it may take, as a comparison of plans.
	left int
}

// NewTouching makes a Touching.
func NewTouching() *Touching { return &Touching{left: mostTouches} }

// Plan returns the given paths that a Feature with the plan may change, and the pattern of the plan that matches the first of them ("" for
// none). It does not exclude forbidden areas: a Feature that must not change a path may depend on it all the more. If Plan stops at the
// limit of comparisons, all is false, and the result may lack paths.
func (t *Touching) Plan(p protocol.Plan, paths []string) (pattern string, touched []string, all bool) {
	touched, all = paths, true
	for _, bound := range bounds(p) {
		if len(bound) > 0 {
			var compared bool
			pattern, touched, compared = t.Matching(bound, touched)
			all = all && compared
		}
	}
	return pattern, touched, all
}

// Matching returns the given paths that patterns match, and the pattern that matches the first of them. An unusable pattern matches
// nothing. all is false if Matching stopped at the limit of comparisons.
func (t *Touching) Matching(patterns, paths []string) (pattern string, matching []string, all bool) {
	m, _ := newMatcher(patterns, false)
	globs := m.globs()
	for _, path := range paths {
		if t.left -= 1 + globs*len(path)/matched; t.left < 0 {
			return pattern, matching, false
		}
		by := m.match(path)
		if by == "" {
			continue
		}
		if matching = append(matching, path); pattern == "" {
			pattern = by
		}
	}
	return pattern, matching, true
}

// globs is how long the names of patterns are together that have wildcards at several places.
func (m *matcher) globs() (sum int) {
	count := func(patterns []*pattern) {
		for _, p := range patterns {
			for _, s := range p.segments {
				if !s.star {
					sum += len(s.glob)
				}
			}
		}
	}
	count(m.wild)
	for _, patterns := range m.named {
		count(patterns)
	}
	return sum
}
