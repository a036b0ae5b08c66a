// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package callers_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// TestShares: a Feature has its share and no more; who holds least is served first, and after that who was served longest ago; what was waited for in
// vain is not taken.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := callers.NewShares(8, 6)
		for range 6 {
			if err := s.Try("hostile", 1); err != nil {
				t.Fatalf("within its share: %v", err)
			}
		}
		if own, other, full := s.Try("hostile", 1), s.Try("other", 2), s.Try("healthy", 1); !errors.Is(own, callers.ErrShare) || other != nil || !errors.Is(full, callers.ErrFull) {
			t.Fatalf("beyond a share %v, within the total %v, beyond the total %v", own, other, full)
		}
		var served []string
		wait := func(feature string) {
			go func() {
				if s.Take(t.Context(), feature, 1) == nil {
					served = append(served, feature)
				}
			}()
			synctest.Wait()
		}
		for _, feature := range []string{"hostile", "hostile", "hostile", "other", "healthy", "healthy", "late"} {
			wait(feature)
		}
		for range 6 {
			s.Give("hostile", 1)
			synctest.Wait()
		}
		if want := []string{"healthy", "late", "healthy", "hostile", "other", "hostile"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Take(short, "nobody", 4); !errors.Is(err, callers.ErrFull) {
			t.Errorf("more than there is: %v", err)
		}
		if err := s.Take(short, "nobody", 7); !errors.Is(err, callers.ErrShare) {
			t.Errorf("more than a share: %v", err)
		}
		s.Give("other", 1)
		synctest.Wait()
		s.Give("hostile", 3)
		if !slices.Equal(served[6:], []string{"hostile"}) || s.Try("new", 3) != nil || s.Try("late", 1) == nil {
			t.Errorf("what was waited for in vain is held: %v", served)
		}
	})
}

// TestSharesTakeTurns: of Features that hold the same, who was served longest ago is served first, so that a queue of one Feature keeps nobody waiting for
// more than one turn. Who is gone is forgotten.
func TestSharesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := callers.NewShares(1, 1)
		var served []string
		wait := func(ctx context.Context, feature string) {
			go func() {
				if s.Take(ctx, feature, 1) == nil {
					served = append(served, feature)
				}
			}()
			synctest.Wait()
		}
		impatient, cancel := context.WithCancel(t.Context())
		if err := s.Try("hostile", 1); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			wait(t.Context(), "hostile")
		}
		wait(impatient, "impatient")
		for _, feature := range []string{"healthy", "healthy", "late"} {
			wait(t.Context(), feature)
		}
		cancel()
		synctest.Wait()
		want := []string{"healthy", "late", "hostile", "healthy", "hostile", "hostile", "hostile"}
		for n := range want {
			s.Give(append([]string{"hostile"}, want...)[n], 1)
			synctest.Wait()
		}
		if s.Give("hostile", 1); !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
		if n := s.Known(); n != 0 {
			t.Errorf("%d Features are remembered that hold nothing and wait for nothing", n)
		}
	})
}

// TestSharesStarveNobody: Features that come one call at a time, each time as if for the first time, do not keep a Feature waiting that has calls at once.
func TestSharesStarveNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := callers.NewShares(1, 1)
		var served []string
		wait := func(feature string) {
			go func() {
				if s.Take(t.Context(), feature, 1) == nil {
					served = append(served, feature)
				}
			}()
			synctest.Wait()
		}
		for _, feature := range []string{"busy", "busy", "one", "two", "busy"} {
			wait(feature)
		}
		const rounds = 12
		for n := range rounds {
			last := served[n]
			s.Give(last, 1)
			synctest.Wait()
			wait(last) // each comes again
		}
		longest, since := 0, 0
		for _, feature := range served {
			if since++; feature == "busy" {
				since = 0
			}
			longest = max(longest, since)
		}
		if longest > 2 {
			t.Errorf("a Feature waits while %d calls of two others are served: %v", longest, served)
		}
	})
}
