// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// TestBreaker: five failures in a row keep calls away, one trial at a time ends that, and failed trials make the pause longer.
func TestBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	var b models.Breaker
	call := func(o models.Outcome) (allowed bool) {
		t.Helper()
		if b, allowed = b.Begin(now); allowed {
			b = b.End(now, o)
		}
		return allowed
	}
	for range 4 {
		call(models.Failed)
	}
	call(models.Answered)
	for range 5 {
		if !call(models.Failed) {
			t.Fatal("kept away too early")
		}
	}
	if call(models.Answered) || !b.Open() {
		t.Fatalf("not kept away: %+v", b)
	}
	var pauses []time.Duration
	for range 7 {
		pauses = append(pauses, b.Until.Sub(now))
		now = b.Until
		trial, allowed := b.Begin(now)
		if _, another := trial.Begin(now); !allowed || another {
			t.Fatalf("trial %v, another one %v", allowed, another)
		}
		if _, lost := trial.Begin(now.Add(time.Hour)); !lost {
			t.Error("a trial whose end is not told keeps all others away for ever")
		}
		b = trial.End(now, models.Failed)
	}
	want := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	for i := range want {
		if pauses[i] != want[i] {
			t.Fatalf("pauses %v, want %v", pauses, want)
		}
	}
	now = b.Until
	if !call(models.Unknown) || !b.Open() || !call(models.Answered) || b != (models.Breaker{}) {
		t.Errorf("after a trial that succeeded: %+v", b)
	}
}

// TestBreakerProperties: a backend that answers is always reached again, and one that does not is asked seldom.
func TestBreakerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b models.Breaker
		now := time.Unix(0, 0)
		asked := 0
		for range 2000 {
			now = now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond)
			if next, ok := b.Begin(now); ok {
				asked++
				b = next.End(now, models.Failed)
			}
		}
		if most := 5 + int(now.Sub(time.Unix(0, 0))/(15*time.Second)) + 1; asked > most {
			t.Fatalf("asked %d times in %s", asked, now.Sub(time.Unix(0, 0)))
		}
		now = now.Add(10 * time.Minute)
		next, ok := b.Begin(now)
		if !ok || next.End(now, models.Answered).Open() {
			t.Fatalf("never reached again: %+v", b)
		}
	})
}
