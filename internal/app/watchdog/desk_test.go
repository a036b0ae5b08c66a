// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// atWork is a desk whose agent works on the task form. The loop has looked at it once, and does so again with look.
func atWork(t *testing.T) (d *desk, look func() supervise.Tools) {
	t.Helper()
	r := &run{workshop: workshop{attempt: &attempt{book: opened(t, filepath.Join(t.TempDir(), "journal"), 1<<20)}}}
	noted(t, r.book, []journal.Record{{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}},
		{Base: &journal.Base{Commit: "b", Tree: "t"}}, {TaskBegun: &journal.TaskBegun{Name: "form"}}})
	state := supervise.State{Mode: policy.ModeDeterministic, Tasks: []supervise.Task{{Name: "form", Phase: supervise.Running}}}
	d = newDesk(r)
	look = func() supervise.Tools {
		seen := d.see(state, contract.Orders{})
		state = state.Apply(seen, clock())
		return seen
	}
	look()
	return d, look
}

// An agent's word that its task is done closes the desk at once, not when the loop looks at it next.
func TestNoPatchIsTakenAfterCompletion(t *testing.T) {
	d, look := atWork(t)
	if err := d.Complete(t.Context(), "done"); err != nil {
		t.Fatal(err)
	}
	call := &patchCall{id: "late", patch: "a patch", done: make(chan patchDone, 1)}
	if _, _, err := d.submit(call); !errors.Is(err, errClosed) {
		t.Errorf("a patch after the agent's word that its task is done: %v, want %v", err, errClosed)
	}
	want := supervise.Tools{Completed: clock()}
	if seen := look(); !equalTools(seen, want) {
		t.Errorf("on the desk: %+v, want %+v", seen, want)
	}
}

// An agent with a patch that waits, or that is being judged, is not done.
func TestNoCompletionBeforeThePatchIsAnswered(t *testing.T) {
	d, look := atWork(t)
	call := &patchCall{id: "early", patch: "a patch", done: make(chan patchDone, 1)}
	if _, _, err := d.submit(call); err != nil {
		t.Fatal(err)
	}
	if err := d.Complete(t.Context(), "done"); err == nil {
		t.Error("the task is completed while a patch waits")
	}
	if seen := look(); !equalTools(seen, supervise.Tools{Patches: 1}) {
		t.Errorf("on the desk: %+v, want one patch and no completion", seen)
	}
	taken := d.take()
	if err := d.Complete(t.Context(), "done"); err == nil {
		t.Error("the task is completed while a patch is being judged")
	}
	d.finish(taken, patchDone{})
	if err := d.Complete(t.Context(), "done"); err != nil {
		t.Errorf("the task is not completed after every patch was answered: %v", err)
	}
}

func equalTools(a, b supervise.Tools) bool {
	return a.Patches == b.Patches && a.Question == b.Question && a.Completed.Round(time.Second).Equal(b.Completed.Round(time.Second))
}
