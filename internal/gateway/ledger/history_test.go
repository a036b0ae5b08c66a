// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

// happened is an entry about a gate, of the task form if its number is even.
func happened(sequence int64) protocol.HistoryEntry {
	e := protocol.HistoryEntry{
		Sequence: sequence, Time: began.Add(time.Duration(sequence-100) * time.Second), Attempt: 2, Kind: protocol.HistoryGate, Event: "Failed", Cause: protocol.CauseGate, Name: "unit",
		Tree: "t1", Duration: 1500, ExitCode: 2, Message: "exited with code 2", Text: "--- FAIL: TestForm\n", Missing: "the rest",
	}
	if sequence%2 == 0 {
		e.Task = "form"
	}
	return e
}

func (w *world) happen(l *ledger.Ledger, o ledger.Owner, e protocol.HistoryEntry) (missing string) {
	w.Helper()
	fresh, missing, err := l.History().Record(w.Context(), o, e)
	if err != nil || !fresh {
		w.Fatalf("entry %d: fresh %t, %v", e.Sequence, fresh, err)
	}
	return missing
}

// TestHistory: every field comes back as it was given, once; of one task, or of all.
func TestHistory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		for n := range int64(5) {
			w.happen(replicas[n%2], login, happened(n+1))
		}
		w.happen(replicas[0], ledger.Owner{FeatureUID: "other", Namespace: "shop", Feature: "other"}, happened(9))
		again := happened(2)
		again.Message = "something else"
		if fresh, _, err := replicas[1].History().Record(t.Context(), login, again); fresh || err != nil {
			t.Errorf("recorded again: %v", err)
		}
		for task, numbers := range map[string][]int64{"": {1, 2, 3, 4, 5}, "form": {2, 4}, "nothing": nil} {
			var want []protocol.HistoryEntry
			for _, n := range numbers {
				e := happened(n)
				e.Text = ""
				want = append(want, e)
			}
			for _, limit := range []int{1, 2, 100} {
				var got []protocol.HistoryEntry
				for after := int64(0); ; after = got[len(got)-1].Sequence {
					page, err := replicas[1].History().List(t.Context(), "uid", task, after, limit)
					w.must(err)
					if len(page) > limit {
						t.Fatalf("%d of at most %d", len(page), limit)
					}
					if got = append(got, page...); len(page) == 0 {
						break
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("task %q, %d at a time (-want +got):\n%s", task, limit, diff)
				}
			}
		}
		got, err := replicas[0].History().Entry(t.Context(), "uid", 3)
		if diff := cmp.Diff(happened(3), got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for _, asked := range []struct {
			uid   string
			entry int64
		}{{"uid", 6}, {"uid", 0}, {"nobody", 1}} {
			if _, err := replicas[0].History().Entry(t.Context(), asked.uid, asked.entry); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%v: %v", asked, err)
			}
		}
		for _, o := range []ledger.Owner{{}, login} {
			if _, _, err := replicas[0].History().Record(t.Context(), o, protocol.HistoryEntry{}); err == nil || !strings.Contains(err.Error(), "give the UID") {
				t.Errorf("%v: %v", o, err)
			}
		}
	})
}

// TestHostileHistory: whatever is given is bounded and text that both engines store.
func TestHostileHistory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		hostile := strings.Repeat("\x00\xffü", 1<<18)
		w.happen(l, login, protocol.HistoryEntry{
			Sequence: 1<<63 - 1, Time: began.AddDate(100, 0, 0), Attempt: -1 << 63, Kind: hostile, Event: hostile, Cause: hostile, Task: hostile, Name: hostile, Tree: hostile, Duration: -1 << 63,
			ExitCode: -1 << 63, Message: hostile, Text: hostile, Missing: hostile,
		})
		got, err := l.History().Entry(t.Context(), "uid", 1<<63-1)
		w.must(err)
		if !got.Time.Equal(began) {
			t.Errorf("kept from %s", got.Time)
		}
		for what, field := range map[string]struct {
			text string
			most int
		}{
			"kind": {got.Kind, 64}, "event": {got.Event, 64}, "cause": {got.Cause, 64}, "task": {got.Task, 512}, "name": {got.Name, 512}, "tree": {got.Tree, 64},
			"message": {got.Message, protocol.MaxHistoryMessage}, "missing": {got.Missing, 1024}, "text": {got.Text, protocol.MaxHistoryText},
		} {
			if field.text == "" || len(field.text) > field.most || !utf8.ValidString(field.text) || strings.Contains(field.text, "\x00") {
				t.Errorf("%s: %d bytes of at most %d", what, len(field.text), field.most)
			}
		}
	})
}

// TestRoomOfHistory: texts have the room of diffs; where there is none, the entry is recorded without its text. When it has passed, there is room
// again, and a Feature of which nothing else is left is forgotten.
func TestRoomOfHistory(t *testing.T) {
	noise := make([]byte, protocol.MaxHistoryText/2)
	_, _ = rand.Read(noise)
	text := hex.EncodeToString(noise)
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		var whole, last int64
		for last = 1; last <= core.MaxPatches/int64(len(noise))+10; last++ {
			e := happened(last)
			e.Text, e.Time = text, began
			missing := w.happen(l, login, e)
			if missing == "" {
				whole++
				continue
			}
			got, err := l.History().Entry(t.Context(), "uid", last)
			w.must(err)
			if got.Text != "" || got.Missing != missing || got.Message != e.Message {
				t.Fatalf("entry %d: %d bytes, %q, %q", last, len(got.Text), got.Missing, missing)
			}
		}
		if most := int64(core.MaxPatches / len(noise)); whole < most*2/5 || whole > most { // digits in hexadecimal take a little more than half
			t.Errorf("%d of at most %d", whole, most)
		}
		w.now.Store(began.Add(2 * time.Hour).UnixNano())
		if n, err := l.Expire(t.Context(), "uid", 100); err != nil || n != 100 {
			t.Fatalf("%d, %v", n, err)
		}
		e := happened(last)
		e.Text, e.Time = text, began.Add(2*time.Hour)
		if missing := w.happen(l, login, e); missing != "" {
			t.Errorf("after records have passed: %s", missing)
		}
		w.now.Store(began.Add(4 * time.Hour).UnixNano())
		for n := 1; n > 0; {
			var err error
			n, err = l.Expire(t.Context(), "uid", 1000)
			w.must(err)
		}
		if owners, err := l.Owners(t.Context(), ""); err != nil || len(owners) > 0 {
			t.Errorf("%+v, %v", owners, err)
		}
	})
}

// TestHistoryIsFull: a Feature has so many entries and no more, and keeps the oldest.
func TestHistoryIsFull(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		w.happen(l, login, happened(1))
		db := w.other()
		_, err := db.ExecContext(t.Context(), `INSERT INTO history (feature_uid, sequence, at, attempt, kind, event, cause, task, name, tree, duration, exit_code, message, missing, bytes, text)
WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT 'uid', i, 0, 1, '', '', '', '', '', '', 0, 0, '', '', 0, '' FROM n`)
		w.must(err)
		if fresh, _, err := l.History().Record(t.Context(), login, happened(20_001)); fresh || !errors.Is(err, ledger.ErrHistoryFull) {
			t.Errorf("%t, %v", fresh, err)
		}
		if fresh, _, err := l.History().Record(t.Context(), login, happened(1)); fresh || err != nil {
			t.Errorf("one that is there: %t, %v", fresh, err)
		}
		if _, err := l.History().Entry(t.Context(), "uid", 1); err != nil {
			t.Error(err)
		}
		w.happen(l, ledger.Owner{FeatureUID: "other", Namespace: "shop", Feature: "other"}, happened(1))
	})
}

// TestTheNewestEntry of a kind and a name, with its text.
func TestTheNewestEntry(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.replicas()[0]
		for n, name := range []string{"Design", "CodeStyle", "Design", "CodeStyle"} {
			e := happened(int64(n + 1))
			e.Kind, e.Name = protocol.HistoryReviewQuestion, name
			w.happen(l, login, e)
		}
		review := happened(9)
		review.Kind, review.Name = protocol.HistoryReview, "Design"
		w.happen(l, login, review)
		got, err := l.History().Newest(t.Context(), "uid", protocol.HistoryReviewQuestion, "Design")
		w.must(err)
		if got.Sequence != 3 || got.Text != happened(3).Text || got.Name != "Design" {
			t.Errorf("the newest one is %+v", got)
		}
		for _, other := range [][2]string{{"uid", "Assessor"}, {"other", "Design"}} {
			if _, err := l.History().Newest(t.Context(), other[0], protocol.HistoryReviewQuestion, other[1]); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%v: %v", other, err)
			}
		}
	})
}
