// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"errors"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/deliver"
	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestNoPushWithoutAProof: the push itself asks the journal, whatever led to it. A pass of another tree does not count.
func TestNoPushWithoutAProof(t *testing.T) {
	q := newQuay(t)
	q.promote("web/a.html", "a")
	unit := protocol.Gate{Name: "unit", Command: []string{"make"}}
	q.Orders.Delivery.Gates = []protocol.Gate{unit}
	pass := func() {
		r := gates.Result{Gate: unit.Name, Definition: gates.Sum(unit), Tree: q.Journal.State().Promoted.Tree, State: gates.Passed}
		if err := q.Journal.Note(journal.Record{DeliveryGateRan: &r}); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(when string) {
		t.Helper()
		if _, err := q.service(nil).Push(t.Context(), q.Orders); !errors.Is(err, deliver.ErrUnproved) {
			t.Errorf("%s: the push says %v", when, err)
		}
		if refs := q.git("-C", q.origin, "for-each-ref"); refs != "" {
			t.Errorf("%s: the server has %s", when, refs)
		}
	}
	refused("no gate has run")
	pass()
	q.promote("web/b.html", "b")
	refused("the head has moved")
	pass()
	if _, err := q.service(nil).Push(t.Context(), q.Orders); err != nil {
		t.Errorf("a proved head: %v", err)
	}
}
