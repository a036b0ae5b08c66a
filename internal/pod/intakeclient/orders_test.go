// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intakeclient

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// FuzzOrders: whatever intake answers with is refused, or is the same after it was journaled and read again, and is
// something that the state machine can stand on.
func FuzzOrders(f *testing.F) {
	for _, o := range []protocol.Orders{
		{Version: protocol.OrdersVersion},
		{Version: protocol.OrdersVersion + 1, Attempt: 2},
		{
			Version: protocol.OrdersVersion, Attempt: 3, Run: "agent",
			Feature:    protocol.FeatureRef{Namespace: "shop", Name: "form", UID: "u"},
			Repository: protocol.Repository{URL: "https://git.example.com/shop.git", Revision: "main"},
			Agent:      protocol.Agent{Runtime: "command", Command: []string{"make"}, Env: []string{"A=b"}},
			Tasks:      []protocol.Task{{Name: "one", Instructions: "i"}, {Name: "two"}}, Prompt: "p",
			Plan:     protocol.Plan{Allowed: []string{"src/**"}},
			Requests: []protocol.Request{{ID: "r", Kind: "Rollback", Rollback: &protocol.Rollback{Kind: protocol.RollbackPaths, Paths: []string{"src"}}}},
			Delivery: protocol.Delivery{Branch: "b", Push: true, RequireApproval: true},
			Stop:     true, StopReason: "Deleted", NextCheckpoint: 4,
		},
	} {
		text, err := json.Marshal(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"version":2,"tasks":[{}],"requests":[{"kind":"Rollback"}],"nextCheckpoint":-1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		orders, err := readOrders(body)
		if err != nil {
			return
		}
		journaled, err := json.Marshal(orders)
		if err != nil {
			t.Fatal(err)
		}
		again, err := readOrders(journaled)
		if err != nil {
			t.Fatalf("orders that were followed cannot be read again: %v\n%s", err, journaled)
		}
		twice, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(journaled), string(twice)); diff != "" {
			t.Fatalf("orders read again are others (-followed +again)\n%s", diff)
		}
		follow(t, again)
	})
}

// follow has the state machine act on orders until it has answered what it can answer by itself.
func follow(t *testing.T, orders protocol.Orders) {
	t.Helper()
	now := time.Unix(1e9, 0)
	for _, seal := range []bool{false, true} {
		s := supervise.State{Seal: seal, Rules: supervise.RulesOf(orders.Policy)}
		s = s.Apply(supervise.Ordered{Orders: orders}, now).Apply(supervise.Connected{}, now)
		act := supervise.Next(s, now)
		for n := 0; act.Kind == supervise.Answer; n++ {
			if n > len(orders.Requests) {
				t.Fatalf("answers %d requests without an end: %+v", len(orders.Requests), act)
			}
			s = s.Begin(act).Apply(supervise.Answered{Answer: act.Answer}, now)
			act = supervise.Next(s, now)
		}
		if act.Kind == supervise.Wait && !act.Until.IsZero() && !act.Until.After(now) {
			t.Fatalf("waits for what is over: %+v", act)
		}
		if task, known := s.Task(act.Task); act.Kind == supervise.Start && (!known || !task.Listed) {
			t.Fatalf("starts task %q, and the orders list %+v", act.Task, orders.Tasks)
		}
	}
}
