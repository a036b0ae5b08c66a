// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package board prints what benchmarks have measured.
package board

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

// Board takes results and prints them, one line each: what was measured, its baseline in the same run, the value that the budget limits,
// the budget, and whether it holds. A figure without a baseline or a budget has "-" there.
type Board struct {
	// Print lines as they come.
	Print bool
	// Lines so far.
	Lines []string
}

// Bound of a value; the zero Bound holds always.
type Bound struct {
	relation string
	limit    float64
}

// AtMost is the largest allowed value.
func AtMost(limit float64) Bound { return Bound{"<=", limit} }

// AtLeast is the smallest allowed value.
func AtLeast(limit float64) Bound { return Bound{">=", limit} }

func (b Bound) holds(value float64) bool {
	switch b.relation {
	case "<=":
		return value <= b.limit
	case ">=":
		return value >= b.limit
	default:
		return true
	}
}

// String is as lines have it.
func (b Bound) String() string {
	if b.relation == "" {
		return "-"
	}
	return b.relation + Number(b.limit)
}

// Ratio compares two durations.
func (b *Board) Ratio(name string, measured, baseline time.Duration, limit Bound) {
	b.Add(name, Span(measured), Span(baseline), float64(measured)/float64(baseline), limit)
}

// Speedup says how many times faster than the baseline something is.
func (b *Board) Speedup(name string, measured, baseline time.Duration, limit Bound) {
	b.Add(name, Span(measured), Span(baseline), float64(baseline)/float64(measured), limit)
}

// Beside is a duration in milliseconds next to the machine's own time for a comparable operation.
func (b *Board) Beside(name string, measured, baseline time.Duration, limit Bound) {
	b.Add(name, Span(measured), Span(baseline), float64(measured.Nanoseconds())/1e6, limit)
}

// Later is by how many milliseconds something takes longer than the baseline.
func (b *Board) Later(name string, measured, baseline time.Duration, limit Bound) {
	b.Add(name, Span(measured), Span(baseline), float64((measured-baseline).Nanoseconds())/1e6, limit)
}

// Figure is a value without a baseline, with its unit.
func (b *Board) Figure(name string, value float64, unit string, limit Bound) {
	b.Add(name, Number(value)+unit, "-", value, limit)
}

// Add a line.
func (b *Board) Add(name, measured, baseline string, value float64, limit Bound) {
	verdict := "ok"
	if !limit.holds(value) {
		verdict = "MISSED"
	}
	line := fmt.Sprintf("ratio %s %s %s %s %s %s", name, measured, baseline, Number(value), limit, verdict)
	b.Lines = append(b.Lines, line)
	if b.Print {
		fmt.Fprintln(os.Stdout, line)
	}
}

// Number writes three significant digits, more if they are whole.
func Number(v float64) string {
	if v == float64(int64(v)) || v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Span is a duration in milliseconds.
func Span(d time.Duration) string {
	return Number(float64(d.Nanoseconds())/1e6) + "ms"
}

// Quantile of some values by nearest rank, from 0 to 1. It sorts them.
func Quantile[T cmp.Ordered](d []T, q float64) T {
	slices.Sort(d)
	return d[max(0, int(math.Ceil(q*float64(len(d))))-1)]
}

// Median of some values. It sorts them.
func Median[T cmp.Ordered](d []T) T { return Quantile(d, 0.5) }
