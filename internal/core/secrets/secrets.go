// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package secrets finds keys and tokens in texts, by the rules of gitleaks: a keyword, a regular expression, the entropy
// of what it matches, and lists of what is no secret after all. It says where a secret is and of which kind, and never
// what it is. Comments that ask to be let through ("gitleaks:allow") are not heeded: whoever writes the secret could
// write them too.
package secrets

import (
	"bytes"
	"cmp"
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
	// entropy that a secret must exceed, in bits a byte; 0 is no demand.
	entropy float64
	// group of the regex that is the secret; 0 stands for the first that is not empty, or all that matched.
	group int
	// keywords of which a text must have one, in lower case; none where every text may have the secret.
	keywords []string
	allow    []allowlist
}

// allowlist says what is no secret: what one of its lists has, or, with all, what every list has that is not empty.
type allowlist struct {
	all bool
	// target of the regexes: "match", "line", or the secret.
	target                    string
	paths, regexes, stopwords []string
}

// generic is the rule whose keywords nearly every source has. What it finds is a secret only with a character that no
// name has, and counts only where no other rule says it better.
const generic = "generic-api-key"

// maxFindings bounds what is reported of one text.
const maxFindings = 16

// Scanner finds secrets. It compiles what it needs, once; it is not for several goroutines.
type Scanner struct {
	words *words
	rules []*candidate
	// pathRules look at the name of a file alone.
	pathRules []*candidate
	compiled  map[string]*regexp.Regexp
	// last place of each rule in the text that is searched, and one.
	last []int
}

// candidate is a rule with what is known of its regex at a glance.
type candidate struct {
	*rule
	// whole: what it matches can span lines, so that it is looked for in the whole text.
	whole bool
	// assigned: it matches a value that is assigned to a name with the keyword in it.
	assigned bool
}

// New makes a scanner.
func New() *Scanner {
	s := &Scanner{compiled: make(map[string]*regexp.Regexp)}
	byWord := make(map[string][]int)
	for i := range table {
		c := &candidate{rule: &table[i]}
		if c.regex == "" {
			s.pathRules = append(s.pathRules, c)
			continue
		}
		c.assigned = strings.Contains(c.regex, `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)`)
		c.whole = strings.Contains(c.regex, `[\s\S`) || strings.Contains(c.regex, `(?s:`) || strings.Contains(c.regex, `[\r\n]`)
		for _, word := range c.keywords {
			byWord[word] = append(byWord[word], len(s.rules))
		}
		s.rules = append(s.rules, c)
	}
	s.words, s.last = newWords(byWord), make([]int, len(s.rules))
	return s
}

// Find finds the secrets that a new text has and the old one has not, in order of their lines, at most maxFindings.
func (s *Scanner) Find(path string, old, now []byte) []Finding {
	var found []Finding
	for _, c := range s.pathRules {
		if s.match(c.path, path) && !s.allowed(c.rule, path, nil, nil, nil) {
			found = append(found, Finding{Rule: c.id, Line: 1})
		}
	}
	for _, p := range s.places(now) {
		found = s.search(found, path, old, now, p)
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), boolean(a.Rule == generic)-boolean(b.Rule == generic), strings.Compare(a.Rule, b.Rule))
	})
	found = slices.Compact(found)
	for i := len(found) - 1; i > 0; i-- {
		if found[i].Rule == generic && found[i-1].Line == found[i].Line {
			found = slices.Delete(found, i, i+1)
		}
	}
	return found[:min(len(found), maxFindings)]
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// search looks for one rule's secrets in a part of the text.
func (s *Scanner) search(found []Finding, path string, old, text []byte, p place) []Finding {
	c := s.rules[p.rule]
	part := text[p.from:p.to]
	for _, m := range s.regex(c.regex).FindAllSubmatchIndex(part, -1) {
		from, to := group(m, c.group)
		secret := bytes.Trim(part[from:to], "\n")
		switch {
		case c.path != "" && !s.match(c.path, path):
		case c.entropy > 0 && entropy(secret) <= c.entropy:
		case bytes.Contains(old, secret):
		case s.allowed(c.rule, path, secret, part[m[0]:m[1]], lineAround(text, p.from+m[0], p.from+m[1])):
		default:
			found = append(found, Finding{Rule: c.id, Line: 1 + bytes.Count(text[:p.from+from], []byte{'\n'})})
		}
	}
	return found
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

// allowed says whether a match is no secret after all. Files that are let through everywhere by their name (lock files,
// images, modules of others) are so for the generic rule alone: in 2,226 such files of Go modules only that one gave
// false alarms, and whoever writes a secret chooses the name.
func (s *Scanner) allowed(r *rule, path string, secret, match, line []byte) bool {
	general := everywhere
	if r.id != generic {
		general.paths = nil
	}
	if s.lets(general, path, secret, match, line) {
		return true
	}
	return slices.ContainsFunc(r.allow, func(a allowlist) bool { return s.lets(a, path, secret, match, line) })
}

func (s *Scanner) lets(a allowlist, path string, secret, match, line []byte) bool {
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
	note(a.paths, func(regex string) bool { return s.match(regex, path) })
	note(a.regexes, func(regex string) bool { return s.regex(regex).Match(text) })
	if !some || a.all {
		lower := strings.ToLower(string(secret))
		note(a.stopwords, func(word string) bool { return strings.Contains(lower, word) })
	}
	if a.all {
		return all && some
	}
	return some
}

func (s *Scanner) match(regex, path string) bool { return s.regex(regex).MatchString(path) }

func (s *Scanner) regex(text string) *regexp.Regexp {
	r, ok := s.compiled[text]
	if !ok {
		r = regexp.MustCompile(text) // a test compiles all of them
		s.compiled[text] = r
	}
	return r
}

// lineAround is the text from the beginning of the line that has from to the end of the line that has to.
func lineAround(text []byte, from, to int) []byte {
	begin := bytes.LastIndexByte(text[:from], '\n') + 1
	end := bytes.IndexByte(text[to:], '\n')
	if end < 0 {
		return text[begin:]
	}
	return text[begin : to+end]
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
