// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// MaxAgain is how often the directive of a reviewer is opened again because the reviewer still finds it in the work.
	MaxAgain = 1
	// stillThere begins a directive that is open again. Its text differs from the one before, so that a conversation that has the first one gets it too.
	stillThere = "Still there after your answer: "
	// found begins what users read of a directive that is open again, and left what they read of one that is not opened any more.
	found = "its reviewer still finds it in the work; "
	left  = "its reviewer still finds it in the work after two answers of the agent, and the watchdog does not give it again: a user decides; "
	// failed begins what users read of a directive whose task was aborted.
	failed = "the task for it could not be done: "
)

// Checked says whether the reviewer of a directive is to look whether it is still there: the agent has answered, and the directive can be opened again, or
// a user is to hear of it.
func (e Entry) Checked() bool {
	return !personal(e.Source) && e.Given && e.answered() && e.Again <= MaxAgain
}

// answered says whether the directive has the answer of an agent.
func (e Entry) answered() bool {
	return e.State == protocol.DirectiveAddressed || e.State == protocol.DirectiveEscalated
}

// believed says whether an agent can still say that the directive is addressed.
func (e Entry) believed() bool { return e.Again <= MaxAgain }

// Find is the entry of a directive; the zero one if the book has none.
func (b Book) Find(id string) Entry { return b.find(id) }

// Failed is the result for a reviewer's directive if its own task was aborted when a number of tasks is finished. The result is false if the book has nothing
// that can change.
func (b Book) Failed(id, why string, finished int) (Entry, bool) {
	e := b.find(id)
	if e.ID == "" || personal(e.Source) || e.State == protocol.DirectiveDropped || e.State == protocol.DirectiveEscalated {
		return e, false
	}
	e.Given, e.State, e.Age, e.Message = true, protocol.DirectiveEscalated, max(finished-e.Born, 0), failed+why
	return e, true
}

// Again is the result for an answered directive that its reviewer still finds in the work when a number of tasks is finished. The first time, it is open
// once more, with other words. The second time, it is Escalated, and nobody gives it again. The result is false if the book has no answer to it.
func (b Book) Again(d protocol.Directive, finished int) (protocol.Directive, Entry, bool) {
	e := b.find(d.ID)
	if personal(e.Source) || !e.answered() || e.Again > MaxAgain {
		return d, e, false
	}
	e.Again++
	e.Given, e.Input = true, ""
	if e.Again > MaxAgain {
		e.State, e.Age, e.Message = protocol.DirectiveEscalated, max(finished-e.Born, 0), left+e.Message
		return d, e, true
	}
	d.Description = stillThere + strings.TrimPrefix(d.Description, stillThere)
	e.Sum, e.State, e.Born, e.Age, e.Message = sum(d), protocol.DirectivePending, finished, 0, ""
	return d, e, true
}
