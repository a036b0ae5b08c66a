// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

// secret looks like a token of GitHub, and is none.
const secret = "ghp_" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO"

// withResults is a call whose request had these results.
func withResults(id string, results ...core.ToolResult) core.Interaction {
	i := call(id)
	i.Results = results
	return i
}

// settled is the call as it comes back.
func (w *world) settled(l *ledger.Ledger, i core.Interaction) core.Interaction {
	w.Helper()
	w.must(l.Settle(w.Context(), "", i))
	turns, err := l.Turns(w.Context(), i.FeatureUID, 0, 500)
	w.must(err)
	got, err := l.Turn(w.Context(), i.FeatureUID, turns[len(turns)-1].Sequence)
	w.must(err)
	return got
}

// TestResultsHaveNoSecrets: as answers have none, in what they say, in the names of tools and in the IDs of calls; also where the bound of a text would
// cut one in two.
func TestResultsHaveNoSecrets(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		before := strings.Repeat("a line of a file\n", core.MaxResult/17)
		got := w.settled(w.open(), withResults("one",
			core.ToolResult{Call: "id " + secret, Tool: "tool " + secret, Text: "key: " + secret + "\n"},
			core.ToolResult{Text: before[:core.MaxResult-20] + " " + secret + " and more"},
			core.ToolResult{Call: before[:490] + " " + secret, Tool: before[:490] + " " + secret},
		))
		if len(got.Results) != 3 {
			t.Fatalf("%+v", got.Results)
		}
		const mark = "[redacted: github-pat]"
		if diff := cmp.Diff(core.ToolResult{Call: "id " + mark, Tool: "tool " + mark, Text: "key: " + mark + "\n"}, got.Results[0]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if text := got.Results[1].Text; strings.Contains(text, secret[:10]) || len(text) > core.MaxResult || !strings.HasPrefix(text, before[:1000]) {
			t.Errorf("%d bytes that end with %q", len(text), text[max(0, len(text)-100):])
		}
		if r := got.Results[2]; strings.Contains(r.Call+r.Tool, secret[:10]) || len(r.Call) < 480 || len(r.Tool) < 480 {
			t.Errorf("names that are cut: %+v", r)
		}
	})
}

// TestResultsAreBounded: in number, in the text of each and of all, whatever is given. What a program prints is not taken for something that cannot be
// searched.
func TestResultsAreBounded(t *testing.T) {
	code, err := os.ReadFile("ledger_test.go")
	if err != nil {
		t.Fatal(err)
	}
	large := string(code)
	for len(large) < core.MaxResult+core.MaxSecret {
		large += large
	}
	each(t, func(t *testing.T, w *world) {
		var many []core.ToolResult
		for n := range core.MaxResults + 10 {
			many = append(many, core.ToolResult{Call: strings.Repeat("c", 2000), Tool: "a\nname\x1b[2J" + strings.Repeat("ü", 2000), SHA256: strings.Repeat("f", 100), Bytes: int64(n), Text: large})
		}
		i := withResults("many", many...)
		i.MoreResults = 7
		got := w.settled(w.open(), i)
		texts := 0
		for n, r := range got.Results {
			texts += len(r.Text)
			if len(r.Call) > 512 || len(r.Tool) > 512 || len(r.SHA256) > 64 || len(r.Text) > core.MaxResult || strings.ContainsAny(r.Tool, "\n\x1b") || r.Bytes != int64(n) {
				t.Errorf("%d: ID %d, name %.20q of %d bytes, digest %d, text %d", n, len(r.Call), r.Tool, len(r.Tool), len(r.SHA256), len(r.Text))
			}
			if r.Text != "" && !strings.HasPrefix(r.Text, large[:100]) {
				t.Errorf("%d: %.80q", n, r.Text)
			}
		}
		if len(got.Results) != core.MaxResults || got.MoreResults != 17 || texts > core.MaxResultTexts || texts < core.MaxResultTexts-100 {
			t.Errorf("%d results with %d bytes, and %d more", len(got.Results), texts, got.MoreResults)
		}
		w.wantAccount()
	})
}

// TestResultsOfFoldedCalls: a record that stands for many calls has those of none.
func TestResultsOfFoldedCalls(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		i := withResults("refused", core.ToolResult{Call: "a", SHA256: "b", Text: "c"})
		i.Tokens, i.Cost, i.Status, i.MoreResults = core.Tokens{}, 0, 529, 3
		for range 2 {
			if got := w.settled(l, i); len(got.Results) != 0 || got.MoreResults != 0 {
				t.Errorf("%+v", got)
			}
		}
		i.FeatureUID, i.Status = "another", 200 // one that counts tokens
		l.Fold(t.Context(), i)
		turns, err := l.Turns(t.Context(), "another", 0, 10)
		w.must(err)
		if got, err := l.Turn(t.Context(), "another", turns[0].Sequence); err != nil || len(got.Results) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		w.wantAccount()
	})
}

// TestResultsGoWithTheCall: when it has been kept for long enough, and what the ledger has of the Feature is right then.
func TestResultsGoWithTheCall(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		if got := w.settled(l, withResults("one", core.ToolResult{Call: "a", Text: string(noise(4000))})); len(got.Results) != 1 {
			t.Errorf("%+v", got)
		}
		if stored := w.wantAccount()["uid"]; stored < core.RowBytes+1000 {
			t.Errorf("%d bytes are noted", stored)
		}
		w.now.Store(began.Add(policy.LedgerRetention + time.Hour).UnixNano())
		if n, err := l.Expire(t.Context(), "uid", 10); err != nil || n != 1 {
			t.Errorf("%d removed, %v", n, err)
		}
		if stored := w.wantAccount()["uid"]; stored != 0 {
			t.Errorf("%d bytes are noted", stored)
		}
	})
}

// TestResultsMakeRoom: where the ledger is nearly full, the oldest go with their answers, and the record of the call stays.
func TestResultsMakeRoom(t *testing.T) {
	const size, asked = 8 << 20, 300
	each(t, func(t *testing.T, w *world) {
		l, err := ledger.Open(t.Context(), ledger.Options{URL: w.url, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return began }, Size: size})
		w.must(err)
		for n := range asked {
			w.must(l.Settle(t.Context(), "", withResults(fmt.Sprint("call-", n), core.ToolResult{Call: "a", Text: string(noise(16 << 10))}, core.ToolResult{Text: string(noise(16 << 10))}, core.ToolResult{Text: string(noise(16 << 10))})))
		}
		oldest, err := l.Turn(t.Context(), "uid", 1)
		w.must(err)
		newest, err := l.Turn(t.Context(), "uid", asked)
		w.must(err)
		if !strings.HasPrefix(string(oldest.Raw), "[dropped: ") || len(oldest.Results) != 0 || oldest.ID != "call-0" || string(newest.Raw) != "the answer to call-299" || len(newest.Results) != 3 {
			t.Errorf("the oldest has %d results and %q, the newest %d and %q", len(oldest.Results), oldest.Raw, len(newest.Results), newest.Raw)
		}
		w.must(l.Close())
		w.wantAccount()
	})
}

// TestResultsOfTheVersionBefore: calls that were recorded without results have none, and are removed as others are.
func TestResultsOfTheVersionBefore(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		w.must(l.Settle(t.Context(), "", call("one")))
		w.must(l.Close())
		db := w.other()
		for _, statement := range []string{"ALTER TABLE interactions DROP COLUMN results", "DROP TABLE history", "DELETE FROM goose_db_version WHERE version_id >= 9"} {
			_, err := db.ExecContext(t.Context(), statement)
			w.must(err)
		}
		w.must(db.Close())
		l = w.open()
		got, err := l.Turn(t.Context(), "uid", 1)
		if err != nil || got.Results != nil || string(got.Raw) != "the answer to one" {
			t.Errorf("%+v, %v", got, err)
		}
		w.wantAccount()
		if got := w.settled(l, withResults("two", core.ToolResult{Call: "a"})); len(got.Results) != 1 {
			t.Errorf("%+v", got)
		}
		w.wantAccount()
	})
}
