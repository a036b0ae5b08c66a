// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// rule is a habit, and what to write instead.
type rule struct {
	name            string
	pattern, except *regexp.Regexp // except is nil where every match counts
	instead         string
}

// readRules reads lines of four columns that tabs separate; a line that begins with # is a comment.
func readRules(path string) ([]rule, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rules []rule
	for n, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			return nil, fmt.Errorf("%s, line %d: %d columns, want name, pattern, except and instead", path, n+1, len(columns))
		}
		r := rule{name: columns[0], instead: columns[3]}
		if r.pattern, err = regexp.Compile(columns[1]); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n+1, err)
		}
		if columns[2] != "" {
			if r.except, err = regexp.Compile(columns[2]); err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", path, n+1, err)
			}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// broken are the places of a source that break a rule, with what to write instead.
func (s source) broken(rules []rule) []string {
	var found []string
	for _, p := range s.passages {
		for _, r := range rules {
			for _, hit := range r.find(p.text) {
				line := fmt.Sprintf("%s: %q: %s", r.name, hit, r.instead)
				if p.place != "" {
					line = p.place + ": " + line
				}
				found = append(found, line)
			}
		}
	}
	return found
}

// find the places of a text that break the rule.
func (r rule) find(text string) []string {
	var hits []string
	for _, hit := range r.pattern.FindAllString(text, -1) {
		if r.except == nil || !r.except.MatchString(hit) {
			hits = append(hits, hit)
		}
	}
	return hits
}
