// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// aborting is a life in which form cannot be done: its work was promoted, and then goes back.
func aborting() []journal.Record {
	orders := protocol.Orders{Tasks: []protocol.Task{{Name: "form", Continue: true}, {Name: "save"}}}
	return []journal.Record{
		attempt1, base, {Orders: &orders}, {TaskBegun: &journal.TaskBegun{Name: "form", Policy: policy.Effective{Hash: "p"}, From: "bt"}}, started,
		{Intent: &journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "d1", OldDelivery: "b", TreeVerdict: protocol.Valid, Report: protocol.CheckpointReport{Task: "form", Settled: true}}}, {Done: &journal.Done{Sequence: 1}},
		ended,
		{TaskAborted: &journal.TaskAborted{Name: "form", ID: "steering/abort/1/1", Reason: protocol.ReasonAgentFailed, Message: "it exited\nwith code 3"}},
		{Intent: &journal.Intent{Sequence: 2, Commit: "k1", OldChain: "k1", Tree: "t1", Delivery: "d1", OldDelivery: "d1", Restore: "bt", Chosen: true, TreeVerdict: protocol.Valid,
			Report: protocol.CheckpointReport{Task: "form", Settled: true, Rollback: &protocol.RollbackReport{Cause: protocol.RollbackBySupervision}}}},
		{Done: &journal.Done{Sequence: 2}},
		{Request: &protocol.RequestReport{ID: "steering/abort/1/1", OK: true}},
		{Intent: &journal.Intent{Sequence: 3, Commit: "k3", OldChain: "k1", Tree: "bt", Delivery: "d3", OldDelivery: "d1", Aborts: "form", TreeVerdict: protocol.Valid, Report: protocol.CheckpointReport{Task: "form", Settled: true}}},
		{Done: &journal.Done{Sequence: 3}},
	}
}

// TestAbortedTask: the agent's task stays the current one until its changes have left, in this attempt or in a later one. Then the task is over for ever.
func TestAbortedTask(t *testing.T) {
	records := aborting()
	for n := 9; n < len(records); n++ {
		for name, s := range map[string]journal.State{"this attempt": read(t, write(t, records[:n]...)), "the next one": read(t, write(t, append(records[:n:n], attempt2)...))} {
			task := s.Tasks["form"]
			if s.Pending != nil {
				continue
			}
			if s.Working() != "form" || task.Aborted || task.Aborting == nil || task.Aborting.Message != "it exited with code 3" || !task.Ended || task.Beginning() != "bt" || task.Policy.Hash != "p" {
				t.Errorf("after %d records in %s: working on %q, %+v", n, name, s.Working(), task)
			}
		}
	}
	s := read(t, write(t, records...))
	if task := s.Tasks["form"]; !task.Over() || task.Done || s.Working() != "" || task.Work.Checkpoint != 3 || s.Promoted.Tree != "bt" || s.Start != "bt" || s.TasksDone() != 1 || s.Works()["form"] == nil {
		t.Errorf("at the end: %+v, %+v", task, s)
	}
	if got := read(t, write(t, append(records, attempt2)...)).Tasks["form"]; !got.Aborted {
		t.Errorf("in the next attempt: %+v", got)
	}
	for want, r := range map[string]journal.Record{
		"begun after it was aborted": {TaskBegun: &journal.TaskBegun{Name: "form"}},
		"aborted after it was over":  {TaskAborted: &journal.TaskAborted{Name: "form", ID: "i", Reason: "r"}},
		"which is not being aborted": {Done: &journal.Done{Sequence: 4}},
		"without an ID or a reason":  {TaskAborted: &journal.TaskAborted{Name: "form", ID: "i"}},
		`task "mail" was not begun`:  {TaskAborted: &journal.TaskAborted{Name: "mail", ID: "i", Reason: "r"}},
	} {
		before := records
		if r.Done != nil {
			again := *records[len(records)-2].Intent
			again.Sequence, again.OldChain, again.OldDelivery = 4, "k3", "d3"
			before = slices.Concat(records, []journal.Record{{Intent: &again}})
		}
		if _, err := journal.Replay(append(slices.Clip(before), r)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestARetryAfterEveryTaskWasAborted begins them again, and only an attempt with an agent does.
func TestARetryAfterEveryTaskWasAborted(t *testing.T) {
	final := journal.Record{Final: &protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonTasksAborted}}
	records := append(aborting(), final)
	seal := journal.Record{Attempt: &journal.Attempt{Epoch: 2, Run: "seal"}}
	if got := read(t, write(t, append(records, seal)...)).Tasks["form"]; !got.Aborted {
		t.Errorf("after an errand: %+v", got)
	}
	attempt3 := journal.Record{Attempt: &journal.Attempt{Epoch: 3, Run: "agent"}}
	s := read(t, write(t, append(records, seal, final, attempt3, journal.Record{TaskBegun: &journal.TaskBegun{Name: "form", From: "bt"}})...))
	if got := s.Tasks["form"]; got.Over() || got.Aborting != nil || s.Working() != "form" {
		t.Errorf("after a retry: %+v", got)
	}
	lost := slices.Concat([]journal.Record{attempt1, final, attempt2}, aborting()[1:], []journal.Record{attempt3})
	if got := read(t, write(t, lost...)).Tasks["form"]; !got.Aborted { // nobody has asked for the third attempt
		t.Errorf("aborted after a retry, in an attempt that was lost: %+v", got)
	}
}

// TestFailuresOfATask are those that final reports count, of attempts with an agent.
func TestFailuresOfATask(t *testing.T) {
	failed := func(n int) journal.Record {
		return journal.Record{Final: &protocol.FinalReport{Outcome: protocol.OutcomeAgentFailed, Reason: protocol.ReasonAgentFailed, TaskFailures: n}}
	}
	attempt := func(epoch int64, run string) journal.Record {
		return journal.Record{Attempt: &journal.Attempt{Epoch: epoch, Run: run}}
	}
	s := read(t, write(t, attempt1, base, begun, started, ended, failed(1), attempt2, begun, started, ended, failed(2), attempt(3, "seal"), failed(7), attempt(4, "agent"), begun))
	if got := s.Tasks["form"].Failures; got != 2 {
		t.Errorf("%d failures, want 2", got)
	}
	if got := read(t, write(t, attempt1, base, begun, started, ended, failed(0))).Tasks["form"].Failures; got != 0 {
		t.Errorf("%d failures of a task that is not aborted, want 0", got)
	}
}

// TestAUsersRollbackIsNotUndone: a task that is aborted later goes back to the older state that a user has chosen, and not behind it.
func TestAUsersRollbackIsNotUndone(t *testing.T) {
	step := func(sequence int64, task string, change func(*journal.Intent)) []journal.Record {
		n, before := fmt.Sprint(sequence), fmt.Sprint(sequence-1)
		i := &journal.Intent{Sequence: sequence, Commit: "k" + n, OldChain: "k" + before, Tree: "t" + n, Delivery: "d" + n, OldDelivery: "d" + before, TreeVerdict: protocol.Valid,
			Report: protocol.CheckpointReport{Task: task, Settled: true}}
		if sequence == 1 {
			i.OldChain, i.OldDelivery = "", "b"
		}
		change(i)
		return []journal.Record{{Intent: i}, {Done: &journal.Done{Sequence: sequence}}}
	}
	// The first task takes checkpoints 1 and 2, and form, which begins then, takes checkpoint 3.
	life := []journal.Record{attempt1, base, {TaskBegun: &journal.TaskBegun{Name: "first", From: "bt"}}}
	life = append(life, step(1, "first", func(*journal.Intent) {})...)
	life = append(life, step(2, "first", func(i *journal.Intent) { i.Completes = "first" })...)
	life = append(life, journal.Record{TaskBegun: &journal.TaskBegun{Name: "form", From: "t2"}})
	life = append(life, step(3, "form", func(*journal.Intent) {})...)
	back := func(change func(*journal.Intent)) []journal.Record {
		return append(slices.Clip(life), step(4, "form", func(i *journal.Intent) {
			i.Restore, i.Chosen, i.Report.Rollback = "t1", true, &protocol.RollbackReport{Cause: protocol.RollbackByRequest, To: 1}
			change(i)
		})...)
	}
	for name, test := range map[string]struct {
		change func(*journal.Intent)
		want   string
	}{
		"to an older state":       {func(*journal.Intent) {}, "t1"},
		"to its beginning":        {func(i *journal.Intent) { i.Restore, i.Report.Rollback.To = "t2", 2 }, "t2"},
		"to a state of the task":  {func(i *journal.Intent) { i.Restore, i.Report.Rollback.To = "t3", 3 }, "t2"},
		"to the last valid state": {func(i *journal.Intent) { i.Restore, i.Report.Rollback.To = "t3", 0 }, "t2"},
		"of paths":                {func(i *journal.Intent) { i.RestorePaths = [][]byte{[]byte("web")} }, "t2"},
		"by the watchdog":         {func(i *journal.Intent) { i.Report.Rollback.Cause = protocol.RollbackBySupervision }, "t2"},
		"because of a violation":  {func(i *journal.Intent) { i.Chosen = false }, "t2"},
		"that never came":         {nil, "t2"},
	} {
		records := life
		if test.change != nil {
			records = back(test.change)
		}
		for _, s := range []journal.State{read(t, write(t, records...)), read(t, write(t, append(slices.Clip(records), attempt2, journal.Record{TaskBegun: &journal.TaskBegun{Name: "form", From: "t9"}})...))} {
			if got := s.Tasks["form"].Beginning(); got != test.want {
				t.Errorf("a rollback %s: the beginning is %q, want %q", name, got, test.want)
			}
		}
	}
	records := back(func(*journal.Intent) {})
	old := snapshotOf(t, 1, records...)
	for name, task := range old.Snapshot.State.Tasks { // as an earlier version has them
		task.Since, task.Chosen = 0, ""
		old.Snapshot.State.Tasks[name] = task
	}
	if _, err := journal.Replay(append(records, old)); err != nil {
		t.Errorf("a snapshot of an earlier version: %v", err)
	}
}
