// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/spoken"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

const (
	// Patience is how many turns an agent has to acknowledge a rule of severity Critical: as many as a role may work without progress. After
	// them the watchdog asks it again, and after as many more it informs users (ADR 86).
	Patience = 12
	// maxAsks is how many asks a Board remembers. The agent gets more, but its silence about them has no effect.
	maxAsks = 32
	// violation begins the line by which an agent acknowledges a rule, and understood is what it says of it.
	violation, understood = "VIOLATION ", "UNDERSTOOD"
	// form of the requested line. Its placeholder names no rule: an agent that repeats it acknowledges nothing.
	form = `"VIOLATION <rule>: UNDERSTOOD - what you do instead"`
)

// Ask is a request to the agent to acknowledge a broken rule of severity Critical, without an answer so far.
type Ask struct {
	// Sequence and Checkpoint are the number and the name of the checkpoint that found it.
	Sequence   int64  `json:"sequence"`
	Checkpoint string `json:"checkpoint"`
	Rule       string `json:"rule"`
	// Turn of the Board at the last request, and Times, the number of requests.
	Turn  int64 `json:"turn"`
	Times int   `json:"times"`
}

// Understood is an agent's acknowledgment of a broken rule.
type Understood struct {
	// Rule, and the name of the Checkpoint that found it; empty for all rules that the watchdog asked about.
	Rule, Checkpoint string
	// Instead is what the agent does instead, in its own words.
	Instead string
}

// Heard finds the lines of a text in which an agent acknowledges broken rules. Lines in quotations and in blocks of code are not its own.
func Heard(text string) (list []Understood) {
	for s := range spoken.Own(text, violation) {
		if instead, is := s.Says(understood); is {
			list = append(list, Understood{Rule: s.Subject, Instead: instead})
		}
		if len(list) == maxAsks {
			break
		}
	}
	return list
}

// Critical are the rules of severity Critical among violations, which the agent is to acknowledge: as many as a Checkpoint has room for.
func Critical(list []protocol.Violation) (rules []string) {
	for _, v := range list {
		if v.Severity == policy.Critical && !slices.Contains(rules, v.Rule) && len(rules) < protocol.MaxAcknowledgments {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}

// Tick counts a turn of the agent: a request of its main thread or, if it calls no model, a result of a tool or a checkpoint.
func (b *Board) Tick() { b.Turn++ }

// Asked records that the watchdog asked the agent to acknowledge rules that a checkpoint, by its number and its name, has found broken. If
// a rule is broken again before the agent acknowledges it, the first request still counts, and the acknowledgment goes to the newest
// checkpoint.
func (b *Board) Asked(sequence int64, checkpoint string, rules []string) {
	for _, rule := range rules {
		switch i := slices.IndexFunc(b.Asks, func(a Ask) bool { return a.Rule == rule }); {
		case i >= 0:
			b.Asks[i].Sequence, b.Asks[i].Checkpoint = sequence, checkpoint
		case len(b.Asks) < maxAsks:
			b.Asks = append(b.Asks, Ask{Sequence: sequence, Checkpoint: checkpoint, Rule: rule, Turn: b.Turn, Times: 1})
		}
	}
}

// overdue are the asks that were made the given number of times, and have had no answer for too long.
func (b *Board) overdue(times int) (list []Ask) {
	for _, a := range b.Asks {
		if a.Times == times && b.Turn-a.Turn >= Patience {
			list = append(list, a)
		}
	}
	return list
}

// Silent describes the rules about which the watchdog asked the agent twice without an answer.
func (b *Board) Silent() (list []string) {
	for _, a := range b.overdue(2) {
		list = append(list, fmt.Sprintf("rule %s at checkpoint %s", a.Rule, a.Checkpoint))
	}
	return list
}

// Remind returns the rules about which the watchdog must ask the agent a second time, and records that it has asked. It returns as many
// rules as one line for an agent, or one Checkpoint, has room for. The next call returns the others.
func (b *Board) Remind() (due []Ask) {
	if due = b.overdue(1); len(due) > 0 {
		due = due[:min(len(due), protocol.MaxAcknowledgments)]
		b.Asks = slices.Clone(b.Asks)
	}
	for i, a := range b.Asks {
		if slices.Contains(due, a) {
			b.Asks[i].Turn, b.Asks[i].Times = b.Turn, 2
		}
	}
	return due
}

// Acknowledge records the agent's acknowledgments of rules that the watchdog asked about, and ignores any other. It returns the
// acknowledgments to store with the checkpoints, and the Board after them.
func (b *Board) Acknowledge(said []Understood) (list []protocol.Acknowledgment, next Board) {
	next = *b
	next.Asks, next.Words = nil, slices.Clone(b.Words)
	for _, a := range b.Asks {
		i := slices.IndexFunc(said, func(u Understood) bool {
			return (u.Rule == "" || u.Rule == a.Rule) && (u.Checkpoint == "" || u.Checkpoint == a.Checkpoint)
		})
		if i < 0 {
			next.Asks = append(next.Asks, a)
			continue
		}
		list = append(list, protocol.Acknowledgment{Checkpoint: a.Sequence, Rule: a.Rule, Text: visible(said[i].Instead)})
		for w := range next.Words {
			next.Words[w] = next.Words[w].without(a)
		}
		if next.Stands != nil {
			next.Stands = &Standing{next.Stands.without(a), next.Stands.After}
		}
	}
	return list, next
}

// without an acknowledged rule: a repeated notice does not ask for it again.
func (w Word) without(a Ask) Word {
	if w.Sequence == a.Sequence {
		w.Critical = slices.DeleteFunc(slices.Clone(w.Critical), func(rule string) bool { return rule == a.Rule })
	}
	return w
}

// visible is a reason without what cannot be seen.
func visible(text string) string {
	return spoken.Reason(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, plain.CutBytes(text, 4*maxText)))
}

// acknowledge asks for a line about each of some rules.
func acknowledge(rules []string) string {
	return fmt.Sprintf("This is critical: acknowledge it. Write one line for each rule in your next answer, outside of code blocks and quotations, in exactly this form: %s. The rules are: %s.", form, strings.Join(rules, ", "))
}

// Reminded is a line with the second request for acknowledgment.
type Reminded struct {
	Type string `json:"type"`
	// CheckpointID and Constraint of each broken rule.
	Violations []Reminder `json:"violations"`
}

// Reminder is a broken rule that is not acknowledged.
type Reminder struct {
	CheckpointID string `json:"checkpoint_id"`
	Constraint   string `json:"constraint"`
}

// Remind makes the line for rules that the agent has not acknowledged.
func Remind(due []Ask) Reminded {
	n := Reminded{Type: "violation_reminder"}
	for _, a := range due {
		n.Violations = append(n.Violations, Reminder{CheckpointID: a.Checkpoint, Constraint: a.Rule})
	}
	return n
}

// again asks an agent in words to acknowledge, for the second time.
func again(due []Ask) string {
	var rules []string
	for _, a := range due {
		if !slices.Contains(rules, a.Rule) {
			rules = append(rules, a.Rule)
		}
	}
	return steering.Tag + " You have not acknowledged rules of severity critical that you broke. " + acknowledge(rules)
}
