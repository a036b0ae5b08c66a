// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

const (
	// mostWork of one check: bytes of an answer times what each of them may cost. A unit takes some 200 ns at the worst, so that
	// a check takes about a second.
	mostWork = 4 << 20
	// mostCost of one template: with it answers of 8 KiB can be checked.
	mostCost = 512
	// mostPattern is the size of a compiled pattern, in instructions, and perUnit is how many of them cost a unit.
	mostPattern, perUnit = 1000, 16
)

// Check says why a template cannot have these checks; the message is for its author.
func (c Checks) Check() error {
	for _, s := range c.Sections {
		if key(s) == "" || strings.ContainsAny(s, "\r\n") {
			return fmt.Errorf("the section %q cannot be found in an answer: write its title in one line", s)
		}
	}
	for _, p := range c.Patterns {
		if _, err := instructions(p); err != nil {
			return fmt.Errorf("the pattern %q is invalid: %w", p, err)
		}
	}
	if c.Schema != "" {
		if _, err := compile(c.Schema); err != nil {
			return fmt.Errorf("the JSON schema is invalid: %w", err)
		}
	}
	if c.cost() > mostCost {
		return errors.New("the patterns and the JSON schema take too much work together: use fewer or simpler ones")
	}
	return nil
}

// mostBytes of an answer that can be checked.
func (r Rules) mostBytes() int {
	cost := 1
	for _, c := range r.Checks {
		cost += c.cost()
	}
	return min(MaxChecked, mostWork/cost)
}

// cost of each byte of an answer.
func (c Checks) cost() int {
	total := len(c.Sections) + len(c.Phrases)
	for _, p := range c.Patterns {
		n, err := instructions(p)
		if err != nil {
			n = mostPattern
		}
		total += n
	}
	total = (total + perUnit - 1) / perUnit
	if c.Schema != "" {
		n, err := costOf(c.Schema)
		if err != nil {
			n = mostCost
		}
		total += n
	}
	return total
}

// instructions of a pattern when it is compiled: each byte of a text may be looked at by each of them.
func instructions(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	if n := len(compiled.Inst); n > mostPattern {
		return n, fmt.Errorf("its compiled form has %d steps, and the limit is %d: count fewer repetitions", n, mostPattern)
	}
	return len(compiled.Inst), nil
}
