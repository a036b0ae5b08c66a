// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

// failed is a call that a provider has refused, which costs nothing.
func failed(id string) core.Interaction {
	i := call(id)
	i.Tokens, i.Cost, i.Status, i.Reason, i.Backend = core.Tokens{}, 0, http.StatusBadRequest, "Answered", "main"
	return i
}

// refused is a call that reached no backend.
func refused(reason, detail string) core.Interaction {
	return core.Interaction{
		At: began, FeatureUID: "uid", Namespace: "shop", Feature: "login", Attempt: 1, Task: "form", Dialect: "anthropic",
		Status: http.StatusForbidden, Reason: reason, Detail: detail,
	}
}

// all turns of the Feature.
func all(w *world, l *ledger.Ledger) []core.Interaction {
	turns, err := l.Turns(w.Context(), "uid", 0, ledger.MaxTurns)
	w.must(err)
	return turns
}

// TestFailedCallsShareARow: calls that failed and cost nothing are one row for a minute and a reason, with their number, whatever replica
// records them; calls that cost something have a row each, and what was reserved for any is free.
func TestFailedCallsShareARow(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		const workers, each = 8, 25
		var group sync.WaitGroup
		for worker := range workers {
			group.Go(func() {
				for n := range each {
					l, id := replicas[n%2], name("call", worker, n)
					if err := l.Reserve(w.Context(), reservation(id, 10), nil); err != nil {
						t.Error(err)
					}
					if err := l.Settle(w.Context(), id, failed(id)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		l := replicas[0]
		w.must(l.Settle(t.Context(), "", call("answered")))
		other := failed("other")
		other.Status = http.StatusTooManyRequests
		w.must(l.Settle(t.Context(), "", other))
		later := failed("later")
		later.At = began.Add(time.Minute)
		w.must(l.Settle(t.Context(), "", later))
		long := failed("long")
		long.At, long.Raw = began.Add(2*time.Minute), []byte(strings.Repeat("x", 1<<20))
		w.must(l.Settle(t.Context(), "", long))
		type row struct {
			Sequence, Count int64
			Status          int
			At              time.Time
		}
		var got []row
		for _, i := range all(w, l) {
			got = append(got, row{i.Sequence, i.Count, i.Status, i.At})
		}
		want := []row{
			{1, workers * each, 400, began}, {2, 1, 200, began}, {3, 1, 429, began}, {4, 1, 400, began.Add(time.Minute)},
			{5, 1, 400, began.Add(2 * time.Minute)},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// What the provider said first is kept.
		if i, err := l.Turn(t.Context(), "uid", 1); err != nil || !strings.HasPrefix(string(i.Raw), "the answer to call") {
			t.Errorf("%q, %v", i.Raw, err)
		}
		if i, err := l.Turn(t.Context(), "uid", 5); err != nil || len(i.Raw) != core.MaxFolded {
			t.Errorf("%d bytes, %v", len(i.Raw), err)
		}
		// Each counts as a call, and nothing is reserved or used by them.
		u := calls(1)
		u.Calls = workers*each + 4
		w.usage(l, core.Feature, "uid", u)
		w.usage(l, core.Global, "", u)
		if _, reserved, err := l.Taken(t.Context(), core.Budget{Scope: core.Global}); err != nil || reserved != (core.Amount{}) {
			t.Errorf("%+v, %v", reserved, err)
		}
	})
}

// TestRefusedCallsShareARow: so do calls that reached no backend. They count in no total, and their details are told.
func TestRefusedCallsShareARow(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		for n := range 1000 {
			replicas[n%2].Fold(t.Context(), refused("ServerToolNotAllowed", []string{"mcp_servers", "web_fetch\x1b\n"}[n/500]))
			replicas[n%2].Fold(t.Context(), refused("CallRateExceeded", ""))
		}
		replicas[0].Fold(t.Context(), core.Interaction{Reason: "NobodyKnowsWho"})
		replicas[1].Turns(t.Context(), "uid", 0, 1) // it writes what it has
		l := replicas[0]
		got := map[string]core.Interaction{}
		for _, i := range all(w, l) {
			got[i.Reason] = core.Interaction{Count: i.Count, Detail: i.Detail, Status: i.Status}
		}
		want := map[string]core.Interaction{
			"ServerToolNotAllowed": {Count: 1000, Detail: "mcp_servers; web_fetch  ", Status: 403}, "CallRateExceeded": {Count: 1000, Status: 403},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.usage(l, core.Feature, "uid", core.Usage{})
		w.usage(l, core.Global, "", core.Usage{})
		w.must(l.Settle(t.Context(), "", call("next")))
		if i, err := l.Turn(t.Context(), "uid", 3); err != nil || i.ID != "next" {
			t.Errorf("%+v, %v", i, err)
		}
		w.usage(l, core.Feature, "uid", calls(1))
		// What is not written yet is written at the end.
		l.Fold(t.Context(), refused("AtTheEnd", ""))
		w.must(l.Close())
		l = w.open()
		if turns := all(w, l); turns[len(turns)-1].Reason != "AtTheEnd" {
			t.Errorf("%+v", turns[len(turns)-1])
		}
		// Notes go with their rows.
		w.now.Add(int64(1000 * 24 * time.Hour))
		if n, err := l.Expire(t.Context(), "uid", 100); err != nil || n != 4 {
			t.Errorf("%d removed, %v", n, err)
		}
	})
}

// TestAFloodOfRefusedCalls: 100,000 refused calls of one Feature, with details of its own choice, leave few rows of a bounded size, and
// another Feature's calls go on.
func TestAFloodOfRefusedCalls(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		const workers, each = 10, 10_000
		var group sync.WaitGroup
		for worker := range workers {
			group.Go(func() {
				for n := range each {
					l.Fold(w.Context(), refused("ServerToolNotAllowed", name("tool", worker, n)))
				}
			})
		}
		for n := range 100 {
			id := name("healthy", n)
			i := call(id)
			i.FeatureUID, i.Feature = "healthy", "healthy"
			r := core.Reservation{ID: id, FeatureUID: "healthy", Namespace: "shop", Wanted: core.Amount{Input: 10}, Until: began.Add(time.Minute)}
			w.must(l.Reserve(t.Context(), r, []core.Budget{{Scope: core.Feature, Key: "healthy", Limit: core.Amount{Input: 1000}}}))
			w.must(l.Settle(t.Context(), id, i))
		}
		group.Wait()
		turns := all(w, l)
		if len(turns) != 1 || turns[0].Count != workers*each || len(turns[0].Detail) > core.MaxDetail {
			t.Errorf("%d rows, the first of %d calls with %d bytes of details", len(turns), turns[0].Count, len(turns[0].Detail))
		}
		w.usage(l, core.Feature, "healthy", calls(100))
		w.usage(l, core.Feature, "uid", core.Usage{})
	})
}
