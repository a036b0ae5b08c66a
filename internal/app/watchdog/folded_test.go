// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestFoldedRecordIsVerified: a journal in segments is one chain from the base on, and a segment that is missing, or in the
// place of another, breaks it.
func TestFoldedRecordIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crashScript, keen, shadow)
	w.fold = true
	w.wantUndisturbed(w.start(1, nil).finish())
	segments, err := filepath.Glob(filepath.Join(w.paths.Trusted, "journal-*.jsonl.gz"))
	if err != nil || len(segments) < 10 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	slices.Sort(segments)
	for name, spoil := range map[string]func(in func(i int) string) error{
		"the first is gone":  func(in func(int) string) error { return os.Remove(in(0)) },
		"one is gone":        func(in func(int) string) error { return os.Remove(in(5)) },
		"one is there twice": func(in func(int) string) error { return os.Rename(in(5), in(6)) },
		"all are gone":       func(in func(int) string) error { return removeAll(in, len(segments)) },
	} {
		broken := copyOf(t, w.paths.Trusted)
		if err := spoil(func(i int) string { return filepath.Join(broken, filepath.Base(segments[i])) }); err != nil {
			t.Fatal(err)
		}
		if code, out := verify(t, broken); code != 1 || !strings.Contains(out, "BROKEN at journal line ") {
			t.Errorf("%s: code %d\n%s", name, code, out)
		}
	}
	if got := w.ask("diff", "1"); !strings.Contains(got, "one.html") {
		t.Errorf("diff of the first checkpoint = %q", got)
	}
}

func removeAll(in func(int) string, n int) error {
	for i := range n {
		if err := os.Remove(in(i)); err != nil {
			return err
		}
	}
	return nil
}

// TestOldJournalIsFolded: a journal of the version before goes on, is folded, and a rollback finds its checkpoints.
func TestOldJournalIsFolded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo one > web/one.html`, seldom)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.fold = true
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "r1", Kind: protocol.RequestRollback,
			Rollback: &protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: 1}}}
	})
	w.seal(2)
	answered := func(r protocol.Report) bool { return r.Request != nil && r.Request.ID == "r1" && r.Request.OK }
	if reports := w.intake.Reports(); !slices.ContainsFunc(reports, answered) {
		t.Errorf("the rollback did not succeed: %+v", reports)
	}
	if segments, _ := filepath.Glob(filepath.Join(w.paths.Trusted, "journal-*.jsonl.gz")); len(segments) == 0 {
		t.Error("nothing was folded")
	}
	if code, out := verify(t, w.paths.Trusted); code != 0 {
		t.Errorf("verify: code %d\n%s", code, out)
	}
}
