// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// Word is a message about an anomaly for an agent that calls no model.
type Word struct {
	// Step of steering that it belongs to. It lets an agent recognise a message that it gets twice because the watchdog restarted.
	Step    int64  `json:"step"`
	Channel string `json:"channel"`
	Anomaly string `json:"anomaly"`
	Text    string `json:"text"`
}

// take over from a step what the agent is to be told. What it has not been told of an anomaly that is over, it need not be told.
func (s *State) take(x protocol.SteeringStep) {
	switch {
	case x.Over && s.Word != nil && s.Word.Anomaly == x.Anomaly:
		s.Word = nil
	case !x.Over && (x.Channel == protocol.ChannelTools || x.Channel == protocol.ChannelInput):
		s.Word = &Word{Step: x.Sequence, Channel: x.Channel, Anomaly: x.Anomaly, Text: x.Message}
	}
}

// Line returns the text to write to the agent's standard input; false for none. Call Said after writing it.
func (s *State) Line() (Word, bool) {
	if s.Word == nil || s.Word.Channel != protocol.ChannelInput {
		return Word{}, false
	}
	return *s.Word, true
}

// Said records that the Line of a step was written, as far as possible.
func (s *State) Said(step int64) (e Effects) {
	if s.Word != nil && s.Word.Step == step {
		s.Word, e.Keep = nil, true
	}
	return e
}

// Words is the text to add to the result of a tool; "" for none. Each text comes once: messages about anomalies for any agent, and notices
// about its work for an agent that calls no model.
func (s *State) Words(f Facts) (words string, e Effects) {
	d := &decision{s: s, f: f}
	if s.Word != nil && s.Word.Channel == protocol.ChannelTools {
		words, s.Word, d.e.Keep = s.Word.Text, nil, true
	}
	if f.Reach.Lines || s.Talks() {
		return words, d.e
	}
	d.tick()
	board := d.board(0)
	if board.text != "" {
		board.told()
		d.e.Keep = true
	}
	return both(words, board.text), d.e
}

// Told says that the agent has received, by lines or in its requests, a message about an anomaly that is not over. A message that still
// waits does not count.
func (s *State) Told() bool {
	return slices.ContainsFunc(s.Anomalies.Episodes, func(e anomaly.Episode) bool {
		said := len(e.Tried)
		if slices.Contains(e.Tried, steering.Observe) {
			said--
		}
		if s.unsaid(e.Finding.Thread) != "" || s.Word != nil && s.Word.Anomaly == string(e.Finding.Kind) {
			said--
		}
		return said > 0
	})
}

// Talks says whether the agent has called a model about its task since its start.
func (s *State) Talks() bool { return len(s.Book.Threads) > 0 }
