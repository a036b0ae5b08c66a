// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

// noise cannot be compressed, and has no secret.
func noise(n int) []byte {
	text := make([]byte, n)
	_, _ = rand.Read(text)
	for i := range text {
		text[i] |= 0x80
	}
	return text
}

// hostile is a call of another Feature in the same project.
func hostile(n int, answer []byte) core.Interaction {
	i := call(fmt.Sprint("hostile-", n))
	i.FeatureUID, i.Feature, i.Raw = "hostile", "hostile", answer
	return i
}

// smallVolume is a directory on a volume of so many bytes.
func smallVolume(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestAFeatureThatFillsTheLedger: its own calls lose their answers, and then their rows, the oldest first. Those of another Feature go on and stay
// whole, and what was used counts for both. The volume is small, or a size is configured.
func TestAFeatureThatFillsTheLedger(t *testing.T) {
	const size, volume = 8 << 20, 16 << 20
	t.Run("a small volume", func(t *testing.T) {
		fills(t, newWorld(t, "sqlite://"+smallVolume(t, volume)+"/ledger.db"), 0, volume, volume/256)
	})
	each(t, func(t *testing.T, w *world) { fills(t, w, size, size, 2*size/core.RowBytes) })
}

// fills a ledger with a room twice: with answers, and then with so many calls that have none.
func fills(t *testing.T, w *world, configured int64, room, many int) {
	t.Helper()
	var log strings.Builder
	var lost []ledger.Dropped
	l, err := ledger.Open(t.Context(), ledger.Options{
		URL: w.url, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return began }, Size: configured,
		Dropped: func(d ledger.Dropped) { lost = append(lost, d) },
	})
	w.must(err)
	mine, others := 0, 0
	asks := func() {
		id := name("call", mine)
		w.must(l.Reserve(t.Context(), reservation(id, 10), nil))
		w.must(l.Settle(t.Context(), id, call(id)))
		mine++
	}
	kept := func(uid string, most int) (turns []core.Interaction) {
		for after := int64(0); len(turns) <= most; after = turns[len(turns)-1].Sequence {
			more, err := l.Turns(t.Context(), uid, after, 500)
			w.must(err)
			if len(more) == 0 {
				break
			}
			turns = append(turns, more...)
		}
		return turns
	}
	whole := func(when string) {
		t.Helper()
		turns := kept("uid", mine)
		if len(turns) != mine {
			t.Errorf("%s: %d of %d calls are there", when, len(turns), mine)
		}
		for _, turn := range turns {
			if i, err := l.Turn(t.Context(), "uid", turn.Sequence); err != nil || string(i.Raw) != "the answer to "+i.ID {
				t.Fatalf("%s: %v, %q", when, err, i.Raw)
			}
		}
		w.usage(l, core.Feature, "uid", calls(int64(mine)))
		w.usage(l, core.Feature, "hostile", calls(int64(others)))
		w.usage(l, core.Global, "", calls(int64(mine+others)))
	}
	answer := noise(room / 256)
	for range 2 * 256 {
		w.must(l.Settle(t.Context(), "", hostile(others, answer)))
		if others++; others%8 == 0 {
			asks()
		}
	}
	whole("after many answers")
	turns := kept("hostile", others)
	if len(turns) != others {
		t.Errorf("%d of %d calls are there", len(turns), others)
	}
	oldest, err := l.Turn(t.Context(), "hostile", 1)
	w.must(err)
	newest, err := l.Turn(t.Context(), "hostile", int64(others))
	w.must(err)
	if !strings.HasPrefix(string(oldest.Raw), "[dropped: ") || oldest.Tokens != (core.Tokens{Input: 9, Output: 2, Cached: 1}) || string(newest.Raw) != string(answer) {
		t.Errorf("the oldest: %.80q, %+v; the newest: %d bytes", oldest.Raw, oldest.Tokens, len(newest.Raw))
	}

	for round := range many / 1000 {
		var group sync.WaitGroup
		for n := range 50 {
			group.Go(func() {
				for part := range 20 {
					if err := l.Settle(t.Context(), "", hostile(others+20*n+part, nil)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if others += 1000; round%8 == 0 {
			asks()
		}
	}
	whole("after many calls")
	if _, err := l.Turn(t.Context(), "hostile", 1); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the oldest call is still there: %v", err)
	}
	if i, err := l.Turn(t.Context(), "hostile", int64(others)); err != nil || i.Sequence != int64(others) {
		t.Errorf("the newest call: %+v, %v", i, err)
	}
	w.must(l.Close())
	var answers, rows int
	for _, d := range lost {
		answers, rows = answers+d.Answers, rows+d.Calls
		if d.Owner != (ledger.Owner{FeatureUID: "hostile", Namespace: "shop", Feature: "hostile"}) {
			t.Errorf("%+v has lost something", d)
		}
	}
	if answers < 64 || rows < 1000 {
		t.Errorf("%d answers and %d calls were dropped", answers, rows)
	}
	if text := log.String(); !strings.Contains(text, "feature=shop/hostile answers=") || strings.Contains(text, "login") {
		t.Errorf("the log: %s", text)
	}
	w.wantAccount()
}

// TestReplicasMakeRoomTogether: they record, drop and expire at the same time, and none waits for one that waits for it. In the end the account is
// right, two large Features have as much as each other, and a small one has all of its own.
func TestReplicasMakeRoomTogether(t *testing.T) {
	const size, answer, asked, small = 8 << 20, 32 << 10, 300, 20
	each(t, func(t *testing.T, w *world) {
		open := func() *ledger.Ledger {
			l, err := ledger.Open(t.Context(), ledger.Options{URL: w.url, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return began }, Size: size})
			w.must(err)
			t.Cleanup(func() { w.must(l.Close()) })
			return l
		}
		replicas := []*ledger.Ledger{open()}
		if !strings.HasPrefix(w.url, "sqlite:") {
			replicas = append(replicas, open())
		}
		var working, expiring sync.WaitGroup
		settle := func(l *ledger.Ledger, uid string, n int, at time.Time) {
			i := call(name(uid, n))
			i.FeatureUID, i.Feature, i.Raw, i.At = uid, uid, noise(answer), at
			if err := l.Settle(t.Context(), "", i); err != nil {
				t.Error(err)
			}
		}
		for _, uid := range []string{"large", "larger"} {
			for r, l := range replicas {
				working.Go(func() {
					for n := range asked {
						at := began
						if n%10 == 0 {
							at = began.Add(-policy.LedgerRetention - time.Hour)
						}
						settle(l, uid, asked*r+n, at)
					}
				})
			}
		}
		working.Go(func() {
			for n := range small {
				settle(replicas[0], "small", n, began)
			}
		})
		done := make(chan struct{})
		for _, l := range replicas {
			expiring.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					for _, uid := range []string{"large", "larger"} {
						if _, err := l.Expire(t.Context(), uid, 100); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		working.Wait()
		close(done)
		expiring.Wait()
		stored := w.wantAccount()
		for n := range small {
			if i, err := replicas[0].Turn(t.Context(), "small", int64(n+1)); err != nil || len(i.Raw) != answer {
				t.Errorf("the small Feature has %d bytes of an answer, %v", len(i.Raw), err)
			}
		}
		if a, b := stored["large"], stored["larger"]; a < b/2 || b < a/2 || a+b < size/2 || a+b > size {
			t.Errorf("the large Features have %d and %d bytes", a, b)
		}
		for _, uid := range []string{"large", "larger"} {
			w.usage(replicas[0], core.Feature, uid, calls(int64(asked*len(replicas))))
		}
	})
}

// wantAccount: what is noted for a Feature is what its rows take. It gives that.
func (w *world) wantAccount() map[string]int64 {
	w.Helper()
	all := map[string]int64{}
	driver, source := "pgx", w.url
	if u, err := url.Parse(w.url); err == nil && u.Scheme == "sqlite" {
		driver, source = u.Scheme, (&url.URL{Scheme: "file", Path: u.Path, OmitHost: true}).String()
	}
	db, err := sql.Open(driver, source)
	w.must(err)
	defer db.Close()
	rows, err := db.QueryContext(w.Context(), `SELECT key, stored, COALESCE((SELECT SUM(1536 + OCTET_LENGTH(raw) + OCTET_LENGTH(formatted) + OCTET_LENGTH(results) + OCTET_LENGTH(violations))
FROM interactions WHERE feature_uid = key), 0) FROM totals WHERE scope = 'Feature'`)
	w.must(err)
	defer rows.Close()
	for rows.Next() {
		var uid string
		var noted, taken int64
		w.must(rows.Scan(&uid, &noted, &taken))
		if all[uid] = noted; noted != taken {
			w.Errorf("%s: %d bytes are noted and %d are taken", uid, noted, taken)
		}
	}
	w.must(rows.Err())
	return all
}
