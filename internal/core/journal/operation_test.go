// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestOperations: what an agent was told is known until its task is done, also in the attempt after it.
func TestOperations(t *testing.T) {
	refused := journal.Operation{ID: "op1", Task: "form", Patch: "sum1", Answer: `{"status":"refused"}`}
	applied := journal.Operation{ID: "op2", Task: "form", Patch: "sum2", Answer: `{"status":"applied"}`}
	patch := journal.Record{Intent: &journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "d1", OldDelivery: "b", Restore: "t1",
		TreeVerdict: protocol.Valid, Operation: &applied, Report: protocol.CheckpointReport{Settled: true}}}
	patchDone := journal.Record{Done: &journal.Done{Sequence: 1}}
	closing := journal.Record{Intent: &journal.Intent{Sequence: 2, Commit: "k1", OldChain: "k1", Tree: "t1", Delivery: "d1", OldDelivery: "d1",
		Completes: "form", TreeVerdict: protocol.Valid, Report: protocol.CheckpointReport{Settled: true}}}
	recall := func(s journal.State, id, sum string) string {
		o, recall := s.Tasks["form"].Recall(id, sum)
		return string(recall) + o.Answer
	}
	records := []journal.Record{attempt1, base, begun, {Operation: &refused}, patch}
	for name, tc := range map[string]struct {
		more []journal.Record
		// want of op1, op2, and op2 with another patch.
		want [3]string
	}{
		"before the intent is acted on": {nil, [3]string{"replay" + refused.Answer, "new", "new"}},
		"afterwards":                    {[]journal.Record{patchDone}, [3]string{"replay" + refused.Answer, "replay" + applied.Answer, "mismatch"}},
		"in the next attempt":           {[]journal.Record{attempt2, patchDone}, [3]string{"replay" + refused.Answer, "replay" + applied.Answer, "mismatch"}},
		"when it began again":           {[]journal.Record{patchDone, attempt2, begun}, [3]string{"replay" + refused.Answer, "replay" + applied.Answer, "mismatch"}},
		"when its agent is started anew": {
			[]journal.Record{patchDone, {TaskRestarted: &journal.TaskRestarted{Name: "form", ID: "steering/1", Text: "x"}}}, [3]string{"new", "new", "new"},
		},
		"when the task is done": {
			[]journal.Record{patchDone, closing, {Done: &journal.Done{Sequence: 2}}}, [3]string{"new", "new", "new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, write(t, append(slices.Clip(records), tc.more...)...))
			got := [3]string{recall(s, "op1", "sum1"), recall(s, "op2", "sum2"), recall(s, "op2", "other")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("recalled (-want +got):\n%s", diff)
			}
		})
	}
	s := read(t, write(t, append(records, patchDone)...))
	if diff := cmp.Diff(journal.Workspace{Tree: "t1", TreeVerdict: protocol.Valid, Settled: true}, s.Workspace); diff != "" {
		t.Errorf("workspace after a patch (-want +got):\n%s", diff)
	}
}

// TestQuestions: the question of an agent stays until its process or its attempt ends; what was asked is known for good.
func TestQuestions(t *testing.T) {
	asked := journal.Record{Asked: &protocol.Question{ID: "q1", Text: "Which?"}}
	for name, tc := range map[string]struct {
		more []journal.Record
		open bool
	}{
		"asked":                {open: true},
		"the agent ended":      {more: []journal.Record{ended}},
		"another attempt came": {more: []journal.Record{attempt2}},
		"another agent begins": {more: []journal.Record{{TaskRestarted: &journal.TaskRestarted{Name: begun.TaskBegun.Name, ID: "steering/3", Text: "Anew."}}}},
		"the agent goes on":    {more: []journal.Record{{TaskCorrected: &journal.TaskCorrected{Name: begun.TaskBegun.Name, ID: "steering/3", Text: "Go on."}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, write(t, append([]journal.Record{attempt1, base, begun, asked}, tc.more...)...))
			if (s.Asked != nil) != tc.open || s.Questions["q1"] != "Which?" {
				t.Errorf("asked %+v, questions %v", s.Asked, s.Questions)
			}
		})
	}
}

// TestTheAgentsWord: when a task was completed counts for the attempt that it was said in.
func TestTheAgentsWord(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	word := journal.Record{Time: at, TaskCompleted: &journal.TaskCompleted{Name: "form", Summary: "done"}}
	if s := read(t, write(t, attempt1, base, begun, word)); !s.Tasks["form"].Completed.Equal(at) {
		t.Errorf("completed at %v", s.Tasks["form"].Completed)
	}
	if s := read(t, write(t, attempt1, base, begun, word, attempt2)); !s.Tasks["form"].Completed.IsZero() {
		t.Errorf("in the next attempt completed at %v", s.Tasks["form"].Completed)
	}
}
