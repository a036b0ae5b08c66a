// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// board takes results and prints them, one line each: what was measured, its baseline in the same run, the value that the
// budget is about, the budget, and whether it holds. A figure without a baseline or a budget has "-" there.
type board struct {
	print bool
	lines []string
}

// bound of a value; the zero bound holds always.
type bound struct {
	relation string
	limit    float64
}

func atMost(limit float64) bound  { return bound{"<=", limit} }
func atLeast(limit float64) bound { return bound{">=", limit} }

func (b bound) holds(value float64) bool {
	switch b.relation {
	case "<=":
		return value <= b.limit
	case ">=":
		return value >= b.limit
	default:
		return true
	}
}

func (b bound) String() string {
	if b.relation == "" {
		return "-"
	}
	return b.relation + number(b.limit)
}

// ratio compares two durations.
func (b *board) ratio(name string, measured, baseline time.Duration, limit bound) {
	b.add(name, span(measured), span(baseline), float64(measured)/float64(baseline), limit)
}

// speedup says how many times faster than the baseline something is.
func (b *board) speedup(name string, measured, baseline time.Duration, limit bound) {
	b.add(name, span(measured), span(baseline), float64(baseline)/float64(measured), limit)
}

// beside is a duration in milliseconds, with what the machine needs for the like beside it.
func (b *board) beside(name string, measured, baseline time.Duration, limit bound) {
	b.add(name, span(measured), span(baseline), float64(measured.Nanoseconds())/1e6, limit)
}

// later is by how many milliseconds something takes longer than the baseline.
func (b *board) later(name string, measured, baseline time.Duration, limit bound) {
	b.add(name, span(measured), span(baseline), float64((measured-baseline).Nanoseconds())/1e6, limit)
}

// figure is a value without a baseline, with its unit.
func (b *board) figure(name string, value float64, unit string, limit bound) {
	b.add(name, number(value)+unit, "-", value, limit)
}

func (b *board) add(name, measured, baseline string, value float64, limit bound) {
	verdict := "ok"
	if !limit.holds(value) {
		verdict = "MISSED"
	}
	line := fmt.Sprintf("ratio %s %s %s %s %s %s", name, measured, baseline, number(value), limit, verdict)
	b.lines = append(b.lines, line)
	if b.print {
		fmt.Fprintln(os.Stdout, line)
	}
}

// number writes three significant digits, more where they are whole.
func number(v float64) string {
	if v == float64(int64(v)) || v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func span(d time.Duration) string {
	return number(float64(d.Nanoseconds())/1e6) + "ms"
}

// quantile of some values by nearest rank, from 0 to 1. It sorts them.
func quantile[T cmp.Ordered](d []T, q float64) T {
	slices.Sort(d)
	return d[max(0, int(math.Ceil(q*float64(len(d))))-1)]
}

func median[T cmp.Ordered](d []T) T { return quantile(d, 0.5) }

func TestBoard(t *testing.T) {
	var b board
	b.ratio("a", 3*time.Millisecond, 2*time.Millisecond, atMost(1.5))
	b.ratio("b", 4*time.Millisecond, 2*time.Millisecond, atMost(1.5))
	b.speedup("c", time.Millisecond, 150*time.Millisecond, atLeast(150))
	b.speedup("d", time.Millisecond, 149*time.Millisecond, atLeast(150))
	b.figure("e", 23.456, "MiB", atMost(24))
	b.figure("f", 12345.6, "/s", bound{})
	b.beside("g", 40*time.Millisecond, 30*time.Millisecond, atMost(50))
	b.later("h", 3*time.Millisecond, 2500*time.Microsecond, atMost(0.3))
	want := []string{
		"ratio a 3ms 2ms 1.5 <=1.5 ok",
		"ratio b 4ms 2ms 2 <=1.5 MISSED",
		"ratio c 1ms 150ms 150 >=150 ok",
		"ratio d 1ms 149ms 149 >=150 MISSED",
		"ratio e 23.5MiB - 23.5 <=24 ok",
		"ratio f 12346/s - 12346 - ok",
		"ratio g 40ms 30ms 40 <=50 ok",
		"ratio h 3ms 2.5ms 0.5 <=0.3 MISSED",
	}
	if !slices.Equal(b.lines, want) {
		t.Errorf("got %q, want %q", b.lines, want)
	}
	if m := median([]time.Duration{5, 1, 3}); m != 3 {
		t.Errorf("median = %d, want 3", m)
	}
	if q := quantile([]time.Duration{4, 3, 2, 1}, 0.99); q != 4 {
		t.Errorf("quantile = %d, want 4", q)
	}
}
