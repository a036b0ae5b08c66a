// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Understood handles acknowledgments of broken rules that come by another way than the conversation. n is the number of rules that the
// agent acknowledged.
func (s *State) Understood(f Facts, said ...notice.Understood) (n int, e Effects) {
	d := &decision{s: s, f: f}
	n = d.understood(said)
	return n, d.e
}

// Unacknowledged puts back the requests whose acknowledgments could not be stored, so that the agent must acknowledge again.
func (s *State) Unacknowledged(e Effects, lost []protocol.Acknowledgment) {
	for _, ask := range e.asked {
		is := func(a protocol.Acknowledgment) bool { return a.Checkpoint == ask.Sequence && a.Rule == ask.Rule }
		same := func(a notice.Ask) bool { return a.Rule == ask.Rule }
		if slices.ContainsFunc(lost, is) && !slices.ContainsFunc(s.Board.Asks, same) {
			s.Board.Asks = append(s.Board.Asks, ask)
		}
	}
}

// understood takes the agent's acknowledgments, and returns how many of them answer a request.
func (d *decision) understood(said []notice.Understood) int {
	if len(said) == 0 || len(d.s.Board.Asks) == 0 {
		return 0
	}
	list, next := d.s.Board.Acknowledge(said)
	if len(list) == 0 {
		return 0
	}
	for i := range list {
		list[i].Turn = d.s.Turns
	}
	d.e.asked = append(d.e.asked, d.s.Board.Asks...)
	d.e.Acknowledged = append(d.e.Acknowledged, list...)
	d.s.Board, d.e.Keep, d.e.Report = next, true, true
	return len(list)
}

// Silent describes the broken rules about which the watchdog asked the agent twice without an answer.
func (s *State) Silent() []string { return s.Board.Silent() }

// tick is a turn of the agent. Users learn of it when it has been silent for too long.
func (d *decision) tick() {
	before := len(d.s.Board.Silent())
	d.s.Board.Tick()
	d.e.Report = d.e.Report || len(d.s.Board.Silent()) != before
}

// Checked records a checkpoint of an agent that takes lines. If the agent calls no model, checkpoints are its only turns. It returns the
// acknowledgments to request again.
func (s *State) Checked(f Facts) (due []notice.Ask, e Effects) {
	d := &decision{s: s, f: f}
	if !s.Talks() {
		d.tick()
	}
	due = s.Board.Remind()
	d.e.Keep = len(due) > 0
	return due, d.e
}
