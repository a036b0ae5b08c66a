// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestDroppedUnread: the status says of a dropped directive of a reviewer whether the agent never received it.
func TestDroppedUnread(t *testing.T) {
	unread := func(book Book, list []protocol.Directive, finished int) map[string]string {
		said := map[string]string{}
		for _, s := range book.Given(list, finished).Status() {
			if said[s.ID] = s.State; s.Unread {
				said[s.ID] += " unread"
			}
		}
		return said
	}
	aged := []protocol.Directive{given("told", byReviewer), given("waits", byReviewer), given("again", byReviewer)}
	book := Book{}.With(Book{}.Given(aged, 1).Follow())
	book = book.With(book.Given(aged, 1).Learn(News{Told: []string{"told", "again"}, How: "told"}))
	book = book.With(book.Given(aged, 1).Learn(News{Words: []Word{{ID: "again", Outcome: Done}}}))
	d, e, is := book.Again(aged[2], 1)
	if !is {
		t.Fatal("an answered directive is not open again")
	}
	aged[2], book = d, book.With([]Entry{e})
	book = book.With(book.Given(aged, 16).Follow())
	want := map[string]string{"told": "Dropped", "waits": "Dropped unread", "again": "Dropped"}
	if diff := cmp.Diff(want, unread(book, aged, 16)); diff != "" {
		t.Errorf("too old (-want +got):\n%s", diff)
	}
	var surplus []protocol.Directive
	want = map[string]string{}
	for i := range maxCleanup + 2 {
		surplus = append(surplus, given(fmt.Sprintf("s%02d", i), byReviewer))
		want[surplus[i].ID] = "Pending"
	}
	want["s10"], want["s11"] = "Dropped unread", "Dropped unread"
	book = Book{}.With(Book{}.Given(surplus[:11], 1).Follow())
	book = book.With(book.Given(surplus, 2).Follow()) // one that was pending, and one that has just come
	if diff := cmp.Diff(want, unread(book, surplus, 2)); diff != "" {
		t.Errorf("too many (-want +got):\n%s", diff)
	}
}
