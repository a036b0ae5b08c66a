// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

// Paths are the paths that patterns match, or that are below one that they match. It is not safe for concurrent use.
type Paths struct{ m *matcher }

// NewPaths of patterns. A pattern that ValidatePattern refuses matches nothing.
func NewPaths(patterns []string) Paths {
	m, _ := newMatcher(patterns, false)
	return Paths{m: m}
}

// Has says whether a path is among them.
func (p Paths) Has(path string) bool { return p.m.match(path) != "" }
