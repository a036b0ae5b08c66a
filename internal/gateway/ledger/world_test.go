// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// began is when all tests begin.
var began = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)

// world is one database, empty at first, and a clock.
type world struct {
	testing.TB

	url string
	now atomic.Int64
}

// each runs a test on both engines.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("SQLite", func(t *testing.T) { test(t, newWorld(t, sqliteURL(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newWorld(t, postgres.URL(t))) })
}

func newWorld(t testing.TB, url string) *world {
	w := &world{TB: t, url: url}
	w.now.Store(began.UnixNano())
	return w
}

func sqliteURL(t testing.TB) string {
	// A space and what has a meaning in URLs, so that it need not be in other tests.
	return "sqlite://" + filepath.Join(t.TempDir(), "the%20led%3Fger%25.db")
}

// open gives a ledger on the world's database; several are replicas.
func (w *world) open() *ledger.Ledger {
	w.Helper()
	l, err := ledger.Open(w.Context(), ledger.Options{URL: w.url, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(0, w.now.Load()) }})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := l.Close(); err != nil {
			w.Error(err)
		}
	})
	return l
}

// other is a connection to the world's database that is no ledger.
func (w *world) other() *sql.DB {
	w.Helper()
	driver, database := "pgx", w.url
	if u, err := url.Parse(w.url); err == nil && u.Scheme == "sqlite" {
		driver, database = u.Scheme, (&url.URL{Scheme: "file", Path: u.Path, OmitHost: true}).String()
	}
	db, err := sql.Open(driver, database)
	w.must(err)
	w.Cleanup(func() { _ = db.Close() })
	return db
}

// replicas are two ledgers on the world's database, or one twice where one process alone can have it.
func (w *world) replicas() []*ledger.Ledger {
	w.Helper()
	first := w.open()
	if strings.HasPrefix(w.url, "sqlite:") {
		return []*ledger.Ledger{first, first}
	}
	return []*ledger.Ledger{first, w.open()}
}

// must fails the test for an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// usage must be as wanted.
func (w *world) usage(l *ledger.Ledger, scope core.Scope, key string, want core.Usage) {
	w.Helper()
	got, err := l.Usage(w.Context(), scope, key)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		w.Errorf("usage of %s %q: %v (-want +got):\n%s", scope, key, err, diff)
	}
}

// call of the Feature login that used ten input tokens.
func call(id string) core.Interaction {
	return core.Interaction{
		ID: id, At: began, FeatureUID: "uid", Namespace: "shop", Feature: "login", Attempt: 1, Task: "form", Model: "large",
		Raw: []byte("the answer to " + id), Tokens: core.Tokens{Input: 9, Output: 2, Cached: 1}, Cost: 100, Status: 200,
	}
}

func reservation(id string, tokens int64) core.Reservation {
	return core.Reservation{ID: id, FeatureUID: "uid", Namespace: "shop", Wanted: core.Amount{Input: tokens, Cost: 10 * tokens}, Until: began.Add(time.Minute)}
}

// calls is the usage of so many of them.
func calls(n int64) core.Usage {
	return core.Usage{Amount: core.Amount{Input: 10 * n, Output: 2 * n, Cost: 100 * n}, Cached: n, Calls: n}
}

// name of one of many.
func name(parts ...any) string { return strings.ReplaceAll(fmt.Sprint(parts...), " ", "-") }
