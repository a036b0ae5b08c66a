// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history decides what the records of a journal mean for people: which entries of the history of a Feature follow from each.
package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// places is how many entries a record can have: the Sequence of an entry is the position of its record times this, and its place there.
const places = 1000

// longMessage is how much of a message is looked at, in bytes: not all of it is visible.
const longMessage = 4 * protocol.MaxHistoryMessage

// Teller tells the entries of records that follow each other. It remembers what one record does not say.
type Teller struct {
	// open tasks have begun and are not done, with the tree on which their gates run; empty if none do.
	open map[string]string
	// answered questions, by id.
	answered map[string]bool
}

// NewTeller makes a Teller that continues after the records that add up to the state.
func NewTeller(s journal.State) *Teller {
	t := &Teller{open: map[string]string{}, answered: map[string]bool{}}
	for name, task := range s.Tasks {
		if task.Begun && !task.Over() {
			t.open[name] = task.Gating
		}
	}
	if s.Orders != nil {
		for _, a := range s.Orders.Answers {
			t.answered[a.Question] = true
		}
	}
	return t
}

// Tell gives the entries of a record, in their sequence. Position is its position in the journal, and after the state with it.
func (t *Teller) Tell(position int64, after journal.State, r journal.Record) []protocol.HistoryEntry {
	list := t.direct(after, r)
	for _, name := range slices.Sorted(maps.Keys(t.open)) {
		task := after.Tasks[name]
		switch {
		case task.Done:
			list = append(list, protocol.HistoryEntry{Kind: protocol.HistoryTask, Event: protocol.HistoryDone, Task: name})
			delete(t.open, name)
		case task.Aborted: // its changes have left
			list = append(list, aborted(name, task.Aborting))
			delete(t.open, name)
		case task.Begun:
			t.open[name] = task.Gating
		}
	}
	list = plain.CutList(list, places)
	for i := range list {
		e := &list[i]
		e.Sequence, e.Time, e.Attempt = position*places+int64(i), r.Time, after.Epoch
		e.Message = plain.Line(plain.CutBytes(e.Message, longMessage), protocol.MaxHistoryMessage/4) // a character has four bytes at the most
		if len(e.Text) > protocol.MaxHistoryText {
			e.Text, e.Missing = plain.CutBytes(e.Text, protocol.MaxHistoryText), fmt.Sprintf("it has %d bytes, and %d have room", len(e.Text), protocol.MaxHistoryText)
		}
	}
	return list
}

// direct are the entries that the record names itself.
func (t *Teller) direct(after journal.State, r journal.Record) []protocol.HistoryEntry {
	task := func(name, event string) protocol.HistoryEntry {
		return protocol.HistoryEntry{Kind: protocol.HistoryTask, Event: event, Task: name}
	}
	var e protocol.HistoryEntry
	switch {
	case r.Orders != nil:
		return t.answers(*r.Orders)
	case r.Attempt != nil:
		e = protocol.HistoryEntry{Kind: protocol.HistoryAttempt, Event: protocol.HistoryBegun, Name: r.Attempt.Run}
	case r.Final != nil:
		e = protocol.HistoryEntry{Kind: protocol.HistoryAttempt, Event: r.Final.Outcome, Name: after.Run, Message: r.Final.Reason + ": " + r.Final.Message}
	case r.Planned != nil:
		e = planned(*r.Planned)
	case r.PlanMissing != nil:
		e = protocol.HistoryEntry{Kind: protocol.HistoryPlan, Event: protocol.HistoryUnavailable, Message: asked(r.PlanMissing.Request) + r.PlanMissing.Message}
	case r.PlanApproved != nil:
		e = protocol.HistoryEntry{Kind: protocol.HistoryPlan, Event: protocol.HistoryApproved, Name: r.PlanApproved.Hash}
	case r.TaskBegun != nil:
		e = task(r.TaskBegun.Name, protocol.HistoryBegun)
		e.Message, e.Text = learned(r.TaskBegun.Knowledge)
		t.open[e.Task] = ""
	case r.TaskCorrected != nil:
		e = task(r.TaskCorrected.Name, protocol.HistoryCorrected)
		e.Cause, e.Text = t.cause(r.TaskCorrected.Name, r.TaskCorrected.ID), r.TaskCorrected.Text
	case r.TaskRestarted != nil:
		e = task(r.TaskRestarted.Name, protocol.HistoryRestarted)
		e.Cause, e.Text = t.cause(r.TaskRestarted.Name, r.TaskRestarted.ID), r.TaskRestarted.Text
	case r.TaskRejected != nil:
		e = task(r.TaskRejected.Name, protocol.HistoryRejected)
		e.Message = r.TaskRejected.Message
	case r.TaskParked != nil:
		e = task(r.TaskParked.Name, protocol.HistoryParked)
	case r.TaskEnded != nil:
		e = task(r.TaskEnded.Name, protocol.HistoryEnded)
		e.ExitCode = r.TaskEnded.ExitCode
	case r.TaskCompleted != nil:
		e = task(r.TaskCompleted.Name, protocol.HistoryCompleted)
		e.Message, e.Text = r.TaskCompleted.Summary, r.TaskCompleted.Summary
	case r.TaskAdded != nil:
		e = task(r.TaskAdded.Name, protocol.HistoryAdded)
		e.Cause, e.Text = protocol.CauseDeliveryGate, r.TaskAdded.Text
		if protocol.Extra(e.Task) {
			e.Cause = protocol.CauseDirectives
		}
	case r.Reviewed != nil && r.Reviewed.Passed:
		return nil
	case r.Reviewed != nil:
		return reviewed(*r.Reviewed)
	case r.TaskDropped != nil:
		e = task(r.TaskDropped.Name, protocol.HistoryDropped)
		delete(t.open, e.Task)
	case r.GateRan != nil:
		e = gate(r.GateRan.Task, r.GateRan.Result)
	case r.DeliveryGateRan != nil:
		e = gate("", *r.DeliveryGateRan)
	case r.Asked != nil:
		e = protocol.HistoryEntry{Kind: protocol.HistoryQuestion, Event: protocol.HistoryAsked, Task: after.Working(), Name: r.Asked.ID, Message: r.Asked.Text, Text: r.Asked.Text}
		if r.Asked.Guess {
			e.Event = protocol.HistoryGuessed
		}
	default:
		return nil
	}
	return []protocol.HistoryEntry{e}
}

// learned says which knowledge of the team the agent of a task gets.
func learned(k *journal.Knowledge) (message, text string) {
	if k == nil {
		return "", ""
	}
	var b strings.Builder
	list := func(what string, lines []string, all int) {
		if all == 0 {
			return
		}
		b.WriteString(what + ":\n")
		for _, line := range lines {
			b.WriteString("- " + line + "\n")
		}
		if more := all - len(lines); more > 0 {
			fmt.Fprintf(&b, "- and %d more\n", more)
		}
	}
	list("knowledge that the agent gets", k.GivenPaths, k.Given)
	list("knowledge that it does not get", k.LeftOut, k.Left)
	return fmt.Sprintf("documents of knowledge that the agent gets: %d of %d", k.Given, k.Given+k.Left), b.String()
}

// aborted task, and why it cannot be done.
func aborted(task string, why *journal.TaskAborted) protocol.HistoryEntry {
	e := protocol.HistoryEntry{Kind: protocol.HistoryTask, Event: protocol.HistoryAborted, Task: task}
	if why != nil {
		e.Message = why.Reason + ": " + why.Message
	}
	return e
}

// cause of a correction or a restart. An act of steering has an ID.
func (t *Teller) cause(task, id string) string {
	switch {
	case id != "":
		return protocol.CauseSteering
	case t.open[task] != "":
		return protocol.CauseGate
	}
	return protocol.CauseCheckpoint
}

// answers that the orders have and the orders before did not have.
func (t *Teller) answers(o protocol.Orders) []protocol.HistoryEntry {
	var list []protocol.HistoryEntry
	for _, a := range o.Answers {
		if t.answered[a.Question] {
			continue
		}
		t.answered[a.Question] = true
		list = append(list, protocol.HistoryEntry{Kind: protocol.HistoryAnswer, Event: protocol.HistoryGiven, Name: a.Question, Message: a.Text, Text: a.Text})
	}
	return list
}

// planned is what came of the planning.
func planned(p journal.Planned) protocol.HistoryEntry {
	e := protocol.HistoryEntry{Kind: protocol.HistoryPlan, Event: protocol.HistoryUnavailable, Message: asked(p.Request) + p.Message}
	if p.Plan == nil {
		return e
	}
	e.Event, e.Name = protocol.HistoryProposed, plans.Hash(*p.Plan)
	e.Message = asked(p.Request) + fmt.Sprintf("milestones: %d, tasks: %d", len(p.Plan.Milestones), plans.Tasks(*p.Plan))
	if p.Reasons != "" {
		e.Message += ". Reasons: " + p.Reasons
	}
	if text, err := json.MarshalIndent(p.Plan, "", "  "); err == nil { // strings and lists of them
		e.Text = string(text)
	}
	return e
}

// reviewed is what a reviewer said, and then the question for it, if a model got one.
func reviewed(v journal.Reviewed) []protocol.HistoryEntry {
	e := protocol.HistoryEntry{
		Kind: protocol.HistoryReview, Event: v.Outcome, Task: v.Task, Name: v.Reviewer, Message: v.Summary, Findings: &protocol.Findings{Kept: len(v.Directives)},
	}
	var b strings.Builder
	for _, d := range v.Directives {
		fmt.Fprintf(&b, "%s (%s, %s): %s\n", d.ID, d.Type, d.Priority, d.Description)
	}
	for _, id := range v.StillThere {
		fmt.Fprintf(&b, "%s: still there after the agent's answer\n", id)
	}
	for _, d := range v.Discarded {
		e.Findings.Discarded = append(e.Findings.Discarded, string(d.Reason))
		fmt.Fprintf(&b, "a finding does not count: %s\n", d)
	}
	if v.Asked == nil {
		e.Text = b.String()
		return []protocol.HistoryEntry{e}
	}
	digest := fmt.Sprintf("SHA-256 %s, bytes: %d", v.Asked.SHA256, len(v.Asked.Question))
	fmt.Fprintf(&b, "question: %s\n", digest)
	for _, id := range v.Asked.Calls {
		fmt.Fprintf(&b, "model call: %s\n", id)
	}
	for _, d := range v.Established {
		fmt.Fprintf(&b, "%s is established\n", d.Path)
	}
	for _, d := range v.Documents {
		fmt.Fprintf(&b, "%s:\n%s\n", d.Path, d.Text)
	}
	if len(v.Refused) > 0 {
		fmt.Fprintf(&b, "documents that do not count: %s\n", strings.Join(v.Refused, ", "))
	}
	e.Text = b.String()
	return []protocol.HistoryEntry{e, {
		Kind: protocol.HistoryReviewQuestion, Event: protocol.HistoryAsked, Task: v.Task, Name: v.Reviewer, Message: digest, Text: v.Asked.Question,
	}}
}

// asked names the request of a user or of the assessor at the beginning of a message; it is empty for the first plan, for which nobody has asked.
func asked(request string) string {
	if request == "" {
		return ""
	}
	return "request " + request + ": "
}

// gate that has run, after a task or before the delivery.
func gate(task string, r gates.Result) protocol.HistoryEntry {
	return protocol.HistoryEntry{
		Kind: protocol.HistoryGate, Event: string(r.State), Task: task, Name: r.Gate, Tree: r.Tree, Duration: r.Duration.Milliseconds(), ExitCode: r.ExitCode,
		Message: r.Say(), Text: r.Output,
	}
}
