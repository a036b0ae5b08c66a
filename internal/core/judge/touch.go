// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

// Touched are those of some paths that a plan may change, and a pattern that names one of them; "" stands for everything, where the plan does
// not say. Forbidden areas are not taken off: somebody who may not change a path may depend on it all the more.
func (p Plan) Touched(paths []string) (pattern string, touched []string) {
	touched = paths
	for _, bound := range p.bounds() {
		if len(bound) > 0 {
			pattern, touched = Matching(bound, touched)
		}
	}
	return pattern, touched
}

// Matching are those of some paths that patterns match, and the pattern that matches the first of them. A pattern that cannot be used matches
// nothing.
func Matching(patterns, paths []string) (pattern string, matching []string) {
	m, _ := newMatcher(patterns, false)
	for _, path := range paths {
		by := m.match(path)
		if by == "" {
			continue
		}
		if matching = append(matching, path); pattern == "" {
			pattern = by
		}
	}
	return pattern, matching
}
