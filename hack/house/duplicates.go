// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// run is how many lines in a row stand in two places before they count as written twice.
const run = 8

// copies finds lines that stand in several places.
type copies struct {
	// seen has the first place of each run of lines.
	seen map[string]spot
	// pairs counts the lines that two files share, and where the first of them stand.
	pairs map[[2]string]*pair
}

type spot struct {
	file string
	line int
}

type pair struct {
	lines       int
	first, then int
}

func newCopies() *copies { return &copies{seen: map[string]spot{}, pairs: map[[2]string]*pair{}} }

// read a file. Empty lines, comments, lone brackets and imports count for nothing.
func (c *copies) read(name, text string) {
	var lines []string
	var numbers []int
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "//") || strings.HasPrefix(line, `"`) || strings.Trim(line, "(){}[],") == "" {
			continue
		}
		lines, numbers = append(lines, line), append(numbers, i+1)
	}
	for i := 0; i+run <= len(lines); i++ {
		key, here := strings.Join(lines[i:i+run], "\n"), spot{name, numbers[i]}
		there, found := c.seen[key]
		if !found {
			c.seen[key] = here
			continue
		}
		if there.file == name && here.line-there.line < run {
			continue // a run overlaps itself
		}
		at := [2]string{there.file, name}
		if c.pairs[at] == nil {
			c.pairs[at] = &pair{lines: run - 1, first: there.line, then: here.line}
		}
		c.pairs[at].lines++
	}
}

// figures are the pairs of files that share lines.
func (c *copies) figures() (list []figure) {
	for files, p := range c.pairs {
		list = append(list, figure{fmt.Sprintf("%s:%d", files[0], p.first), p.lines, fmt.Sprintf("%s:%d", files[1], p.then)})
	}
	return list
}
