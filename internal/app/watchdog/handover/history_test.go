// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/workroom"
)

func note(t *testing.T, r *workroom.Room, records ...journal.Record) {
	t.Helper()
	for _, x := range records {
		if err := r.Journal.Note(x); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistoryOnce: wherever the process ends, the gateway gets every entry of the history, in order, beside the checkpoints, and not again what
// is noted. What a journal says later about a record is what its process has said.
func TestHistoryOnce(t *testing.T) {
	pulled := errors.New("pulled")
	for _, step := range []string{"history handed over", "history noted"} {
		r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
		g := newGateway(t)
		// What its own process hands over, while it is at work.
		if err := serve(t, r, g, nil); err != nil {
			t.Fatal(err)
		}
		s := New(Options{Dir: r.Dir, Journal: r.Journal, Repository: r.Repository, Log: slog.New(slog.DiscardHandler)})
		if _, is, err := s.queue.next(); is || err != nil {
			t.Fatalf("%t, %v", is, err)
		}
		for n := range 4 {
			note(t, r, journal.Record{Asked: &protocol.Question{ID: fmt.Sprint("q", n), Text: "Which color?"}}, journal.Record{TaskCompleted: &journal.TaskCompleted{Name: "form", Summary: fmt.Sprint(n)}})
			r.Write("web/a.html", fmt.Sprintln("line", n))
			take(t, r)
		}
		var want []protocol.HistoryEntry
		for _, e := range s.queue.entries {
			want = append(want, *e.history)
		}
		if len(want) != 8 {
			t.Fatalf("%+v", want)
		}
		before := len(g.history)
		for n := 0; ; n++ {
			r.Open(nil)
			limit := n // it gets a little further each time
			err := serve(t, r, g, func(reached string) error {
				if reached == step {
					if limit--; limit < 0 {
						return pulled
					}
				}
				return nil
			})
			if err == nil {
				break
			}
			if !errors.Is(err, pulled) || n > 30 {
				t.Fatal(err)
			}
		}
		got := g.history[before:]
		if step == "history handed over" { // what was not noted came again, and the gateway leaves it as it is
			got = slices.CompactFunc(slices.Clone(got), func(a, b protocol.HistoryEntry) bool { return cmp.Equal(a, b) })
			if len(got) == len(g.history[before:]) {
				t.Error("nothing was handed over again")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
		if !slices.Equal(g.order, []int64{1, 2, 3, 4}) {
			t.Errorf("%s: checkpoints %v", step, g.order)
		}
	}
}

// TestHistoryOfARecordThatDoesNotFollow: checkpoints and steps of steering need no history, and are handed over.
func TestHistoryOfARecordThatDoesNotFollow(t *testing.T) {
	x := newReader()
	if got := x.entries(1, journal.Record{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}); len(got) != 1 || got[0].history == nil {
		t.Errorf("%+v", got)
	}
	if got := x.entries(2, journal.Record{Done: &journal.Done{Sequence: 7}}); len(got) != 0 || !x.lost {
		t.Errorf("%+v", got)
	}
	if got := x.entries(3, journal.Record{Steered: &protocol.SteeringStep{Sequence: 1}}); len(got) != 1 || got[0].steering == nil {
		t.Errorf("%+v", got)
	}
	if got := x.entries(4, journal.Record{Attempt: &journal.Attempt{Epoch: 2, Run: "agent"}}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
