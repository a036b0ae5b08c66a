// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// TestRoundTrip: every field comes back as it was given, on both engines.
func TestRoundTrip(t *testing.T) {
	full := core.Interaction{
		ID: "call-1", At: began.Add(123456789), FeatureUID: "uid", Namespace: "shop", Feature: "login", Attempt: 3, Task: "form ü", Turn: 1, Sequence: 1,
		Dialect: "anthropic", Backend: "main", ModelAsked: "whatever", Model: "large", Role: "primary",
		RequestDigest: strings.Repeat("ab", 32), RequestBytes: 40_000, TemplateHash: strings.Repeat("cd", 32), AnswerBytes: 1 << 33,
		Raw: []byte("raw \x00\xff answer"), Formatted: []byte("formatted answer"),
		Results: []core.ToolResult{
			{Call: "toolu_1", Tool: "Bash", Bytes: 1 << 34, SHA256: strings.Repeat("ef", 32), Failed: true, Text: "a line\nand \x00 another"}, {SHA256: strings.Repeat("01", 32)},
		}, MoreResults: 5,
		Violations: []core.Violation{{Type: "language", Severity: "minor", Message: "write \"plain\" English"}, {Type: "length", Severity: "major", Message: "ä"}},
		Retries:    2, Tokens: core.Tokens{Input: 1 << 34, Output: 2, Cached: 3, Writes: 4, LongWrites: 5, Uses: core.Uses{Searches: 6, Fetches: 7, Executions: 8, FileSearches: 9, Images: 10, Connectors: 11}}, Estimated: true, OutputLimit: 7, Cost: 1 << 40, Status: 200, Reason: "Answered",
		FirstByte: 12345 * time.Microsecond, Duration: time.Hour + 1, Keep: time.Hour, Count: 1, Detail: "took out web_search",
	}
	for i, v := 0, reflect.ValueOf(full); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("the test has no value for %s", v.Type().Field(i).Name)
		}
	}
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		given := full
		given.Sequence, given.Count = 88, 99 // the store gives them
		w.must(l.Settle(t.Context(), "", given))
		full := full
		full.Keep = 0 // not a part of the record
		got, err := l.Turn(t.Context(), "uid", 1)
		if diff := cmp.Diff(full, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		listed := full
		listed.Raw, listed.Formatted, listed.Results, listed.MoreResults = nil, nil, nil, 0
		turns, err := l.Turns(t.Context(), "uid", 0, 10)
		if diff := cmp.Diff([]core.Interaction{listed}, turns); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		// What is empty stays so, and a time that is missing is now.
		w.must(l.Settle(t.Context(), "", core.Interaction{ID: "empty", FeatureUID: "uid"}))
		got, err = l.Turn(t.Context(), "uid", 2)
		if diff := cmp.Diff(core.Interaction{ID: "empty", FeatureUID: "uid", At: began, Sequence: 2, Count: 1}, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for _, id := range []string{"", strings.Repeat("x", 129)} {
			if err := l.Settle(t.Context(), "", core.Interaction{ID: id, FeatureUID: "uid"}); err == nil || !strings.Contains(err.Error(), "give it an ID") {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// TestTurns: turns and sequences have no gaps when several replicas record at the same time, and a list goes on where it ended.
func TestTurns(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const tasks, calls = 4, 12
		replicas := w.replicas()
		var group sync.WaitGroup
		for task := range tasks {
			for n := range calls {
				group.Go(func() {
					i := call(name("call", task, n))
					i.Task = name("task", task)
					if err := replicas[n%2].Settle(w.Context(), "", i); err != nil {
						t.Error(err)
					}
				})
			}
		}
		group.Wait()
		w.must(replicas[0].Settle(t.Context(), "", core.Interaction{ID: "other", FeatureUID: "another", Task: "task-0"}))
		var seen []core.Interaction
		for after := int64(0); ; after = seen[len(seen)-1].Sequence {
			turns, err := replicas[1].Turns(t.Context(), "uid", after, 7)
			w.must(err)
			if len(turns) > 7 {
				t.Fatalf("%d turns", len(turns))
			}
			if seen = append(seen, turns...); len(turns) == 0 {
				break
			}
		}
		if len(seen) != tasks*calls {
			t.Fatalf("%d turns", len(seen))
		}
		for n, i := range seen {
			if i.Sequence != int64(n)+1 {
				t.Errorf("%s: sequence %d, want %d", i.Task, i.Sequence, n+1)
			}
		}
		if _, err := replicas[0].Turn(t.Context(), "uid", 1_000_000); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("a turn that is not there: %v", err)
		}
	})
}

// TestSettleOnce: a call is recorded once, however often and wherever it is given, and what was reserved is free.
func TestSettleOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		w.must(replicas[0].Reserve(t.Context(), reservation("one", 50), nil))
		var group sync.WaitGroup
		for n := range 16 {
			group.Go(func() {
				if err := replicas[n%2].Settle(w.Context(), "one", call("one")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for scope, key := range map[core.Scope]string{core.Feature: "uid", core.Project: "shop", core.Global: ""} {
			w.usage(replicas[1], scope, key, calls(1))
		}
		if turns, err := replicas[0].Turns(t.Context(), "uid", 0, 10); err != nil || len(turns) != 1 {
			t.Errorf("%d turns, %v", len(turns), err)
		}
		w.must(replicas[0].Reserve(t.Context(), reservation("two", 90), []core.Budget{{Scope: core.Global, Limit: core.Amount{Input: 100}}}))
		// A call that comes again takes no number.
		w.must(replicas[0].Settle(t.Context(), "two", call("two")))
		if i, err := replicas[0].Turn(t.Context(), "uid", 2); err != nil || i.ID != "two" || i.Sequence != 2 {
			t.Errorf("%+v, %v", i, err)
		}
	})
}

// TestReserve: each budget is held to, and what ends, is released or has passed is free again.
func TestReserve(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l, ctx := w.open(), t.Context()
		feature := []core.Budget{{Scope: core.Feature, Key: "uid", Limit: core.Amount{Input: 100}}}
		over := func(id string, tokens int64, budgets []core.Budget, used, reserved int64) {
			t.Helper()
			err := l.Reserve(ctx, reservation(id, tokens), budgets)
			if e, is := errors.AsType[*core.OverBudgetError](err); !is || e.Used != used || e.Reserved != reserved || errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%s: %v", id, err)
			}
		}
		w.must(l.Reserve(ctx, reservation("a", 60), feature))
		over("b", 41, feature, 0, 60)
		w.must(l.Reserve(ctx, reservation("a", 70), feature)) // again: in the place of what it has
		w.must(l.Reserve(ctx, reservation("b", 30), feature))
		over("c", 0, feature, 0, 100)
		w.must(l.Reserve(ctx, reservation("a", 0), feature))
		over("c", 71, feature, 0, 30)
		w.must(l.Settle(ctx, "b", call("b")))
		over("c", 91, feature, 10, 0)
		w.must(l.Reserve(ctx, reservation("c", 90), feature))
		// Another Feature of the project, and another project.
		other := core.Reservation{ID: "d", FeatureUID: "other", Namespace: "shop", Wanted: core.Amount{Input: 5, Cost: 5}, Until: began.Add(time.Minute)}
		w.must(l.Reserve(ctx, other, []core.Budget{{Scope: core.Feature, Key: "other", Limit: core.Amount{Input: 5}}, {Scope: core.Project, Key: "shop", Limit: core.Amount{Input: 105}}}))
		over("e", 1, []core.Budget{{Scope: core.Project, Key: "shop", Limit: core.Amount{Input: 105}}}, 10, 95)
		over("e", 1, []core.Budget{{Scope: core.Global, Limit: core.Amount{Cost: 1005}}}, 100, 905)
		w.must(l.Reserve(ctx, core.Reservation{ID: "f", FeatureUID: "far", Namespace: "away", Wanted: core.Amount{Input: 1000}, Until: began}, []core.Budget{{Scope: core.Project, Key: "away", Limit: core.Amount{Input: 1000}}}))
		// The last moment has passed.
		w.now.Add(int64(time.Minute))
		w.must(l.Reserve(ctx, core.Reservation{ID: "g", FeatureUID: "uid", Wanted: core.Amount{Input: 90}, Until: began.Add(time.Hour)}, feature))
		// Budgets of others.
		for _, b := range []core.Budget{{Scope: core.Feature, Key: "other"}, {Scope: core.Project}, {Scope: core.Global, Key: "x"}, {Scope: "Team"}} {
			if err := l.Reserve(ctx, reservation("h", 1), []core.Budget{b}); err == nil || !strings.Contains(err.Error(), "is not about the Feature uid") {
				t.Errorf("%+v: %v", b, err)
			}
		}
		if err := l.Reserve(ctx, core.Reservation{ID: "h"}, nil); err == nil || !strings.Contains(err.Error(), "UID") {
			t.Errorf("without a Feature: %v", err)
		}
	})
}

// TestBudgetHoldsAcrossReplicas: calls of two replicas that use what they have reserved fill a budget and never go over it;
// calls that use more go over it by what those in flight used more.
func TestBudgetHoldsAcrossReplicas(t *testing.T) {
	for what, more := range map[string]int64{"as much as reserved": 0, "more than reserved": 4} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				const workers, limit, tokens = 8, 300, 10
				replicas := w.replicas()
				budgets := []core.Budget{{Scope: core.Global, Limit: core.Amount{Input: 10 * limit}}, {Scope: core.Feature, Key: "uid", Limit: core.Amount{Input: limit}}}
				var group sync.WaitGroup
				for worker := range workers {
					group.Go(func() {
						l := replicas[worker%2]
						for n := 0; ; n++ {
							id := name("call", worker, n)
							err := l.Reserve(w.Context(), reservation(id, tokens), budgets)
							e, is := errors.AsType[*core.OverBudgetError](err)
							switch {
							case is && e.Reserved > 0: // another one may leave something
								continue
							case is:
								return
							case err != nil:
								t.Error(err)
								return
							}
							i := call(id)
							i.Tokens = core.Tokens{Input: tokens + more}
							if err := l.Settle(w.Context(), id, i); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				u, err := replicas[0].Usage(t.Context(), core.Feature, "uid")
				w.must(err)
				if most := limit + workers*more; u.Input > most || u.Input < limit-tokens+1 || u.Input != u.Calls*(tokens+more) {
					t.Errorf("%+v, want at most %d", u, most)
				}
			})
		})
	}
}

// TestTheSupervisorsShare: its calls count in the Feature and, once more, by themselves, for whatever month they end in. Refused ones do not.
func TestTheSupervisorsShare(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		for n, role := range []string{policy.RolePrimary, policy.RoleSupervisor, policy.RoleSummarizer, policy.RoleSupervisor} {
			i := call(role + strconv.Itoa(n))
			i.Role, i.At, i.Cost = role, began.AddDate(0, n, 0), 2
			w.must(replicas[n%2].Settle(w.Context(), "", i))
		}
		refused := call("")
		refused.Role, refused.Tokens, refused.Status, refused.Reason = policy.RoleSupervisor, core.Tokens{}, 503, "BudgetExceeded"
		replicas[0].Fold(w.Context(), refused)
		w.usage(replicas[0], core.Supervisor, "uid", core.Usage{Amount: core.Amount{Input: 20, Output: 4, Cost: 4}, Cached: 2, Calls: 2})
		w.usage(replicas[1], core.Supervisor, "other", core.Usage{})
		w.must(func() error { _, err := replicas[0].Turns(w.Context(), "uid", 0, 10); return err }()) // the refused one is there
		w.usage(replicas[1], core.Supervisor, "uid", core.Usage{Amount: core.Amount{Input: 20, Output: 4, Cost: 4}, Cached: 2, Calls: 2})
		w.usage(replicas[1], core.Feature, "uid", core.Usage{Amount: core.Amount{Input: 40, Output: 8, Cost: 8}, Cached: 4, Calls: 4})
	})
}

// TestPin: the first one wins, on whatever replica, and texts come back byte by byte.
func TestPin(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		key := ledger.PinKey{FeatureUID: "uid", Attempt: 1, Task: "form"}
		var mu sync.Mutex
		got := map[string]int{}
		var group sync.WaitGroup
		for n := range 16 {
			group.Go(func() {
				terms, templates, err := replicas[n%2].Pin(w.Context(), key, []byte(name("terms", n)), name("templates", n))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got[string(terms)+" "+templates]++
			})
		}
		group.Wait()
		if len(got) != 1 {
			t.Errorf("there is more than one answer: %v", got)
		}
		for pair := range got {
			if terms, templates, _ := strings.Cut(pair, " "); strings.TrimPrefix(terms, "terms") != strings.TrimPrefix(templates, "templates") {
				t.Errorf("of two: %s", pair)
			}
		}
		for task, templates := range map[string]string{"a": "", "b": "same\x00\xff ghp_x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO", "c": strings.Repeat("long ", 1<<20)} {
			for _, terms := range [][]byte{[]byte("first"), []byte("second")} {
				gotTerms, gotTemplates, err := replicas[0].Pin(t.Context(), ledger.PinKey{FeatureUID: "uid", Attempt: 2, Task: task}, terms, templates)
				if err != nil || string(gotTerms) != "first" || gotTemplates != templates {
					t.Errorf("%s: %q, %d bytes, %v", task, gotTerms, len(gotTemplates), err)
				}
			}
		}
		if terms, _, err := replicas[1].Pin(t.Context(), ledger.PinKey{FeatureUID: "uid", Attempt: 3}, nil, "x"); err != nil || len(terms) != 0 {
			t.Errorf("no terms: %q, %v", terms, err)
		}
		if _, _, err := replicas[1].Pin(t.Context(), key, make([]byte, 1<<20+1), ""); err == nil || !strings.Contains(err.Error(), "the limits are") {
			t.Errorf("too many: %v", err)
		}
	})
}

// TestRedaction: no secret is written, neither as it is nor in JSON.
func TestRedaction(t *testing.T) {
	const token = "ghp_" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO"
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		i := call("one")
		i.Raw = []byte(`{"text":"use\n` + token + `\nthere"}`)
		i.Formatted = []byte("use " + token)
		i.Violations = []core.Violation{{Type: "secret", Severity: "major", Message: "the answer has " + token}}
		w.must(l.Settle(t.Context(), "", i))
		got, err := l.Turn(t.Context(), "uid", 1)
		w.must(err)
		const mark = "[redacted: github-pat]"
		if string(got.Raw) != `{"text":"use\n`+mark+`\nthere"}` || string(got.Formatted) != "use "+mark || got.Violations[0].Message != "the answer has "+mark {
			t.Errorf("%s\n%s\n%+v", got.Raw, got.Formatted, got.Violations)
		}
		// A secret that would be cut in two.
		i = call("two")
		i.Raw = append(bytes.Repeat([]byte("1234567 "), core.MaxAnswer/8-2), "    "+token+" and more than the most"...)
		i.AnswerBytes = int64(len(i.Raw))
		w.must(l.Settle(t.Context(), "", i))
		got, err = l.Turn(t.Context(), "uid", 2)
		if end := string(got.Raw[max(0, len(got.Raw)-32):]); err != nil || strings.Contains(end, "ghp_") || len(got.Raw) > core.MaxAnswer || !strings.HasSuffix(end, "…") {
			t.Errorf("%d bytes end with %q, %v", len(got.Raw), end, err)
		}
		// A text that nobody can search in time is not kept.
		hard := call("three")
		hard.Raw = hardText()
		w.must(l.Settle(t.Context(), "", hard))
		if got, err = l.Turn(t.Context(), "uid", 3); err != nil || string(got.Raw) != "[withheld: the search for secrets would take too long]" {
			t.Errorf("%d bytes, %v: %.60s", len(got.Raw), err, got.Raw)
		}
	})
}

// hardText is full of what rules for secrets look at closely.
func hardText() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for text.Len() < core.MaxAnswer {
		text.WriteString("secret_token_key_password = 'x")
		for range 24 {
			text.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[r.IntN(62)])
		}
		text.WriteString("'\n")
	}
	return text.Bytes()
}

// TestBounds: whatever is given has a greatest size, and no byte of it makes a call that cannot be recorded.
func TestBounds(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		i := core.Interaction{ID: "one", FeatureUID: "uid", Raw: make([]byte, 9<<20), Formatted: []byte(strings.Repeat("ä", 3<<20)), Task: "a\x00b\xffc"}
		for n := range i.Raw {
			i.Raw[n] = byte(n * n >> 3)
		}
		i.ModelAsked, i.Reason = strings.Repeat("m", 10_000), strings.Repeat("ü", 10_000)
		for range 100 {
			i.Violations = append(i.Violations, core.Violation{Type: strings.Repeat("t", 1000), Severity: "\x00", Message: strings.Repeat("ö\x00", 100_000)})
		}
		i.Cost, i.Tokens = 1<<62, core.Tokens{Input: 1 << 62, Output: 1 << 62, Cached: -5}
		w.must(l.Settle(t.Context(), "", i))
		i.ID = "two"
		w.must(l.Settle(t.Context(), "", i))
		w.usage(l, core.Global, "", core.Usage{Amount: core.Amount{Input: 2 << 40, Output: 2 << 40, Cost: 2 << 50}, Calls: 2})
		turns, err := l.Turns(t.Context(), "uid", 0, 1<<40)
		w.must(err)
		got, err := l.Turn(t.Context(), "uid", turns[0].Sequence)
		w.must(err)
		if len(got.Raw) > core.MaxAnswer || len(got.Formatted) > core.MaxAnswer || !bytes.HasSuffix(got.Formatted, []byte("ä…")) {
			t.Errorf("%d and %d bytes", len(got.Raw), len(got.Formatted))
		}
		if len(got.ModelAsked) != 512 || len(got.Reason) > 512 || got.Task != "a\uFFFDb\uFFFDc" || len(got.Violations) != 32 || len(got.Violations[0].Message) > 1024 || len(got.Violations[0].Type) > 64 {
			t.Errorf("%q %d %d %d", got.Task, len(got.ModelAsked), len(got.Reason), len(got.Violations))
		}
	})
}

// TestOddNames: names that no database has as they are, or that are very long, are the same for everything that is asked.
func TestOddNames(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l, ctx := w.open(), t.Context()
		odd := "a\x00b\xff" + strings.Repeat("ü", 10_000)
		i := core.Interaction{ID: "i\x00\xff", FeatureUID: odd, Namespace: odd, Task: odd, Tokens: core.Tokens{Input: 10}}
		budgets := []core.Budget{{Scope: core.Feature, Key: odd, Limit: core.Amount{Input: 20}}, {Scope: core.Project, Key: odd, Limit: core.Amount{Input: 20}}}
		w.must(l.Reserve(ctx, core.Reservation{ID: i.ID, FeatureUID: odd, Namespace: odd, Wanted: core.Amount{Input: 20}, Until: began.Add(1)}, budgets))
		w.must(l.Settle(ctx, i.ID, i))
		w.must(l.Reserve(ctx, core.Reservation{ID: "j\x00", FeatureUID: odd, Namespace: odd, Wanted: core.Amount{Input: 10}, Until: began.Add(1)}, budgets))
		w.must(l.Reserve(ctx, core.Reservation{ID: "j\x00", FeatureUID: odd, Namespace: odd, Wanted: core.Amount{Input: 10}, Until: began.Add(1)}, budgets))
		if err := l.Reserve(ctx, core.Reservation{ID: "k", FeatureUID: odd, Namespace: odd, Wanted: core.Amount{Input: 1}, Until: began.Add(1)}, budgets); err == nil {
			t.Error("a call over the budget of odd names was let through")
		}
		w.usage(l, core.Feature, odd, core.Usage{Amount: core.Amount{Input: 10}, Calls: 1})
		w.usage(l, core.Project, odd, core.Usage{Amount: core.Amount{Input: 10}, Calls: 1})
		if got, err := l.Turn(ctx, odd, 1); err != nil || got.Sequence != 1 {
			t.Errorf("%v", err)
		}
		if turns, err := l.Turns(ctx, odd, 0, 1); err != nil || len(turns) != 1 {
			t.Errorf("%d turns, %v", len(turns), err)
		}
		for _, terms := range []string{"first", "second"} {
			got, _, err := l.Pin(ctx, ledger.PinKey{FeatureUID: odd, Task: odd}, []byte(terms), odd)
			if err != nil || string(got) != "first" {
				t.Errorf("%s, %v", got, err)
			}
		}
	})
}

// TestExpire removes what is old, step by step, and keeps the totals and the numbers of turns.
func TestExpire(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l, ctx := w.open(), t.Context()
		pin := func(task string) string {
			terms, _, err := l.Pin(ctx, ledger.PinKey{FeatureUID: "uid", Attempt: 1, Task: task}, []byte(name("at", w.now.Load())), "templates")
			w.must(err)
			return string(terms)
		}
		old, kept := pin("old"), pin("form")
		for n := range 10 {
			i := call(name("call", n))
			i.At = began.Add(time.Duration(n) * time.Hour)
			w.must(l.Settle(ctx, "", i))
		}
		i := call("old")
		i.Task, i.At = "old", began
		w.must(l.Settle(ctx, "", i))
		w.now.Store(began.Add(6 * time.Hour).UnixNano())
		w.must(l.Keep(ctx, "uid", time.Hour))
		var steps []int
		for {
			n, err := l.Expire(ctx, "uid", 4)
			w.must(err)
			if steps = append(steps, n); n == 0 {
				break
			}
		}
		if diff := cmp.Diff([]int{4, 2, 0}, steps); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		turns, err := l.Turns(ctx, "uid", 0, 100)
		if err != nil || len(turns) != 5 || turns[0].ID != "call-5" && turns[0].ID != "call5" {
			t.Errorf("%d left, %v", len(turns), err)
		}
		w.usage(l, core.Feature, "uid", calls(11))
		w.now.Add(int64(policy.LedgerRetention))
		w.must(l.Sweep(ctx, 100))
		// Numbers are not used again.
		w.must(l.Settle(ctx, "", i))
		i.ID = "new"
		w.must(l.Settle(ctx, "", i))
		if _, err := l.Turn(ctx, "uid", 1); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("the number of a turn was used again: %v", err)
		}
		if again := pin("old"); again == old {
			t.Errorf("the pin of a task without turns is still %s", again)
		}
		if again := pin("form"); again != kept {
			t.Errorf("the pin of a task with turns was %s and is %s", kept, again)
		}
	})
}

// TestWhatIsKnownOfAFeature: calls that come after something else has changed what the database has of their Feature find it as it is.
func TestWhatIsKnownOfAFeature(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l, ctx, n := w.open(), t.Context(), 0
		settles := func(keep time.Duration) {
			t.Helper()
			n++
			i := call(name("call", n))
			i.Keep = keep
			w.must(l.Settle(ctx, "", i))
			owners, err := l.Owners(ctx, "")
			if diff := cmp.Diff([]ledger.Owner{{FeatureUID: "uid", Namespace: "shop", Feature: "login", Keep: keep}}, owners); err != nil || diff != "" {
				t.Errorf("call %d: %v (-want +got):\n%s", n, err, diff)
			}
			if got, err := l.Turn(ctx, "uid", int64(n)); err != nil || got.ID != i.ID {
				t.Errorf("call %d: %+v, %v", n, got, err)
			}
		}
		for _, keep := range []time.Duration{time.Hour, time.Hour, 2 * time.Hour, time.Hour} { // the policy changes
			settles(keep)
		}
		w.must(l.Keep(ctx, "uid", 3*time.Hour))
		settles(time.Hour)
		_, _, err := l.Checkpoints().Record(ctx, ledger.Owner{FeatureUID: "uid", Namespace: "shop", Feature: "login", Keep: 4 * time.Hour}, protocol.Changes{Checkpoint: 1})
		w.must(err)
		settles(time.Hour)
		w.now.Store(began.Add(2 * time.Hour).UnixNano())
		for removed := 1; removed > 0; { // nothing is left, and the Feature is forgotten
			removed, err = l.Expire(ctx, "uid", 100)
			w.must(err)
		}
		if owners, err := l.Owners(ctx, ""); err != nil || len(owners) > 0 {
			t.Errorf("%v, %v", owners, err)
		}
		settles(time.Hour)
		given, cancel := context.WithCancel(ctx)
		cancel()
		if l.Settle(given, "", call("given up")) == nil {
			t.Error("a call that was given up is recorded")
		}
		settles(time.Hour)
	})
}

// TestOpenErrors are clear and have no password.
func TestOpenErrors(t *testing.T) {
	const password = "hunter2"
	server := postgres.URL(t)
	missing := filepath.Join(t.TempDir(), "missing", "ledger.db")
	for name, tc := range map[string]struct {
		url, want   string
		unavailable bool
	}{
		"no scheme":          {"/var/lib/ledger.db", "must begin with sqlite:// or postgres://", false},
		"another scheme":     {"mysql://me:" + password + "@host/db", "must begin with", false},
		"a relative path":    {"sqlite://ledger.db", "three slashes", false},
		"parameters":         {"sqlite:///ledger.db?mode=" + password, "nothing after the path", false},
		"no folder":          {"sqlite://" + missing, "no such file or directory", false},
		"a bad port":         {"postgres://me:" + password + "@host:port/db", "write postgres://user:password@host", false},
		"a bad password":     {"postgres://me:" + password + "@%zz@host/db", "with %40 for an @", false},
		"nobody listens":     {"postgres://me:" + password + "@127.0.0.1:1/db?sslmode=disable", "try again", true},
		"the wrong password": {strings.Replace(server, "postgres:", "postgres:"+password, 1), "password authentication failed", true},
		"no such database":   {strings.Replace(server, "/postgres?", "/missing?", 1), `"missing" does not exist`, true},
	} {
		if name == "the wrong password" {
			_, rest, _ := strings.Cut(server, "@")
			tc.url = "postgres://postgres:" + password + "@" + rest
		}
		l, err := ledger.Open(t.Context(), ledger.Options{URL: tc.url, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err == nil {
			_ = l.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), password) || errors.Is(err, ledger.ErrUnavailable) != tc.unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenAgain: what is there stays, a file is for its owner alone, and tables of a newer version are refused.
func TestOpenAgain(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		w.must(l.Settle(t.Context(), "", call("one")))
		w.must(l.Close())
		if err := l.Settle(t.Context(), "", call("two")); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("after Close: %v", err)
		}
		l = w.open()
		w.usage(l, core.Global, "", calls(1))
		driver, source := "pgx", w.url
		if path, is := strings.CutPrefix(w.url, "sqlite://"); is {
			path = strings.NewReplacer("%20", " ", "%3F", "?", "%25", "%").Replace(path)
			driver, source = "sqlite", "file://"+strings.TrimPrefix(w.url, "sqlite://")
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if info, err := os.Stat(path + suffix); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%q: %v, %v", suffix, info, err)
				}
			}
		}
		w.must(l.Close())
		db, err := sql.Open(driver, source)
		w.must(err)
		defer db.Close()
		_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, $2)", 999, true)
		w.must(err)
		_, err = ledger.Open(t.Context(), ledger.Options{URL: w.url, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), "its tables have version 999") || errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("newer tables: %v", err)
		}
	})
}

// TestReplicasOpenAtOnce: replicas that start at the same time make the tables one after the other. SQLite has no replicas.
func TestReplicasOpenAtOnce(t *testing.T) {
	const replicas, lock = 4, 0x6c6564676572
	w := newWorld(t, postgres.URL(t))
	db, err := sql.Open("pgx", w.url)
	w.must(err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	w.must(err)
	_, err = conn.ExecContext(t.Context(), "SELECT pg_advisory_lock($1)", lock)
	w.must(err)
	var group sync.WaitGroup
	for range replicas {
		group.Go(func() {
			l, err := ledger.Open(w.Context(), ledger.Options{URL: w.url, Log: slog.New(slog.DiscardHandler), Now: time.Now})
			if err != nil {
				t.Error(err)
				return
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	// All wait for the lock, and none has begun.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for waiting := 0; waiting < replicas; {
		w.must(db.QueryRowContext(ctx, `SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND NOT granted AND application_name = current_setting('application_name')`).Scan(&waiting))
	}
	var tables int
	w.must(db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").Scan(&tables))
	if tables != 0 {
		t.Errorf("%d tables were made without the lock", tables)
	}
	_, err = conn.ExecContext(t.Context(), "SELECT pg_advisory_unlock($1)", lock)
	w.must(err)
	group.Wait()
}

// TestContexts: a context that has ended ends a call, with its own error.
func TestContexts(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, usage := l.Usage(ctx, core.Global, "")
		_, turns := l.Turns(ctx, "uid", 0, 1)
		_, _, pin := l.Pin(ctx, ledger.PinKey{}, nil, "")
		_, expire := l.Expire(ctx, "uid", 1)
		_, _, recorded := l.Checkpoints().Record(ctx, ledger.Owner{FeatureUID: "uid"}, protocol.Changes{Checkpoint: 1})
		_, changes := l.Checkpoints().Changes(ctx, "uid", 1)
		_, events := l.Checkpoints().Events(ctx, "uid", 0, 1)
		_, owners := l.Owners(ctx, "")
		_, _, taken := l.Taken(ctx, core.Budget{Scope: core.Global})
		for what, err := range map[string]error{
			"Usage": usage, "Turns": turns, "Pin": pin, "Expire": expire, "RecordChanges": recorded, "Changes": changes, "Events": events, "Owners": owners,
			"Keep": l.Keep(ctx, "uid", 1), "Sweep": l.Sweep(ctx, 1), "Taken": taken,
			"Reserve": l.Reserve(ctx, reservation("x", 1), nil), "Settle": l.Settle(ctx, "x", call("x")),
		} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
