// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package callers_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

var start = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// TestRates: in no minute and a half of any sequence of calls are more let through than a burst and what has come back since; what is refused may
// be tried when the answer says.
func TestRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute, now, r := rapid.IntRange(1, 300).Draw(t, "calls a minute"), start, callers.NewRates()
		var let []time.Time
		for range rapid.IntRange(1, 400).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "pause")))
			wait, _ := r.Take("login", perMinute, now)
			if wait > 0 {
				if early := wait - time.Millisecond; early > 0 {
					if still, _ := r.Take("login", perMinute, now.Add(early)); still == 0 {
						t.Fatalf("let through %s before the wait of %s was over", time.Millisecond, wait)
					}
				}
				now = now.Add(wait)
				if wait, _ = r.Take("login", perMinute, now); wait > 0 {
					t.Fatalf("still %s to wait", wait)
				}
			}
			let = append(let, now)
		}
		for first := range let {
			for last := first; last < len(let); last++ {
				if most := float64(perMinute) * (1 + let[last].Sub(let[first]).Minutes()); float64(last-first+1) > most+1e-3 {
					t.Fatalf("%d calls within %s", last-first+1, let[last].Sub(let[first]))
				}
			}
		}
	})
}

// TestRatesForget: who makes no calls any more takes no memory, and who goes on too fast is not forgotten.
func TestRatesForget(t *testing.T) {
	r, now := callers.NewRates(), start
	for n := range 1000 {
		r.Take(fmt.Sprint("feature-", n), 60, now)
	}
	for range 120 {
		r.Take("hurried", 60, now)
	}
	if r.Known() != 1001 {
		t.Errorf("%d are known", r.Known())
	}
	now = now.Add(61 * time.Second)
	for range 60 {
		r.Take("hurried", 60, now)
	}
	if wait, again := r.Take("hurried", 60, now); r.Known() != 1 || wait != time.Second || again {
		t.Errorf("%d are known; the next call in %s, one more refused: %v", r.Known(), wait, again)
	}
	if _, again := r.Take("hurried", 60, now); !again {
		t.Error("not the first that is refused")
	}
}
