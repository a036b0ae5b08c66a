// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestRDirLowAndCleanupWait: Low and Cleanup directives of reviewers wait for the polish tasks and say so, and no others.
func TestRDirLowAndCleanupWait(t *testing.T) {
	functional := func(d *protocol.Directive) { d.Source = protocol.SourceDesign }
	list := []protocol.Directive{
		given("mine", cleanup, low), given("tidy", byReviewer), given("low", functional, low), given("normal", functional), given("grave", functional, critical),
		given("grave-tidy", byReviewer, critical),
	}
	book := Book{}.With(Book{}.Given(list, 1).Follow())
	held := book.Given(list, 1).Hold(true)
	if diff := cmp.Diff([]string{"mine", "grave", "grave-tidy", "normal"}, ids(held.Open())); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	all := []string{"mine", "grave", "grave-tidy", "normal", "tidy", "low"}
	if diff := cmp.Diff(all, ids(held.Unsettled())); diff != "" {
		t.Errorf("unsettled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, ids(book.Given(list, 1).Open())); diff != "" {
		t.Errorf("open in a polish task (-want +got):\n%s", diff)
	}
	messages := map[string]string{}
	for _, s := range held.Status() {
		messages[s.ID] = s.Message
	}
	next := "the watchdog tells the agent with its next model call"
	want := map[string]string{"mine": next, "grave": next, "grave-tidy": next, "normal": next, "tidy": later, "low": later}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for _, s := range held.Polished([]string{"tidy", "mine"}).Status() {
		if s.ID == "tidy" {
			want[s.ID] = missed
		}
		if s.Message != want[s.ID] {
			t.Errorf("after a polish task, %s: %q", s.ID, s.Message)
		}
	}
	book = book.With(held.Learn(News{Told: []string{"tidy"}, How: "told"}))
	if open := ids(book.Given(list, 1).Hold(true).Open()); !slices.Contains(open, "tidy") {
		t.Errorf("the agent has received one, and it is held: %q", open)
	}
}

// TestRConvHeldTooLong: a reviewer's Cleanup directive that waits too long is dropped, and nobody reads how to give it again.
func TestRConvHeldTooLong(t *testing.T) {
	list := []protocol.Directive{given("tidy", byReviewer)}
	book := Book{}.With(Book{}.Given(list, 1).Follow())
	book = book.With(book.Given(list, 16).Hold(true).Follow())
	if s := book.Given(list, 16).Status()[0]; s.State != protocol.DirectiveDropped || s.Message != "15 tasks were finished since it was given, and Cleanup directives are dropped then" {
		t.Errorf("%+v", s)
	}
}

// TestHeldProperties: whatever is given and told in whatever order, no directive of a user waits for polish tasks. One of a reviewer is told in a polish task at
// the latest, or the status says at the delivery what became of it.
func TestHeldProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var book Book
		var list []protocol.Directive
		finished := 0
		now := func(hold bool) List { return book.Given(list, finished).Hold(hold) }
		tell := func(hold bool) {
			book = book.With(now(hold).Learn(News{Told: ids(now(hold).Open()), How: "told"}))
		}
		hold := rapid.Bool().Draw(t, "polish tasks")
		for range rapid.IntRange(1, 20).Draw(t, "tasks") {
			for range rapid.IntRange(0, 5).Draw(t, "new") {
				list = append(list, given(fmt.Sprintf("d%d", len(list)), func(d *protocol.Directive) {
					d.Source = rapid.SampledFrom([]string{protocol.SourcePerson, protocol.SourceFeature, protocol.SourceCodeStyle, protocol.SourceDesign}).Draw(t, "source")
					d.Type = rapid.SampledFrom([]string{"", protocol.DirectiveFunctional, protocol.DirectiveCleanup}).Draw(t, "type")
					d.Priority = rapid.SampledFrom([]string{"", protocol.PriorityCritical, protocol.PriorityNormal, protocol.PriorityLow}).Draw(t, "priority")
				}))
			}
			book = book.With(now(hold).Follow())
			if diff := cmp.Diff(ids(now(false).Open()), ids(now(hold).Unsettled())); diff != "" {
				t.Fatalf("unsettled while they wait (-open in a polish task +):\n%s", diff)
			}
			open := ids(now(hold).Open())
			for _, d := range now(false).Open() {
				if personal(d.Source) && !slices.Contains(open, d.ID) {
					t.Fatalf("%s of a user waits", d.ID)
				}
			}
			if rapid.Bool().Draw(t, "a model is asked") {
				tell(hold)
			}
			if rapid.Bool().Draw(t, "it answers") {
				book = book.With(now(hold).Learn(News{Words: []Word{{ID: rapid.SampledFrom(append(list, given("none"))).Draw(t, "id").ID, Outcome: rapid.SampledFrom(Outcomes()).Draw(t, "outcome")}}}))
			}
			finished++
		}
		polished := rapid.Bool().Draw(t, "polished")
		if book = book.With(now(hold).Follow()); polished {
			tell(false)
		}
		reported := map[string]protocol.DirectiveStatus{}
		for _, s := range now(hold).Status() {
			reported[s.ID] = s
		}
		for _, d := range list {
			s, is := reported[d.ID]
			switch {
			case !is || s.State == "":
				t.Fatalf("nothing is recorded of %s", d.ID)
			case polished && !personal(d.Source) && s.State == protocol.DirectivePending:
				t.Fatalf("%s was not told in the polish task: %+v", d.ID, s)
			}
		}
	})
}
