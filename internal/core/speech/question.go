// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"encoding/json"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// Question for a model. Its answer is the arguments of one call of Tool.
type Question struct {
	// System is the system prompt, and Text the question.
	System, Text string
	Tool         Tool
	// MaxOutput bounds the answer, in tokens, in dialects that have to name it.
	MaxOutput int64
}

// First is the request that asks the question.
func (q Question) First() Request {
	return Request{System: q.System, Tools: []Tool{q.Tool}, Force: q.Tool.Name, Messages: []Message{{Text: q.Text}}, MaxOutput: q.MaxOutput}
}

// Arguments that an answer has for the question; an objection where it has none that can be read.
func (q Question) Arguments(a Answer) (arguments json.RawMessage, objection string) {
	switch calls := a.Message.Calls; {
	case a.Cut:
		return nil, "The answer is too long: give a shorter one."
	case a.Stop == conversation.StopLength:
		return nil, "The answer was cut off at the limit of its length: give a shorter one."
	case len(calls) == 0 && a.Stop == conversation.StopOther:
		return nil, fmt.Sprintf("The answer was refused or filtered, and has no call of %s.", q.Tool.Name)
	case len(calls) == 0:
		return nil, fmt.Sprintf("There is no call of %s: answer with one.", q.Tool.Name)
	case len(calls) > 1:
		return nil, fmt.Sprintf("There are %d calls: answer with one call of %s.", len(calls), q.Tool.Name)
	case calls[0].Name != q.Tool.Name:
		return nil, fmt.Sprintf("There is a call of another tool than %s.", q.Tool.Name)
	case calls[0].Broken:
		return nil, "The arguments of the call are not a JSON object, or were cut off: give a shorter answer."
	}
	return a.Message.Calls[0].Arguments, ""
}

// Again asks once more, after an answer that there is an objection to.
func (r Request) Again(a Answer, objection string) Request {
	next := Message{}
	for i := range a.Message.Calls {
		c := &a.Message.Calls[i]
		if c.ID == "" { // a result names its call
			c.ID = fmt.Sprintf("call_%d", i)
		}
		next.Results = append(next.Results, Result{ID: c.ID, Text: objection, Failed: true})
	}
	if len(next.Results) == 0 {
		next.Text = objection
	}
	messages := append([]Message(nil), r.Messages...)
	if !a.Message.Empty() {
		messages = append(messages, a.Message)
	}
	messages = append(messages, next)
	r.Messages = messages
	return r
}
