// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// assignment is what the expressions of assigned values have in common.
	assignment = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)`
	// namePrefix is how they begin: with more of the name. It decides nothing but where a match begins.
	namePrefix = `[\w.-]{0,50}?`
	// maxNamePrefix is how much of the name that is.
	maxNamePrefix = 50
	// maxBeginnings bounds the beginnings that are written out of an expression.
	maxBeginnings = 256
)

// candidate is a rule with what is known of its expression at a glance.
type candidate struct {
	*rule
	// assigned: it matches a value that is assigned to a name with the keyword in it.
	assigned bool
	// lead: every match begins with a keyword, so that the expression is tried only at keywords and not searched for.
	lead bool
	// boundary: a lead must not follow a letter, a digit or "_".
	boundary bool
	// expression to try or to search for.
	expression string
	// longest is how many bytes of a text a lead can match and look at, at the most; 0 where there is no such number.
	longest int
	// size of its program, in instructions.
	size int64
	// part of the path of every file that a rule without an expression is about, in lower case.
	part string
}

// newPathRule is a rule that looks only at paths.
func newPathRule(r *rule) *candidate { return &candidate{rule: r, part: partOf(mustParse(r.path))} }

// partOf is text that is in everything that an expression matches, in lower case; it may be empty. Letters that are equal
// to others outside of ASCII are left out: K (Kelvin) and ſ (long s).
func partOf(re *syntax.Regexp) string {
	if re.Op != syntax.OpConcat {
		return ""
	}
	part := ""
	for _, sub := range re.Sub {
		if text := strings.ToLower(string(sub.Rune)); sub.Op == syntax.OpLiteral && !strings.ContainsAny(text, "ks") && len(text) > len(part) {
			part = text
		}
	}
	return part
}

func newCandidate(r *rule) *candidate {
	c := &candidate{rule: r, expression: r.regex, assigned: strings.Contains(r.regex, assignment)}
	if c.assigned {
		c.expression = strings.ReplaceAll(c.expression, namePrefix, "")
	}
	re := mustParse(c.expression)
	words, _ := beginnings(re)
	if c.lead = leads(words, r.keywords); c.lead {
		c.boundary = startsAtBoundary(re)
		c.expression = `\A(?:` + c.expression + `)`
		if n, ok := longest(re); ok {
			c.longest = n + utf8.UTFMax
		}
	}
	program, err := syntax.Compile(mustParse(c.expression).Simplify())
	if err != nil {
		panic(err) // a test compiles all of them
	}
	c.size = int64(len(program.Inst))
	return c
}

func mustParse(expression string) *syntax.Regexp {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic(err) // a test compiles all of them
	}
	return re
}

// leads says whether everything that begins with one of the words begins with a keyword.
func leads(words, keywords []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool {
		return !slices.ContainsFunc(keywords, func(k string) bool { return strings.HasPrefix(word, k) })
	})
}

// longest is how many bytes an expression matches at the most; false where there is no such number.
func longest(re *syntax.Regexp) (n int, ok bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return utf8.UTFMax * len(re.Rune), true
	case syntax.OpCharClass:
		if len(re.Rune) == 0 || re.Rune[len(re.Rune)-1] < utf8.RuneSelf {
			return 1, true
		}
		return utf8.UTFMax, true
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax, true
	case syntax.OpStar, syntax.OpPlus:
		return 0, false
	case syntax.OpRepeat:
		one, ok := longest(re.Sub[0])
		return one * re.Max, ok && re.Max >= 0
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			one, ok := longest(sub)
			if !ok {
				return 0, false
			}
			n = max(n, one)
		}
		return n, true
	default: // the parts one after the other
	}
	for _, sub := range re.Sub {
		one, ok := longest(sub)
		if !ok {
			return 0, false
		}
		n += one
	}
	return n, true
}

// startsAtBoundary says whether what matches must begin at a boundary between words.
func startsAtBoundary(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpWordBoundary:
		return true
	case syntax.OpConcat, syntax.OpCapture:
		return startsAtBoundary(re.Sub[0])
	default:
		return false
	}
}

// beginnings are words in lower case, of which all that an expression matches begins with one; whole where the words are
// all that it matches.
func beginnings(re *syntax.Regexp) (words []string, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}, true
	case syntax.OpCharClass:
		return classWords(re)
	case syntax.OpWordBoundary, syntax.OpEmptyMatch, syntax.OpBeginText:
		return []string{""}, true
	case syntax.OpCapture:
		return beginnings(re.Sub[0])
	case syntax.OpConcat:
		return concatWords(re)
	case syntax.OpAlternate:
		whole = true
		for _, sub := range re.Sub {
			more, all := beginnings(sub)
			words, whole = append(words, more...), whole && all
		}
		return words, whole
	case syntax.OpQuest:
		words, whole = beginnings(re.Sub[0])
		return append(words, ""), whole
	case syntax.OpPlus:
		words, _ = beginnings(re.Sub[0])
		return words, false
	case syntax.OpRepeat:
		if re.Min > 0 {
			words, _ = beginnings(re.Sub[0])
			return words, false
		}
	default: // anything
	}
	return []string{""}, false
}

// classWords are the characters of a small class.
func classWords(re *syntax.Regexp) (words []string, whole bool) {
	const small = 16
	for i := 0; i < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if words = append(words, strings.ToLower(string(r))); len(words) > small {
				return []string{""}, false
			}
		}
	}
	return words, true
}

func concatWords(re *syntax.Regexp) (words []string, whole bool) {
	words = []string{""}
	for _, sub := range re.Sub {
		more, all := beginnings(sub)
		if len(words)*len(more) > maxBeginnings {
			return words, false
		}
		var longer []string
		for _, word := range words {
			for _, next := range more {
				longer = append(longer, word+next)
			}
		}
		words = longer
		if !all {
			return words, false
		}
	}
	return words, true
}

// regex compiles an expression once.
func (s *Scanner) regex(text string) *regexp.Regexp {
	r, ok := s.compiled[text]
	if !ok {
		r = regexp.MustCompile(text) // a test compiles all of them
		s.compiled[text] = r
	}
	return r
}
