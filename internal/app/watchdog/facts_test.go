// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestATaskThatBeginsTwice has the same text, whatever crash came between: the journal is read again from its records or from a snapshot, and the
// task begins again in the same attempt or in the next one.
func TestATaskThatBeginsTwice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		note := func(s journal.State, records ...journal.Record) journal.State {
			for _, x := range records {
				next, err := s.Apply(x)
				if err != nil {
					r.Fatal(err)
				}
				s = next
			}
			return s
		}
		begin := func(task string) journal.Record { return journal.Record{TaskBegun: &journal.TaskBegun{Name: task}} }
		o := protocol.Orders{Feature: protocol.FeatureRef{Name: "login"}, Repository: protocol.Repository{URL: "https://git.example.com/shop.git", Revision: "main"}}
		for i := range rapid.IntRange(2, 50).Draw(r, "tasks") {
			o.Tasks = append(o.Tasks, protocol.Task{Name: fmt.Sprintf("m%d/t%d", i/7, i)})
		}
		s := note(journal.State{}, journal.Record{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}, journal.Record{Base: &journal.Base{Commit: "b", Tree: "bt"}}, journal.Record{Orders: &o})
		last := rapid.IntRange(0, len(o.Tasks)-1).Draw(r, "done")
		for i, task := range rapid.Permutation(o.Tasks).Draw(r, "order")[:last] {
			s = note(s, begin(task.Name), journal.Record{TaskCompleted: &journal.TaskCompleted{Name: task.Name, Summary: rapid.String().Draw(r, "summary")}})
			intent := journal.Intent{Sequence: int64(i + 1), Commit: fmt.Sprint("k", i), OldChain: s.Chain.Commit, Tree: "t", Delivery: s.Promoted.Commit, OldDelivery: s.Promoted.Commit, Completes: task.Name}
			if intent.Report.Task = task.Name; rapid.Bool().Draw(r, "promoted") {
				intent.Delivery = fmt.Sprint("d", i)
			}
			s = note(s, journal.Record{Intent: &intent}, journal.Record{Done: &journal.Done{Sequence: intent.Sequence}})
		}
		current := ""
		for _, task := range o.Tasks {
			if !s.Tasks[task.Name].Done {
				current = task.Name
			}
		}
		text := func(s journal.State) string { return factsOf(o, s, current, "").Text("Work.") }
		begun := note(s, begin(current))
		line, _, err := journal.Encode(journal.Record{Snapshot: &journal.Snapshot{Segments: 1, State: begun}}, "")
		if err != nil {
			r.Fatal(err)
		}
		records, _, err := journal.Decode(line)
		if err != nil {
			r.Fatal(err)
		}
		restored := note(journal.State{}, records...)
		for name, again := range map[string]journal.State{
			"the same attempt": note(begun, begin(current)), "a snapshot": note(restored, begin(current)),
			"the next attempt": note(begun, journal.Record{Attempt: &journal.Attempt{Epoch: 2, Run: "agent"}}, begin(current)),
		} {
			if diff := cmp.Diff(text(begun), text(again)); diff != "" {
				r.Errorf("%s (-before +after):\n%s", name, diff)
			}
		}
	})
}
