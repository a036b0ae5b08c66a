// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"
)

// Glob matches a whole name, such as that of a branch, segment by segment. Its syntax is that of path patterns, but it matches only the
// whole name, and nothing below it. "**" stands for any number of segments, at the end for one or more.
type Glob struct{ segments []segment }

// ParseGlob says why a glob cannot be used.
func ParseGlob(text string) (Glob, error) {
	if err := checkText(text); err != nil {
		return Glob{}, fmt.Errorf("glob %s: %w", quoteName(text), err)
	}
	parts := slices.CompactFunc(strings.Split(text, "/"), func(a, b string) bool { return a == anyDirs && b == anyDirs })
	if parts[len(parts)-1] == anyDirs {
		parts = append(parts, "*")
	}
	var g Glob
	for _, part := range parts {
		s, err := parseSegment(part, false)
		if err != nil {
			return Glob{}, fmt.Errorf("glob %s: %w", quoteName(text), err)
		}
		g.segments = append(g.segments, s)
	}
	return g, nil
}

// Match says whether the glob matches a name.
func (g Glob) Match(name string) bool { return matchSegments(g.segments, appendNames(nil, name)) }
