// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// tapIndent is how many spaces a subtest has before its lines, for each level.
	tapIndent = 4
	// maxTAPLine bounds what is read of a line, in bytes.
	maxTAPLine = 64 << 10
)

var (
	tapPoint = regexp.MustCompile(`^(not )?ok\b(?:[ \t]+[0-9]+)?[ \t]*(?:-[ \t]+)?(.*)$`)
	tapPlan  = regexp.MustCompile(`^1\.\.([0-9]+)[ \t]*(?:#.*)?$`)
	// tapDirective: the first mark that is not escaped.
	tapDirective = regexp.MustCompile(`(?i)(?:^|[^\\])#[ \t]*(skip|todo)`)
)

// tap reads the Test Anything Protocol, versions 13 and 14. A test with subtests is its subtests.
type tap struct {
	summary Summary
	// points are how many test points each level has so far, and failures how many tests failed below it.
	points, failures []int
	// planned is how many test points there are to be at the top; -1 before the plan.
	planned int
	// block is the spaces before a YAML block that is open; -1 outside of blocks.
	block int
}

func readTAP(data []byte) (Summary, error) {
	t := tap{planned: -1, block: -1, points: make([]int, maxDepth+1), failures: make([]int, maxDepth+1)}
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\r\n")
		text := bytes.TrimLeft(line, " ")
		if bailedOut := t.read(len(line)-len(text), string(text[:min(len(text), maxTAPLine)])); bailedOut {
			return t.summary, nil
		}
	}
	switch ran := t.points[0]; {
	case t.block >= 0:
		return Summary{}, errors.New("it is not well-formed TAP: a YAML block has no end")
	case t.planned < 0:
		return Summary{}, errors.New("it is not whole, or is not TAP: it does not have one plan (1..N)")
	case t.planned != ran:
		return Summary{}, fmt.Errorf("it is not whole: its plan has %d tests, and %d of these ran", t.planned, ran)
	}
	return t.summary, nil
}

// read a line without the spaces before it. Other lines than those of the protocol have no meaning.
func (t *tap) read(spaces int, text string) (bailedOut bool) {
	if t.block >= 0 {
		if spaces == t.block && text == "..." {
			t.block = -1
		}
		return false
	}
	if text == "---" && spaces > 0 {
		t.block = spaces
		return false
	}
	if reason, is := strings.CutPrefix(text, "Bail out!"); is {
		t.summary.count("the tests bailed out:"+reason, failed)
		return true
	}
	level := spaces / tapIndent
	if spaces%tapIndent != 0 || level > maxDepth-1 {
		return false
	}
	if plan := tapPlan.FindStringSubmatch(text); plan != nil && level == 0 {
		n, err := strconv.Atoi(plan[1])
		if err != nil || t.planned >= 0 && t.planned != n {
			n = -2 // no number of tests is that
		}
		t.planned = n
	} else if point := tapPoint.FindStringSubmatch(text); point != nil {
		t.point(level, point[1] != "", point[2])
	}
	return false
}

// point is a test.
func (t *tap) point(level int, fails bool, name string) {
	o := passed
	if fails {
		o = failed
	}
	if tapDirective.MatchString(name) {
		o = skipped
	}
	below := level + 1
	if parent := t.points[below] > 0; !parent || o == failed && t.failures[below] == 0 {
		t.summary.count(name, o)
	}
	if o == failed {
		t.failures[level]++
	}
	t.points[level]++
	t.points[below], t.failures[below] = 0, 0
}
