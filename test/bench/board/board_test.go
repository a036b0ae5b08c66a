// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"slices"
	"testing"
	"time"
)

func TestBoard(t *testing.T) {
	var b Board
	b.Ratio("a", 3*time.Millisecond, 2*time.Millisecond, AtMost(1.5))
	b.Ratio("b", 4*time.Millisecond, 2*time.Millisecond, AtMost(1.5))
	b.Speedup("c", time.Millisecond, 150*time.Millisecond, AtLeast(150))
	b.Speedup("d", time.Millisecond, 149*time.Millisecond, AtLeast(150))
	b.Figure("e", 23.456, "MiB", AtMost(24))
	b.Figure("f", 12345.6, "/s", Bound{})
	b.Beside("g", 40*time.Millisecond, 30*time.Millisecond, AtMost(50))
	b.Later("h", 3*time.Millisecond, 2500*time.Microsecond, AtMost(0.3))
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
	if !slices.Equal(b.Lines, want) {
		t.Errorf("got %q, want %q", b.Lines, want)
	}
	if m := Median([]time.Duration{5, 1, 3}); m != 3 {
		t.Errorf("median = %d, want 3", m)
	}
	if q := Quantile([]time.Duration{4, 3, 2, 1}, 0.99); q != 4 {
		t.Errorf("quantile = %d, want 4", q)
	}
}
