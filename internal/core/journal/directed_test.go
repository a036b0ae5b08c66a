// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
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
