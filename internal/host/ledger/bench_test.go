// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"strings"
	"sync/atomic"
	"testing"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// BenchmarkCall is what the ledger adds to a call with an answer of 8 KiB: one at a time, and from many at once.
func BenchmarkCall(b *testing.B) {
	budgets := []core.Budget{{Scope: core.Feature, Key: "uid", Limit: core.Amount{Input: 1 << 60}}, {Scope: core.Project, Key: "shop", Limit: core.Amount{Input: 1 << 60}}, {Scope: core.Global, Limit: core.Amount{Input: 1 << 60}}}
	answer := []byte(strings.Repeat("An answer has words, and some are there again: \"x\": 12345.\n", 140))
	for engine, url := range map[string]func(testing.TB) string{"SQLite": sqliteURL, "PostgreSQL": postgres.URL} {
		for mode, parallelism := range map[string]int{"alone": 0, "many": 32} {
			b.Run(engine+"/"+mode, func(b *testing.B) {
				w := newWorld(b, url(b))
				l := w.open()
				var count atomic.Int64
				one := func() {
					id := name("call", count.Add(1))
					i := call(id)
					i.Raw = answer
					w.must(l.Reserve(w.Context(), reservation(id, 10), budgets))
					w.must(l.Settle(w.Context(), id, i))
				}
				b.ResetTimer()
				if parallelism == 0 {
					for b.Loop() {
						one()
					}
					return
				}
				b.SetParallelism(parallelism)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one()
					}
				})
			})
		}
	}
}
