// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import "encoding/json"

// Message of a conversation: one of the model, or one to it.
type Message struct {
	// Model says that the message is the model's.
	Model bool
	Text  string
	// Calls are the model's tool calls.
	Calls []Call
	// Results of the calls of the message before, in their order.
	Results []Result
	// Said is the model's message in the form of its dialect; nil if that is unknown, or cannot be sent again.
	Said json.RawMessage
}

// Call of a tool.
type Call struct {
	ID, Name string
	// Arguments are a JSON object.
	Arguments json.RawMessage
	// Broken says that the model wrote an invalid call: it was cut, or is wrong.
	Broken bool
}

// Result of a call.
type Result struct {
	ID, Text string
	// Failed says that Text is an error.
	Failed bool
}

// Empty says that the model has said nothing at all: no dialect takes such a message back.
func (m Message) Empty() bool { return m.Model && m.Text == "" && len(m.Calls) == 0 && m.Said == nil }
