// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsummary reads `go test -json` and prints what a person wants to know: a line a package, the whole
// output of what failed, and the sums. A skipped test is a hole, so it counts as a failure.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

type result struct{ passed, failed, skipped int }

type summary struct {
	total  result
	byPkg  map[string]*result
	output map[string][]string
}

func main() {
	s := &summary{byPkg: map[string]*result{}, output: map[string][]string{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// What is not an event (a tool's message) is shown as it is.
			fmt.Println(lines.Text())
			continue
		}
		s.add(e)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary: read events:", err)
		os.Exit(1)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", s.total.passed, s.total.failed, s.total.skipped)
	if s.total.failed+s.total.skipped > 0 {
		os.Exit(1)
	}
}

func (s *summary) add(e event) {
	if e.Action == "build-output" {
		fmt.Print(e.Output)
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
		s.endPackage(e, id, pkg)
		return
	}
	switch e.Action {
	case "pass":
		pkg.passed++
		s.total.passed++
	case "fail":
		pkg.failed++
		s.total.failed++
		fmt.Printf("--- FAIL %s %s (%.1fs)\n%s", e.Package, e.Test, e.Elapsed, strings.Join(s.output[id], ""))
	case "skip":
		pkg.skipped++
		s.total.skipped++
		fmt.Printf("--- SKIP %s %s\n%s", e.Package, e.Test, strings.Join(s.output[id], ""))
	}
	delete(s.output, id)
}

func (s *summary) endPackage(e event, id string, pkg *result) {
	if e.Action == "fail" {
		if pkg.failed == 0 {
			// It did not build, or died outside of any test.
			s.total.failed++
			fmt.Print(strings.Join(s.output[id], ""))
		}
		fmt.Printf("FAIL %s (%d failed, %.1fs)\n", e.Package, pkg.failed, e.Elapsed)
		return
	}
	if pkg.passed > 0 {
		fmt.Printf("ok   %-70s %4d tests %6.1fs\n", e.Package, pkg.passed, e.Elapsed)
	}
}
