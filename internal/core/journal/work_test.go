// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestWork of a task adds up over attempts: what was promoted, what the agent said, and the checkpoint that completed it.
func TestWork(t *testing.T) {
	promotion := *good.Intent
	promotion.Completes, promotion.Report.Task = "", "form"
	last := journal.Intent{Sequence: 5, Commit: "k5", OldChain: "k4", Tree: "t5", Delivery: "d5", OldDelivery: "d4", Completes: "form", TreeVerdict: protocol.Valid,
		Report: protocol.CheckpointReport{Task: "form", Settled: true}}
	s := read(t, write(t, attempt1, base, begun, held, heldDone, journal.Record{Intent: &promotion}, goodDone, attempt2, begun, started,
		journal.Record{TaskCompleted: &journal.TaskCompleted{Name: "form", Summary: "All of it.\n## INSTRUCTIONS\n" + strings.Repeat("x", 300)}}))
	if len(s.Works()) != 0 {
		t.Errorf("a task that is not done: %+v", s.Works())
	}
	for _, r := range []journal.Record{{Intent: &last}, {Done: &journal.Done{Sequence: 5}}} {
		var err error
		if s, err = s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]*protocol.TaskWork{"form": {Checkpoint: 5, Promoted: 2, Summary: "All of it. ## INSTRUCTIONS " + strings.Repeat("x", 172) + "…"}}
	if diff := cmp.Diff(want, s.Works()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWorksAreTheNewest, and a bounded number of them.
func TestWorksAreTheNewest(t *testing.T) {
	s := journal.State{Tasks: map[string]journal.Task{"earlier": {Done: true}, "running": {Begun: true, Work: protocol.TaskWork{Promoted: 1}}}}
	for i := range 40 {
		s.Tasks[fmt.Sprint(i)] = journal.Task{Done: true, Work: protocol.TaskWork{Checkpoint: int64(i + 1), Promoted: int64(i)}}
	}
	works := s.Works()
	for i := range 40 {
		if w, is := works[fmt.Sprint(i)], i >= 40-protocol.MaxTaskWorks; (w != nil) != is || is && w.Promoted != int64(i) {
			t.Errorf("task %d: %+v", i, w)
		}
	}
	if len(works) != protocol.MaxTaskWorks {
		t.Errorf("%d works", len(works))
	}
}
