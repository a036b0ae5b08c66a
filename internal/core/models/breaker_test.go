// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// breaking is a breaker with a clock.
type breaking struct {
	models.Breaker

	now time.Time
}

// call of a Feature that takes a second; false where it is kept away.
func (b *breaking) call(feature string, o models.Outcome) bool {
	c, avoided := b.Begin(b.now, feature)
	if avoided != nil {
		return false
	}
	b.now = b.now.Add(time.Second)
	b.End(b.now, c, o)
	return true
}

// TestBreaker: five failures in a row, two of them of another Feature, keep everybody away; one trial at a time ends that, and failed
// trials make the pause longer. Who has tried last lets others try first.
func TestBreaker(t *testing.T) {
	b := &breaking{now: time.Unix(1000, 0)}
	for _, feature := range []string{"a", "a", "b", "c"} {
		b.call(feature, models.Failed)
	}
	b.call("a", models.Answered)
	for _, feature := range []string{"a", "b", "a", "a", "b"} {
		if !b.call(feature, models.Failed) {
			t.Fatal("kept away too early")
		}
	}
	if b.call("c", models.Answered) || b.Open() {
		t.Fatalf("not kept away: %+v", b)
	}
	var pauses []time.Duration
	for n := range 7 {
		_, avoided := b.Begin(b.now, "new")
		pauses = append(pauses, avoided.Wait)
		b.now = b.now.Add(avoided.Wait)
		feature := fmt.Sprint("trial-", n)
		c, kept := b.Begin(b.now, feature)
		if _, another := b.Begin(b.now, "new"); kept != nil || another == nil || another.Alone {
			t.Fatalf("trial %+v, another one %+v", kept, another)
		}
		b.End(b.now, c, models.Failed)
		if _, again := b.Begin(b.now, feature); again.Wait != pauseOf(b, "new")+15*time.Second {
			t.Errorf("who has tried waits for %s", again.Wait)
		}
	}
	want := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if !slices.Equal(pauses, want) {
		t.Fatalf("pauses %v, want %v", pauses, want)
	}
	b.now = b.now.Add(pauses[len(pauses)-1])
	if _, avoided := b.Begin(b.now, "lost"); avoided != nil {
		t.Fatal("no trial")
	}
	if wait := pauseOf(b, "new"); wait != 30*time.Second {
		t.Errorf("a trial whose end is not told keeps others away for %s", wait)
	}
	b.now = b.now.Add(30 * time.Second)
	if !b.call("given up", models.Unknown) || b.Open() || !b.call("new", models.Answered) || !b.Open() {
		t.Errorf("after a trial that succeeded: %+v", b)
	}
}

func pauseOf(b *breaking, feature string) time.Duration {
	_, avoided := b.Begin(b.now, feature)
	return avoided.Wait
}

// TestConcurrentFailuresCountOnce: a burst of calls that were under way together is one failure.
func TestConcurrentFailuresCountOnce(t *testing.T) {
	b := &breaking{now: time.Unix(1000, 0)}
	var burst []models.Call
	for n := range 320 {
		c, _ := b.Begin(b.now, fmt.Sprint("feature-", n%10))
		burst = append(burst, c)
	}
	for _, c := range burst {
		b.now = b.now.Add(time.Millisecond)
		b.End(b.now, c, models.Failed)
	}
	if !b.Open() || !b.call("feature-1", models.Answered) {
		t.Errorf("one burst has closed it: %+v", b)
	}
}

// TestOneFeatureClosesNothingForOthers, whatever its calls do and however they overlap with those of others, which are answered, given up or
// silent; and it is itself kept away where all of its calls fail.
func TestOneFeatureClosesNothingForOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &breaking{now: time.Unix(0, 0)}
		var under []models.Call
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			b.now = b.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			if len(under) > 0 && rapid.Bool().Draw(t, "ends") {
				i := rapid.IntRange(0, len(under)-1).Draw(t, "which")
				o := rapid.SampledFrom([]models.Outcome{models.Unknown, models.Answered}).Draw(t, "outcome")
				if under[i].Feature == "hostile" {
					o = rapid.SampledFrom([]models.Outcome{models.Unknown, models.Failed, models.Failed}).Draw(t, "its outcome")
				}
				b.End(b.now, under[i], o)
				under = slices.Delete(under, i, i+1)
				continue
			}
			feature := rapid.SampledFrom([]string{"hostile", "hostile", "healthy", "other"}).Draw(t, "feature")
			c, avoided := b.Begin(b.now, feature)
			if avoided != nil {
				if feature != "hostile" || !avoided.Alone {
					t.Fatalf("%s is kept away: %+v", feature, avoided)
				}
				continue
			}
			under = append(under, c)
		}
		if !b.Open() {
			t.Fatal("closed for everybody")
		}
	})
	b := &breaking{now: time.Unix(0, 0)}
	for range 5 {
		b.call("hostile", models.Failed)
	}
	if b.call("hostile", models.Failed) || !b.call("healthy", models.Unknown) {
		t.Error("a Feature whose calls all fail is not kept away, or others are")
	}
}

// TestADeadBackendIsAskedSeldom: where all calls of two Features or more fail, whoever ends first and however many each has under way, five rounds
// close it, and after that it is asked seldom; when it answers again, every Feature reaches it within a bounded time.
func TestADeadBackendIsAskedSeldom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &breaking{now: time.Unix(0, 0)}
		features := rapid.IntRange(2, 6).Draw(t, "features")
		round := func() (asked int) {
			var under []models.Call
			for n := range features * rapid.IntRange(1, 4).Draw(t, "calls") {
				if c, avoided := b.Begin(b.now, fmt.Sprint(n%features)); avoided == nil {
					under = append(under, c)
				}
			}
			for _, i := range rapid.Permutation(under).Draw(t, "order") {
				b.now = b.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
				b.End(b.now, i, models.Failed)
			}
			return len(under)
		}
		for n := 0; b.Open(); n++ {
			if n == 5 {
				t.Fatalf("open after five rounds: %+v", b)
			}
			round()
		}
		began, asked := b.now, 0
		for range 200 {
			asked += round()
			b.now = b.now.Add(time.Second)
		}
		if most := 2 + int(b.now.Sub(began)/(15*time.Second)); asked > most {
			t.Fatalf("asked %d times in %s", asked, b.now.Sub(began))
		}
		b.now = b.now.Add(6 * time.Minute)
		for n := range features {
			if !b.call(fmt.Sprint(n), models.Answered) {
				t.Fatalf("%d does not reach it: %+v", n, b)
			}
		}
	})
}

// TestOneFeatureCannotKeepItClosed: where a Feature's own trials fail and others would succeed, another one opens it at its first call after the pause.
func TestOneFeatureCannotKeepItClosed(t *testing.T) {
	b := &breaking{now: time.Unix(0, 0)}
	for _, feature := range []string{"hostile", "other", "hostile", "hostile", "other"} {
		b.call(feature, models.Failed)
	}
	for range 3 { // it asks all the time
		for b.call("hostile", models.Failed) || b.now.Before(time.Unix(40, 0)) {
			b.now = b.now.Add(10 * time.Millisecond)
		}
	}
	b.now = b.now.Add(pauseOf(b, "healthy"))
	if _, avoided := b.Begin(b.now, "hostile"); avoided == nil {
		t.Error("who has failed tries first again")
	}
	if !b.call("healthy", models.Answered) || !b.Open() {
		t.Errorf("not opened: %+v", b)
	}
}
