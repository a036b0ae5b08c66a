// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	// maxTests bounds the tests that are told apart by their names.
	maxTests = 100_000
	// maxEvent bounds a line in bytes: an event has at most one line of output.
	maxEvent = 1 << 20
)

// goEvent is a line of `go test -json` (go doc test2json).
type goEvent struct {
	Action, Package, Test string
}

// goTest is a test, or a package if it has no name.
type goTest struct{ pkg, name string }

// goTests are how the tests ended: the last time, if a tool ran those again that failed.
type goTests struct {
	ended map[goTest]outcome
	// order in which they ended, for names that are the same with each reading.
	order []goTest
	// open are packages of which the end has not come.
	open map[string]bool
	// failed tests by package: a package that failed without one of these did not build, or ended at once.
	failed map[string]int
}

// readGoTest reads the output of `go test -json`. Lines that are no JSON are what older versions of go print about builds.
func readGoTest(data []byte) (Summary, error) {
	t := goTests{ended: map[goTest]outcome{}, open: map[string]bool{}, failed: map[string]int{}}
	number, events := 0, 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		err := t.read(line)
		if err != nil {
			return Summary{}, fmt.Errorf("it is not well-formed output of go test -json: line %d: %w", number, err)
		}
		events++
	}
	if events == 0 {
		return Summary{}, errors.New("it is not well-formed output of go test -json: it has no event")
	}
	if n := len(t.open); n > 0 {
		return Summary{}, fmt.Errorf("it is not whole: go test did not say how the tests of %d packages ended", n)
	}
	return t.summary(), nil
}

func (t *goTests) read(line []byte) error {
	if len(line) > maxEvent {
		return fmt.Errorf("it has more than %d bytes", maxEvent)
	}
	var e goEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	switch e.Action {
	case "pass":
		return t.end(goTest{e.Package, e.Test}, passed)
	case "fail":
		return t.end(goTest{e.Package, e.Test}, failed)
	case "skip":
		return t.end(goTest{e.Package, e.Test}, skipped)
	case "start", "run":
		t.open[e.Package] = true
	case "":
		return errors.New("it is not an event: it has no Action")
	}
	return nil
}

func (t *goTests) end(test goTest, o outcome) error {
	before, again := t.ended[test]
	if !again {
		if len(t.order) == maxTests {
			return fmt.Errorf("there are more than %d tests", maxTests)
		}
		t.order = append(t.order, test)
	}
	t.ended[test] = o
	if test.name == "" {
		delete(t.open, test.pkg)
		return nil
	}
	if again && before == failed {
		t.failed[test.pkg]--
	}
	if o == failed {
		t.failed[test.pkg]++
	}
	return nil
}

func (t *goTests) summary() Summary {
	var s Summary
	for _, test := range t.order {
		o := t.ended[test]
		switch {
		case test.name != "":
			s.count(strings.TrimSpace(test.pkg+" "+test.name), o)
		case o == failed && t.failed[test.pkg] == 0:
			s.count(test.pkg+" (the package)", failed)
		}
	}
	return s
}
