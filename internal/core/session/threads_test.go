// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// TestThreadsAreThoseOfTheBook: however many agents work for the main one, what is remembered of threads is that of the threads that the Book knows, and the
// main one is among them.
func TestThreadsAreThoseOfTheBook(t *testing.T) {
	d, _ := dialect.Find("anthropic")
	var s State
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	ask := func(system, task string) {
		t.Helper()
		r, err := d.ReadRequest([]byte(fmt.Sprintf(`{"model":"m","system":%q,"messages":[{"role":"user","content":%q}],"tools":[{"name":"Read"}]}`, system, task)))
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		f := Facts{Now: now, Terms: Terms{Task: "form", Rules: steering.Defaults()}}
		reply, _ := s.Request(f, r)
		s.Answered(f, reply.Exchange, &conversation.Answer{Ended: true, Stop: conversation.StopEnd}, 0)
		s.later(reply.Thread, "Something.")
	}
	ask("You are the agent.", "Add a form.")
	main := s.Book.Threads[0].ID
	for i := range 3 * conversation.MaxThreads {
		ask("You work for another agent.", fmt.Sprintf("Look at part %d.", i))
		known := func(thread int) bool {
			return slices.ContainsFunc(s.Book.Threads, func(t *conversation.Thread) bool { return t.ID == thread })
		}
		if len(s.Book.Threads) > conversation.MaxThreads || !known(main) {
			t.Fatalf("%d threads, and the main one is among them: %t", len(s.Book.Threads), known(main))
		}
		for thread := range s.Threads {
			if !known(thread) {
				t.Fatalf("what was said to thread %d is remembered", thread)
			}
		}
		if slices.ContainsFunc(s.Anomalies.Threads, func(t *anomaly.Thread) bool { return !known(t.ID) }) ||
			slices.ContainsFunc(s.Steering.Threads, func(t steering.Thread) bool { return !known(t.ID) }) {
			t.Fatal("more threads are remembered than the book has")
		}
	}
}
