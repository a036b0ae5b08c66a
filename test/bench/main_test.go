// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// fullEnv asks for the sizes of the budgets; without it everything is tiny and nothing is printed.
const fullEnv = "TIDEWAITER_BENCH"

func TestMain(m *testing.M) {
	proc.Launch()
	container.Main()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	return m.Run()
}

// scale is how large the measurements are.
type scale struct {
	// full is false for the tiny size.
	full bool
	// runs of each measurement.
	runs int
	// files of the repositories, dirty of the captures.
	files, dirty []int
	// trials of a freeze.
	trials, storms int
	// herds are the numbers of processes that are frozen.
	herds []int
	// features that work at once, each on a repository of so many files.
	features, featureFiles int
}

func scaleOf() scale {
	if os.Getenv(fullEnv) == "" {
		return scale{
			runs: 2, files: []int{200}, dirty: []int{10}, trials: 3, storms: 3, herds: []int{3},
			features: 2, featureFiles: 100,
		}
	}
	return scale{
		full: true, runs: 11, files: []int{1_000, 10_000, 100_000}, dirty: []int{10, 100, 1_000}, trials: 100, storms: 300,
		herds: []int{1, 10, 200}, features: 10, featureFiles: 10_000,
	}
}

// TestBudgets measures every budget. Its subtests are what BENCH selects from.
func TestBudgets(t *testing.T) {
	groups := []struct {
		name    string
		measure func(t *testing.T, s scale, b *board.Board)
	}{
		{"capture", capture},
		{"prepare", preparing},
		{"judge", judging},
		{"content", contents},
		{"events", events},
		{"freeze", freezing},
		{"memory", memory},
		{"features", features},
		{"gateway", gateways},
		{"calls", calls},
		{"supervision", supervision},
		{"instructions", instructing},
		{"reviews", reviewing},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			s := scaleOf()
			b := &board.Board{Print: s.full}
			g.measure(t, s, b)
			if inside() {
				return
			}
			if len(b.Lines) == 0 {
				t.Error("nothing was measured")
			}
			for _, line := range b.Lines {
				if fields := strings.Fields(line); len(fields) != 7 || fields[0] != "ratio" {
					t.Errorf("line %q, want: ratio name measured baseline value budget ok|MISSED", line)
				}
			}
		})
	}
}

// short writes 100000 as 100k.
func short(n int) string {
	if n >= 1000 && n%1000 == 0 {
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
