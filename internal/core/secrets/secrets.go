// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package secrets finds keys and tokens in texts, by the rules of gitleaks: a keyword, a regular expression, the entropy
// of what it matches, and lists of exceptions. It says where a secret is and of which kind, and never
// what it is. It ignores comments that ask for an exception ("gitleaks:allow"): the author of the secret could write them too. A Redactor
// replaces each secret with a mark.
package secrets

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Finding is what looks like a secret.
type Finding struct {
	// Rule of gitleaks that it matches, such as "github-pat".
	Rule string
	// Line that it begins on, from 1.
	Line int
}

// rule finds one kind of secret.
type rule struct {
	id, regex string
	// path that files must have; of a rule without a regex, all that it looks at.
	path string
	// entropy that a secret must exceed, in bits a byte; 0 means any.
	entropy float64
	// group of the regex that is the secret; 0 stands for the first that is not empty, or all that matched.
	group int
	// keywords of which a text must have one, in lower case.
	keywords []string
	allow    []allowlist
}

// allowlist says which matches are not secrets: what one of its lists has, or, with all, what every list has that is not empty.
type allowlist struct {
	all bool
	// target of the regexes: "match", "line", or the secret.
	target                    string
	paths, regexes, stopwords []string
}

// generic is the rule whose keywords nearly every source has. What it finds is a secret only with a character that no
// name has, and counts only where no other rule says it better.
const generic = "generic-api-key"

const (
	// Budget is the work that one file may take: less than half a second. Of 650 MB of Go modules, their archives and the
	// Go toolchain no file took a half of it.
	Budget = 60_000_000
	// maxFindings bounds what is reported of one text.
	maxFindings = 16
)

// Scanner finds secrets. It compiles its rules once, when it needs them. It is not safe for concurrent use.
type Scanner struct {
	words *words
	// rules that look at texts, and what is known of each, where it was needed.
	rules []*rule
	known []*candidate
	// pathRules look only at the name of a file.
	pathRules []*candidate
	compiled  map[string]*regexp.Regexp
	// ended, open, opened and heard are room for a search, see there. Nothing is open between two searches.
	ended, opened []int
	open          []span
	heard         []keyword
}

// New makes a scanner.
func New() *Scanner {
	s := &Scanner{compiled: make(map[string]*regexp.Regexp)}
	byWord := make(map[string][]int)
	for i := range table {
		if table[i].regex == "" {
			s.pathRules = append(s.pathRules, newPathRule(&table[i]))
			continue
		}
		for _, word := range table[i].keywords {
			if table[i].id == privateKey { // dashes do not make words: there are lines of them
				word = strings.TrimPrefix(word, dashes)
			}
			byWord[word] = append(byWord[word], len(s.rules))
		}
		s.rules, s.known = append(s.rules, &table[i]), append(s.known, nil)
	}
	s.heard = make([]keyword, 0, maxHeard)
	s.ended, s.open = make([]int, len(s.rules)), make([]span, len(s.rules))
	s.words = newWords(byWord)
	return s
}

// rule is what is known of a rule, found out when it is needed first.
func (s *Scanner) rule(i int) *candidate {
	if s.known[i] == nil {
		s.known[i] = newCandidate(s.rules[i])
	}
	return s.known[i]
}

// Find finds the secrets that a new text has and the old one has not, sorted by line, at most maxFindings. Its time is proportional to the
// texts, plus a bounded amount of work for close checks: at most the budget. It returns the work that it used. The error is ErrTooHard for
// a text that needs more, or the context's error.
func (s *Scanner) Find(ctx context.Context, budget int64, path string, old, now []byte) (findings []Finding, work int64, err error) {
	f := s.newSearch(ctx, budget, path, old, now)
	lower := strings.ToLower(path)
	for _, c := range s.pathRules {
		if strings.Contains(lower, c.part) && f.inPath(c.path) && !f.allowed(c.rule, nil, nil, nil) {
			f.list = append(f.list, Place{Rule: c.id})
		}
	}
	f.run()
	s.opened = f.opened
	if f.err != nil {
		return nil, budget - max(f.budget, 0), f.err
	}
	found := f.findings()
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), boolean(a.Rule == generic)-boolean(b.Rule == generic), strings.Compare(a.Rule, b.Rule))
	})
	found = slices.Compact(found)
	for i := len(found) - 1; i > 0; i-- {
		if found[i].Rule == generic && found[i-1].Line == found[i].Line {
			found = slices.Delete(found, i, i+1)
		}
	}
	return found[:min(len(found), maxFindings)], budget - f.budget, nil
}

// findings counts lines, once through the text.
func (f *search) findings() []Finding {
	slices.SortFunc(f.list, func(a, b Place) int { return cmp.Compare(a.From, b.From) })
	var list []Finding
	line, at := 1, 0
	for _, l := range f.list {
		line += bytes.Count(f.text[at:l.From], []byte{'\n'})
		at = l.From
		list = append(list, Finding{Rule: l.Rule, Line: line})
	}
	return list
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// group gives the secret's place in a match: the group asked for, the first that is not empty, or all of it.
func group(m []int, wanted int) (from, to int) {
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 && m[i+1] > m[i] && (wanted == 0 || i == 2*wanted) {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// allowed says whether a match is not a secret. Files that are let through everywhere by their name (lock files, images, modules of others)
// are so only for the generic rule: in 2,226 such files of Go modules only that one gave false alarms, and the author of a secret chooses
// the name.
func (f *search) allowed(r *rule, secret, match, line []byte) bool {
	general := everywhere
	if r.id != generic {
		general.paths = nil
	}
	if f.lets(general, secret, match, line) {
		return true
	}
	return slices.ContainsFunc(r.allow, func(a allowlist) bool { return f.lets(a, secret, match, line) })
}

// allowWork is the work of finding that out.
func (f *search) allowWork(r *rule, s found) int64 {
	secret, match := int64(s.to-s.from), int64(s.matchTo-s.matchFrom)
	work := int64(0)
	for _, a := range append([]allowlist{everywhere}, r.allow...) {
		text := secret
		switch a.target {
		case "match":
			text = match
		case "line":
			text = match + 2*maxLineAround
		}
		work += int64(len(a.regexes))*(attempt+allowedSize*text) + int64(len(a.stopwords))*(secret+textsPerWork)/textsPerWork
	}
	return work
}

func (f *search) lets(a allowlist, secret, match, line []byte) bool {
	text := secret
	switch a.target {
	case "match":
		text = match
	case "line":
		text = line
	}
	some, all := false, true
	note := func(list []string, has func(string) bool) {
		if len(list) > 0 {
			in := slices.ContainsFunc(list, has)
			some, all = some || in, all && in
		}
	}
	note(a.paths, f.inPath)
	note(a.regexes, func(regex string) bool { return f.regex(regex).Match(text) })
	if !some || a.all {
		lower := strings.ToLower(string(secret))
		note(a.stopwords, func(word string) bool { return strings.Contains(lower, word) })
	}
	if a.all {
		return all && some
	}
	return some
}

// entropy is Shannon's, in bits a byte.
func entropy(text []byte) float64 {
	var counts [256]int
	for _, c := range text {
		counts[c]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
