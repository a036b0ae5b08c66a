// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"encoding/json"
	"fmt"
	"slices"
)

// consistent says whether what the model said, in the words of its dialect, has the calls that were heard, in their order and no
// others: providers refuse every later request of a conversation in which a call and its result do not match. A mere thought is not a
// message either, nor is one without its signature.
func consistent(said json.RawMessage, calls []Call) bool {
	var parts []part
	if json.Unmarshal(said, &parts) != nil {
		var one part
		if json.Unmarshal(said, &one) != nil {
			return false
		}
		parts = []part{one}
	}
	var ids []string
	for _, p := range parts {
		switch {
		case p.Type == "tool_use": // Messages
			ids = append(ids, p.ID)
		case p.Type == "function_call": // Responses
			ids = append(ids, p.CallID)
		case p.Type == "thinking" && p.Signature == "":
			return false
		}
		for _, c := range p.ToolCalls { // Chat Completions
			ids = append(ids, c.ID)
		}
		numbers := map[string]int{}
		for _, g := range p.Parts { // Gemini
			if c := g.Call; c != nil && c.ID != "" {
				ids = append(ids, c.ID)
			} else if c != nil {
				ids = append(ids, fmt.Sprintf("%s#%d", c.Name, numbers[c.Name]))
				numbers[c.Name]++
			}
		}
	}
	return slices.EqualFunc(ids, calls, func(id string, c Call) bool { return id == c.ID })
}

// part of what a model said: a block of Messages, an item of Responses, a message of Chat Completions, or a content of Gemini.
type part struct {
	Type, ID, Signature string
	CallID              string                `json:"call_id"`
	ToolCalls           []struct{ ID string } `json:"tool_calls"`
	Parts               []struct {
		Call *struct{ ID, Name string } `json:"functionCall"`
	} `json:"parts"`
}
