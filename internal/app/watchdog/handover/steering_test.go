// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/workroom"
)

// steer notes a step of steering.
func steer(t *testing.T, r *workroom.Room, sequence int64, before string) protocol.SteeringStep {
	t.Helper()
	x := protocol.SteeringStep{Sequence: sequence, Attempt: 1, Task: "form", Anomaly: "AgentLooping", Evidence: fmt.Sprint("evidence ", sequence), Rung: "Surgery", Before: before}
	if err := r.Journal.Note(journal.Record{Steered: &x}); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestSteeringOnce: wherever the process ends, the gateway gets every step of steering whole, in order, beside the checkpoints, and not
// again what is noted.
func TestSteeringOnce(t *testing.T) {
	pulled := errors.New("pulled")
	for _, step := range []string{"handed over", "handover noted"} {
		r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
		g := newGateway(t)
		var want []protocol.SteeringStep
		for n := range int64(4) {
			want = append(want, steer(t, r, 2*n+1, ""), steer(t, r, 2*n+2, "[1]"))
			r.Write("web/a.html", fmt.Sprintln("line", n))
			take(t, r)
		}
		for n := 0; ; n++ {
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
			if !errors.Is(err, pulled) || n > 20 {
				t.Fatal(err)
			}
			r.Open(nil)
		}
		got := g.steps
		if step == "handed over" { // what was not noted came again, and the gateway leaves it as it is
			got = slices.CompactFunc(slices.Clone(got), func(a, b protocol.SteeringStep) bool { return cmp.Equal(a, b) })
			if len(got) == len(g.steps) {
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

// TestSteeringWhileAtWork is handed over, also where there is more of it than fits into memory.
func TestSteeringWhileAtWork(t *testing.T) {
	r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
	s := New(Options{Dir: r.Dir, Journal: r.Journal, Repository: r.Repository, Log: slog.New(slog.DiscardHandler)})
	q := s.queue
	q.mark.History = 1 << 62
	if _, is, err := q.next(); err != nil || is {
		t.Fatalf("%t, %v", is, err)
	}
	large := strings.Repeat("x", mostBytes/2)
	var want []protocol.SteeringStep
	for n := range int64(7) {
		x := steer(t, r, n+1, large)
		s.Steered(x)
		s.Steered(x) // known
		want = append(want, x)
		if q.bytes > mostBytes+len(large) || len(q.entries) > 2 {
			t.Fatalf("%d bytes of %d entries are in memory", q.bytes, len(q.entries))
		}
	}
	var got []protocol.SteeringStep
	for {
		e, is, err := q.next()
		if err != nil {
			t.Fatal(err)
		}
		if !is {
			break
		}
		if q.bytes > mostBytes+len(large) {
			t.Fatalf("%d bytes are in memory", q.bytes)
		}
		got = append(got, *e.steering)
		if err := q.taken(e); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || q.bytes != 0 {
		t.Errorf("%d bytes are left (-want +got):\n%s", q.bytes, diff)
	}
	if waiting, _ := q.waiting(); waiting {
		t.Error("something waits in the end")
	}
}
