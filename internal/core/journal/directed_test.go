// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// TestDirected: how far directives are outlives attempts, and a later record of one replaces the earlier.
func TestDirected(t *testing.T) {
	entry := func(id, state string) directives.Entry { return directives.Entry{ID: id, State: state, Given: true} }
	directed := func(entries ...directives.Entry) journal.Record {
		return journal.Record{Directed: &journal.Directed{Entries: entries}}
	}
	s := read(t, write(t, attempt1, base, directed(entry("a", "Pending"), entry("b", "Pending")), directed(entry("a", "Active")), attempt2))
	if diff := cmp.Diff(directives.Book{entry("a", "Active"), entry("b", "Pending")}, s.Directives); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHolds: directives of reviewers that can wait are held until a polish task is at work, if the policy has such tasks and they are not used up.
func TestHolds(t *testing.T) {
	begun := func(name string) journal.Record { return journal.Record{TaskBegun: &journal.TaskBegun{Name: name}} }
	added := func(n string) journal.Record {
		return journal.Record{TaskAdded: &journal.TaskAdded{Name: protocol.PolishPrefix + n, Text: "Polish it."}}
	}
	for name, c := range map[string]struct {
		records []journal.Record
		want    bool
	}{
		"before orders":    {nil, false},
		"before a task":    {[]journal.Record{reviewedOrders("form")}, true},
		"in a task":        {[]journal.Record{reviewedOrders("form"), begun("form")}, true},
		"in a polish one":  {[]journal.Record{reviewedOrders("delivery/polish/1"), begun("delivery/polish/1")}, false},
		"after one of two": {[]journal.Record{reviewedOrders("form"), added("1")}, true},
		"used up":          {[]journal.Record{reviewedOrders("form"), added("1"), added("2"), begun("form")}, false},
		"without them":     {[]journal.Record{{Orders: &protocol.Orders{}}}, false},
	} {
		s, err := journal.Replay(append([]journal.Record{attempt1, base}, c.records...))
		if err != nil || s.Holds() != c.want {
			t.Errorf("%s: %v, want %v (%v)", name, s.Holds(), c.want, err)
		}
	}
}
