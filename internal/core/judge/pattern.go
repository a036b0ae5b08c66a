// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// maxPattern bounds a pattern in bytes, as the API does.
const maxPattern = 512

// anyDirs is the segment that stands for any number of directories.
const anyDirs = "**"

// ValidatePattern says why a pattern cannot be used, or nil. A pattern that passes can be used to grant and to guard.
func ValidatePattern(text string) error {
	if _, err := parsePattern(text, false); err != nil {
		return err
	}
	_, err := parsePattern(text, true)
	return err
}

// pattern is a parsed pattern. It matches paths; a path that it matches covers all below it.
type pattern struct {
	// text as written.
	text string
	// segments between slashes; a floating pattern begins with anyDirs.
	segments []segment
	// inside matches directories only. No change is one, so that it matches what is below.
	inside bool
	// inner is true where "**" stands elsewhere than at the beginning.
	inner bool
}

// segment of a pattern: matches one name, or any number of directories.
type segment struct {
	// dirs is true for "**".
	dirs bool
	// literal name; empty where the segment has wildcards.
	literal string
	// glob of a segment with wildcards, with its literal beginning and end.
	glob, prefix, suffix string
	// star is true where the glob is prefix*suffix.
	star bool
}

// floating says whether the pattern matches at any depth.
func (p pattern) floating() bool { return p.segments[0].dirs }

// parsePattern parses a pattern to be matched exactly, or as a guard: then segments are folded like the names they are
// compared with.
func parsePattern(text string, guard bool) (pattern, error) {
	if err := checkText(text); err != nil {
		return pattern{}, fmt.Errorf("pattern %s: %w", quoteName(text), err)
	}
	p := pattern{text: text}
	body, anchored := strings.CutPrefix(text, "/")
	body, p.inside = strings.CutSuffix(body, "/")
	anchored = anchored || strings.Contains(body, "/")
	parts := slices.CompactFunc(strings.Split(body, "/"), func(a, b string) bool { return a == anyDirs && b == anyDirs })
	if last := len(parts) - 1; parts[last] == anyDirs {
		// All that is inside: of a directory, or everything.
		if last > 0 && !p.inside {
			parts, p.inside = parts[:last], true
		} else {
			parts = append(parts, "*")
		}
	}
	if !anchored && parts[0] != anyDirs {
		parts = append([]string{anyDirs}, parts...)
	}
	for i, part := range parts {
		s, err := parseSegment(part, guard)
		if err != nil {
			return pattern{}, fmt.Errorf("pattern %s: %w", quoteName(text), err)
		}
		p.segments = append(p.segments, s)
		p.inner = p.inner || s.dirs && i > 0
	}
	return p, nil
}

// checkText refuses what .gitignore knows but a list of areas should not have, and what would not do what it says.
func checkText(text string) error {
	switch {
	case text == "":
		return errors.New("is empty; \"**\" matches everything")
	case len(text) > maxPattern:
		return fmt.Errorf("is longer than %d bytes", maxPattern)
	case !utf8.ValidString(text):
		return errors.New("is not UTF-8")
	case strings.ContainsFunc(text, plain.Invisible):
		return errors.New("has invisible characters")
	case strings.TrimSpace(text) != text:
		return errors.New("begins or ends with a space")
	case text[0] == '!':
		return errors.New(`begins with "!": negation is not supported, list what is meant (or escape it: "\!")`)
	}
	return nil
}

func parseSegment(text string, guard bool) (segment, error) {
	switch text {
	case anyDirs:
		return segment{dirs: true}, nil
	case "":
		return segment{}, errors.New(`has an empty name: write "/" once between names`)
	case ".", "..":
		return segment{}, fmt.Errorf("has the name %q: paths are canonical and relative to the repository's root", text)
	}
	literal, wild, err := scanSegment(text)
	if err != nil {
		return segment{}, err
	}
	if !wild {
		if guard {
			literal = guardName(literal)
		}
		return segment{literal: literal}, nil
	}
	if guard {
		text = fold(text)
	}
	return globSegment(text)
}

// globSegment prepares a segment with wildcards.
func globSegment(text string) (segment, error) {
	text = oneStar(text)
	if _, _, err := scanSegment(text); err != nil {
		return segment{}, err
	}
	if !doublestar.ValidatePattern(text) {
		return segment{}, errors.New("is malformed: check its brackets and backslashes")
	}
	s := segment{glob: text}
	if strings.ContainsRune(text, '\\') {
		return s, nil // what looks literal may be escaped
	}
	first, last := strings.IndexAny(text, "*?["), strings.LastIndexAny(text, "*?]")
	s.prefix, s.suffix = text[:first], text[last+1:]
	s.star = first == last && text[first] == '*'
	return s, nil
}

// oneStar makes every run of stars inside a name one star. An escaped star is not part of a run.
func oneStar(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			b.WriteByte(text[i])
			i++
		case text[i] == '*' && i+1 < len(text) && text[i+1] == '*':
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// match says whether a name matches the segment.
func (s segment) match(name string) bool {
	if s.literal != "" {
		return s.literal == name
	}
	if len(name) < len(s.prefix)+len(s.suffix) ||
		!strings.HasPrefix(name, s.prefix) || !strings.HasSuffix(name, s.suffix) {
		return false
	}
	return s.star || doublestar.MatchUnvalidated(s.glob, name)
}

// scanSegment reads a segment: its literal text, whether it has wildcards, and what is wrong with it.
func scanSegment(text string) (literal string, wild bool, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
			if i == len(text) {
				return "", false, errors.New("has a backslash before a slash or at its end")
			}
			b.WriteByte(text[i])
		case '*', '?':
			wild = true
		case '{', '}':
			return "", false, fmt.Errorf(`has %q: braces are not supported, write one pattern for each alternative (or escape it: "\%c")`, c, c)
		case '[':
			wild = true
			length, err := scanClass(text[i:])
			if err != nil {
				return "", false, err
			}
			i += length - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), wild, nil
}

// scanClass reads a class such as "[a-z_]" and returns its length. Only plain classes are taken, whose meaning does not
// depend on the matcher or on case folding.
func scanClass(text string) (int, error) {
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case i == 1 && (c == '!' || c == '^'):
			return 0, errors.New("has a negated class: negation is not supported, list what is meant")
		case c == ']' && i > 1:
			return i + 1, nil
		case c == ']' || c == '[' || c == '\\' || c >= utf8.RuneSelf:
			return 0, fmt.Errorf("has a class (%s) with brackets, backslashes or letters beyond ASCII: write one pattern for each alternative", quoteName(text))
		case c == '-' && i > 1 && i+1 < len(text) && text[i+1] != ']':
			if !plainRange(text[i-1], text[i+1]) {
				return 0, fmt.Errorf("has a class with the range %q: ranges must be within a-z, A-Z or 0-9", text[i-1:i+2])
			}
		}
	}
	return 0, errors.New(`has a "[" that is not closed (escape it: "\[")`)
}

func plainRange(lo, hi byte) bool {
	within := func(first, last byte) bool { return first <= lo && lo <= hi && hi <= last }
	return within('a', 'z') || within('A', 'Z') || within('0', '9')
}
