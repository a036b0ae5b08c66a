// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsummary reads `go test -json` and prints a summary: a line for each package, the whole
// output of what failed, and the sums. A skipped test is a hole, so it counts as a failure.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

type result struct{ passed, failed, skipped int }

type summary struct {
	out    io.Writer
	total  result
	byPkg  map[string]*result
	output map[string][]string
}

func main() {
	failed, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary: read events:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// summarize says whether anything failed or was skipped.
func summarize(in io.Reader, out io.Writer) (failed bool, err error) {
	s := &summary{out: out, byPkg: map[string]*result{}, output: map[string][]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// What is not an event (a tool's message) is shown as it is.
			fmt.Fprintln(out, lines.Text())
			continue
		}
		s.add(e)
	}
	if err := lines.Err(); err != nil {
		return true, err
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", s.total.passed, s.total.failed, s.total.skipped)
	return s.total.failed+s.total.skipped > 0, nil
}

func (s *summary) add(e event) {
	if e.Action == "build-output" {
		fmt.Fprint(s.out, e.Output)
		return
	}
	id := e.Package + " " + e.Test
	pkg := s.byPkg[e.Package]
	if pkg == nil {
		pkg = &result{}
		s.byPkg[e.Package] = pkg
	}
	switch e.Action {
	case "output":
		s.output[id] = append(s.output[id], e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Test == "" {
		s.endPackage(e, pkg)
		return
	}
	switch e.Action {
	case "pass":
		pkg.passed++
		s.total.passed++
	case "fail":
		pkg.failed++
		s.total.failed++
		fmt.Fprintf(s.out, "--- FAIL %s %s (%.1fs)\n%s", e.Package, e.Test, e.Elapsed, strings.Join(s.output[id], ""))
	case "skip":
		pkg.skipped++
		s.total.skipped++
		fmt.Fprintf(s.out, "--- SKIP %s %s\n%s", e.Package, e.Test, strings.Join(s.output[id], ""))
	}
	delete(s.output, id)
}

func (s *summary) endPackage(e event, pkg *result) {
	if e.Action == "fail" {
		if pkg.failed == 0 {
			// It did not build, died outside of any test, or ran into its time limit.
			s.total.failed++
		}
		s.showUnfinished(e.Package)
		fmt.Fprintf(s.out, "FAIL %s (%d failed, %.1fs)\n", e.Package, pkg.failed, e.Elapsed)
		return
	}
	if pkg.passed > 0 {
		fmt.Fprintf(s.out, "ok   %-70s %4d tests %6.1fs\n", e.Package, pkg.passed, e.Elapsed)
	}
}

// maxLines of a test that did not end are shown: the stacks of all goroutines follow.
const maxLines = 200

// showUnfinished prints what the package itself wrote, and its tests that did not end.
func (s *summary) showUnfinished(pkg string) {
	for _, id := range slices.Sorted(maps.Keys(s.output)) {
		if !strings.HasPrefix(id, pkg+" ") {
			continue
		}
		lines := s.output[id]
		if _, test, _ := strings.Cut(id, " "); test != "" {
			fmt.Fprintf(s.out, "--- UNFINISHED %s\n", id)
		}
		fmt.Fprint(s.out, strings.Join(lines[:min(len(lines), maxLines)], ""))
		delete(s.output, id)
	}
}
