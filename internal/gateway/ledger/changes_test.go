// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

var login = ledger.Owner{FeatureUID: "uid", Namespace: "shop", Feature: "login", Keep: time.Hour}

// changed is a checkpoint with two files, one of which is not listed.
func changed(checkpoint int64) protocol.Changes {
	return protocol.Changes{
		Checkpoint: checkpoint, Previous: checkpoint - 1, At: began.Add(time.Duration(checkpoint-100) * time.Second), Task: "form", Verdict: "Valid", Action: "Promoted",
		Files: 2, Listed: []protocol.FileChange{{Type: protocol.ChangeAdd, Path: "web/ü.html", Size: 3, Mode: 0o100644}}, Patch: "+a\n", Missing: "the rest",
	}
}

// record changes, which have to be new.
func (w *world) record(l *ledger.Ledger, o ledger.Owner, c protocol.Changes) (missing string) {
	w.Helper()
	fresh, missing, err := l.Checkpoints().Record(w.Context(), o, c)
	if err != nil || !fresh {
		w.Fatalf("checkpoint %d: fresh %t, %v", c.Checkpoint, fresh, err)
	}
	return missing
}

// TestChanges: every field comes back as it was given, and the newest is found without its number.
func TestChanges(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		for n := range int64(3) {
			w.record(l, login, changed(n+1))
		}
		w.record(l, ledger.Owner{FeatureUID: "other", Namespace: "shop", Feature: "other"}, changed(9))
		for asked, want := range map[int64]int64{2: 2, 0: 3} {
			got, err := l.Checkpoints().Changes(t.Context(), "uid", asked)
			if diff := cmp.Diff(changed(want), got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
		for _, asked := range []struct {
			uid        string
			checkpoint int64
		}{{"uid", 4}, {"uid", -1}, {"nobody", 0}} {
			if _, err := l.Checkpoints().Changes(t.Context(), asked.uid, asked.checkpoint); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%v: %v", asked, err)
			}
		}
		for _, o := range []ledger.Owner{{}, login} {
			if _, _, err := l.Checkpoints().Record(t.Context(), o, protocol.Changes{}); err == nil || !strings.Contains(err.Error(), "give the UID") {
				t.Errorf("%v: %v", o, err)
			}
		}
	})
}

// TestChangesOnce: the changes of a checkpoint are recorded once, however often and wherever they are given, and count once.
func TestChangesOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		var group sync.WaitGroup
		fresh := make(chan bool, 16)
		for n := range 16 {
			group.Go(func() {
				is, _, err := replicas[n%2].Checkpoints().Record(w.Context(), login, changed(1))
				if err != nil {
					t.Error(err)
				}
				fresh <- is
			})
		}
		group.Wait()
		close(fresh)
		news := 0
		for is := range fresh {
			if is {
				news++
			}
		}
		if news != 1 {
			t.Errorf("recorded %d times", news)
		}
		other := changed(1)
		other.Patch = "-another\n"
		if again, _, err := replicas[0].Checkpoints().Record(t.Context(), login, other); again || err != nil {
			t.Errorf("recorded again: %v", err)
		}
		if got, err := replicas[1].Checkpoints().Changes(t.Context(), "uid", 1); err != nil || got.Patch != "+a\n" {
			t.Errorf("%q, %v", got.Patch, err)
		}
		events, err := replicas[1].Checkpoints().Events(t.Context(), "uid", 0, 10)
		if err != nil || len(events) != 2 {
			t.Errorf("%d events, %v", len(events), err)
		}
	})
}

// TestEvents: a list goes on where it ended, and tells how many files were not listed.
func TestEvents(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		var want []protocol.FileEvent
		for n := range int64(40) {
			c := changed(n + 1)
			switch n % 4 {
			case 1: // nothing at all, as where a rollback changed nothing
				c.Listed, c.Files = nil, 0
			case 2: // all are listed
				c.Files = 1
			case 3: // none is
				c.Listed = nil
			}
			w.record(l, login, c)
			for i, f := range c.Listed {
				want = append(want, protocol.FileEvent{Sequence: (n+1)*1_000_000 + int64(i) + 1, CaptureTime: c.At, Checkpoint: n + 1, Type: f.Type, Path: f.Path, Size: f.Size, Mode: f.Mode})
			}
			if more := c.Files - int64(len(c.Listed)); more > 0 {
				want = append(want, protocol.FileEvent{Sequence: (n+1)*1_000_000 + int64(len(c.Listed)) + 1, CaptureTime: c.At, Checkpoint: n + 1, Type: protocol.ChangeOmitted, Count: more})
			}
		}
		for _, limit := range []int{1, 3, 7, 1000} {
			var got []protocol.FileEvent
			for after := int64(0); ; after = got[len(got)-1].Sequence {
				page, err := l.Checkpoints().Events(t.Context(), "uid", after, limit)
				w.must(err)
				if len(page) > limit {
					t.Fatalf("%d of at most %d events", len(page), limit)
				}
				if got = append(got, page...); len(page) == 0 {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d at a time (-want +got):\n%s", limit, diff)
			}
		}
	})
}

// TestHostileChanges: whatever is given is bounded and text that both engines store.
func TestHostileChanges(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		c := protocol.Changes{Checkpoint: 1, Task: "\x00\xff", Verdict: strings.Repeat("v", 9999), Action: "\x00", Missing: strings.Repeat("ü", 9999), Patch: strings.Repeat("\x00\xff", 2<<20), At: began.AddDate(100, 0, 0)}
		for range 100_000 {
			c.Listed = append(c.Listed, protocol.FileChange{Type: strings.Repeat("t", 999), Path: "\x00\n\xff\x1b[2J" + strings.Repeat("p", 90)})
		}
		w.record(l, login, c)
		got, err := l.Checkpoints().Changes(t.Context(), "uid", 1)
		w.must(err)
		names := 0
		for _, f := range got.Listed {
			names += len(f.Path)
		}
		if len(got.Patch) > protocol.MaxPatch || !utf8.ValidString(got.Patch) || len(got.Listed) > protocol.MaxListed || names > protocol.MaxNames || len(got.Verdict) > 64 ||
			len(got.Missing) > 1024 || !got.At.Equal(began) || got.Files < int64(len(got.Listed)) {
			t.Errorf("stored: %d bytes of a patch, %d files with %d bytes, %d, %d, %s", len(got.Patch), len(got.Listed), names, len(got.Verdict), len(got.Missing), got.At)
		}
	})
}

// TestRoomOfAFeature: what compresses badly ends the patches, then the names; what was there before stays.
func TestRoomOfAFeature(t *testing.T) {
	noise := make([]byte, protocol.MaxPatch/2)
	_, _ = rand.Read(noise)
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		var patches int64
		for n := range int64(60) {
			c := changed(n + 1)
			c.Patch = hex.EncodeToString(noise)
			missing := w.record(l, login, c)
			got, err := l.Checkpoints().Changes(t.Context(), "uid", n+1)
			w.must(err)
			switch {
			case got.Patch == c.Patch && missing == "" && got.Missing == c.Missing:
				patches++
			case got.Patch != "" || missing == "" || got.Missing != missing || len(got.Listed) != 1:
				t.Fatalf("checkpoint %d: %d bytes of the patch, %q, %q", n+1, len(got.Patch), got.Missing, missing)
			}
		}
		if most := int64(core.MaxPatches / len(noise)); patches < most*2/5 || patches > most { // digits in hexadecimal take a little more than half
			t.Errorf("%d patches of at most %d", patches, most)
		}
		if got, err := l.Checkpoints().Changes(t.Context(), "uid", 1); err != nil || got.Patch == "" {
			t.Errorf("the first patch is gone: %v", err)
		}
		// Another Feature has room of its own; when the first ones have passed, there is room again.
		if missing := w.record(l, ledger.Owner{FeatureUID: "other", Namespace: "shop", Feature: "other"}, changed(1)); missing != "" {
			t.Errorf("another Feature: %s", missing)
		}
		w.now.Store(began.Add(2 * time.Hour).UnixNano())
		if n, err := l.Expire(t.Context(), "uid", 1000); err != nil || n == 0 {
			t.Fatalf("%d, %v", n, err)
		}
		c := changed(61)
		c.Patch = hex.EncodeToString(noise)
		if missing := w.record(l, login, c); missing != "" {
			t.Errorf("after records have passed: %s", missing)
		}
	})
}

// TestRetentionOfEach: the records of each Feature are kept as long as its policy says, calls and changes alike, and a Feature of
// which nothing is left is forgotten.
func TestRetentionOfEach(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		for uid, keep := range map[string]time.Duration{"short": time.Hour, "long": 1000 * time.Hour, "usual": 0} {
			o := ledger.Owner{FeatureUID: uid, Namespace: "shop", Feature: uid, Keep: keep}
			w.record(l, o, changed(1))
			i := call(uid)
			i.FeatureUID, i.Feature, i.Keep = uid, uid, keep
			w.must(l.Settle(t.Context(), "", i))
		}
		left := func(at time.Time) (have []string) {
			t.Helper()
			w.now.Store(at.UnixNano())
			owners, err := l.Owners(t.Context(), "")
			w.must(err)
			for _, o := range owners {
				for n := 1; n > 0; {
					n, err = l.Expire(t.Context(), o.FeatureUID, 1)
					w.must(err)
				}
			}
			owners, err = l.Owners(t.Context(), "")
			w.must(err)
			for _, o := range owners {
				turns, err := l.Turns(t.Context(), o.FeatureUID, 0, 10)
				w.must(err)
				if _, err := l.Checkpoints().Changes(t.Context(), o.FeatureUID, 1); err != nil || len(turns) != 1 {
					t.Errorf("%s: %d turns, %v", o.FeatureUID, len(turns), err)
				}
				have = append(have, o.FeatureUID)
			}
			return have
		}
		steps := []struct {
			after time.Duration
			want  []string
		}{
			{50 * time.Minute, []string{"long", "short", "usual"}},
			{2 * time.Hour, []string{"long", "usual"}},
			{policy.LedgerRetention + time.Hour, []string{"long"}},
		}
		for _, step := range steps {
			if diff := cmp.Diff(step.want, left(began.Add(step.after))); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", step.after, diff)
			}
		}
		// A policy that changes counts for what is there.
		w.must(l.Keep(t.Context(), "long", time.Minute))
		if diff := cmp.Diff([]string(nil), left(began.Add(policy.LedgerRetention+time.Hour))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
