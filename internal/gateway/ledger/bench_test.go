// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"crypto/rand"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// BenchmarkCall is what the ledger adds to a call with an answer of 2 KiB, as short turns have: one agent, and several at once. Of a call on
// SQLite, all of the processor time is the ledger's.
func BenchmarkCall(b *testing.B) {
	budgets := []core.Budget{{Scope: core.Feature, Key: "uid", Limit: core.Amount{Input: 1 << 60}}, {Scope: core.Project, Key: "shop", Limit: core.Amount{Input: 1 << 60}}, {Scope: core.Global, Limit: core.Amount{Input: 1 << 60}}}
	answer := []byte(`{"type":"message","model":"large","content":[{"type":"text","text":"## Summary\n` + strings.Repeat("An answer of a model. ", 90) +
		`"}],"stop_reason":"end_turn","usage":{"input_tokens":10000,"output_tokens":500}}`)
	for engine, url := range map[string]func(testing.TB) string{"SQLite": sqliteURL, "PostgreSQL": postgres.URL} {
		for agents, each := range map[string]int{"agents=1": 1, "agents=16": 16, "agents=64": 64} {
			b.Run(engine+"/"+agents, func(b *testing.B) {
				w := newWorld(b, url(b))
				l := w.open()
				b.SetParallelism(max(1, each/runtime.GOMAXPROCS(0)))
				if each == 1 {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
				}
				b.ReportAllocs()
				b.ResetTimer()
				before := processorTime(b)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						i := call(strconv.FormatInt(time.Now().UnixNano(), 36) + rand.Text())
						i.Raw, i.Dialect, i.Backend, i.ModelAsked, i.RequestDigest, i.TemplateHash = answer, "anthropic", "hosted", "large", strings.Repeat("d", 64), strings.Repeat("t", 64)
						w.must(l.Reserve(w.Context(), reservation(i.ID, 10), budgets))
						w.must(l.Settle(w.Context(), i.ID, i))
					}
				})
				b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// processorTime that the process has had.
func processorTime(b *testing.B) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
