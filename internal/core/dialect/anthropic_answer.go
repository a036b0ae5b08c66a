// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// anthropicAnswer reads messages of https://docs.claude.com/en/api/messages and its stream
// (https://docs.claude.com/en/docs/build-with-claude/streaming).
type anthropicAnswer struct {
	// tools by the index of their block.
	tools map[int]int
	// uses of the provider's tools that have begun.
	uses conversation.Uses
}

// anthropicUsage counts what was written into the cache apart by how long it is kept there
// (https://docs.claude.com/en/docs/build-with-claude/prompt-caching). Thinking is a part of the output.
type anthropicUsage struct {
	anthropicTokens

	Server lenient[serverTools] `json:"server_tool_use"`
	// Iterations of the model. What compacts the conversation, and another model that gives advice, are billed and are not in the sums
	// (https://docs.claude.com/en/docs/build-with-claude/compaction).
	Iterations lenient[[]anthropicIteration] `json:"iterations"`
}

// serverTools counts what the provider's tools have done.
type serverTools struct {
	Searches int64 `json:"web_search_requests"`
	Fetches  int64 `json:"web_fetch_requests"`
}

type anthropicIteration struct {
	anthropicTokens

	Type string `json:"type"`
}

type anthropicTokens struct {
	Input    int64 `json:"input_tokens"`
	Writes   int64 `json:"cache_creation_input_tokens"`
	Creation struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Reads  int64 `json:"cache_read_input_tokens"`
	Output int64 `json:"output_tokens"`
}

func (u *anthropicUsage) count(a *conversation.Answer) {
	if u == nil {
		return
	}
	hour := u.Creation.Hour
	if hour <= 0 { // the last event of a stream may repeat only the sum
		hour = a.Usage.LongWrites
	}
	sum := conversation.Usage{
		Input: u.Input, Writes: u.Writes - hour, LongWrites: hour, Cached: u.Reads, Output: u.Output,
		Uses: conversation.Uses{Searches: u.Server.v.Searches, Fetches: u.Server.v.Fetches},
	}
	for _, i := range u.Iterations.v {
		if i.Type == "compaction" || i.Type == "advisor_message" {
			kept := min(max(i.Creation.Hour, 0), max(i.Writes, 0))
			sum.Input, sum.Output, sum.Cached = sum.Input+max(i.Input, 0), sum.Output+max(i.Output, 0), sum.Cached+max(i.Reads, 0)
			sum.Writes, sum.LongWrites = sum.Writes+max(i.Writes, 0)-kept, sum.LongWrites+kept
		}
	}
	a.Count(sum)
}

type anthropicBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// anthropicPause is the reason of an answer that continues when it is sent back.
const anthropicPause = "pause_turn"

func anthropicStop(reason string) conversation.Stop {
	switch reason {
	case "":
		return conversation.StopNone
	case "end_turn", "stop_sequence":
		return conversation.StopEnd
	case "tool_use", anthropicPause:
		return conversation.StopTools
	case "max_tokens", "model_context_window_exceeded":
		return conversation.StopLength
	default:
		return conversation.StopOther
	}
}

// Event implements conversation.Decoder.
func (d *anthropicAnswer) Event(a *conversation.Answer, data []byte) {
	var e struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Model string          `json:"model"`
			Usage *anthropicUsage `json:"usage"`
		} `json:"message"`
		Block anthropicBlock `json:"content_block"`
		Delta struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Partial string `json:"partial_json"`
			Stop    string `json:"stop_reason"`
		} `json:"delta"`
		Usage *anthropicUsage `json:"usage"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "message_start":
		a.By(e.Message.Model)
		e.Message.Usage.count(a)
	case "content_block_start":
		d.begin(a, e.Index, e.Block)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			a.Say(e.Delta.Text)
		case "input_json_delta":
			if tool, is := d.tools[e.Index]; is {
				a.Argue(tool, e.Delta.Partial)
			}
		}
	case "message_delta":
		a.Stop = anthropicStop(e.Delta.Stop)
		a.Acts = a.Acts || e.Delta.Stop == anthropicPause
		e.Usage.count(a)
	case "message_stop":
		a.Ended = true
	case "error":
		a.Fail(e.Error.Message)
	}
}

// begin a block. Tools that the provider runs itself are not the agent's.
func (d *anthropicAnswer) begin(a *conversation.Answer, index int, b anthropicBlock) {
	switch b.Type {
	case "text":
		a.Say(b.Text)
	case "tool_use":
		if d.tools == nil {
			d.tools = map[int]int{}
		}
		if len(d.tools) < conversation.MaxTools {
			d.tools[index] = a.Call(b.ID, b.Name)
		}
	default:
		d.served(a, b)
	}
}

// served counts a use of a tool that the provider runs itself: it counts few of them, and may break off before it has.
func (d *anthropicAnswer) served(a *conversation.Answer, b anthropicBlock) {
	u, has := &d.uses, &a.Usage.Uses
	switch {
	case b.Type == "mcp_tool_use":
		u.Connectors++
		has.Connectors = max(has.Connectors, u.Connectors)
	case b.Type != "server_tool_use":
	case b.Name == "web_search":
		u.Searches++
		has.Searches = max(has.Searches, u.Searches)
	case b.Name == "web_fetch":
		u.Fetches++
		has.Fetches = max(has.Fetches, u.Fetches)
	case strings.HasSuffix(b.Name, "code_execution"): // of bash, and of an editor, too
		u.Executions++
		has.Executions = max(has.Executions, u.Executions)
	}
}

// Whole implements conversation.Decoder.
func (d *anthropicAnswer) Whole(a *conversation.Answer, body []byte) {
	var m struct {
		Type    string           `json:"type"`
		Model   string           `json:"model"`
		Content []anthropicBlock `json:"content"`
		Stop    string           `json:"stop_reason"`
		Usage   *anthropicUsage  `json:"usage"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &m) != nil {
		return
	}
	a.By(m.Model)
	a.Fail(m.Error.Message)
	a.Stop = anthropicStop(m.Stop)
	a.Acts = m.Stop == anthropicPause
	m.Usage.count(a)
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			a.Say(b.Text)
		case "tool_use":
			a.Argue(a.Call(b.ID, b.Name), string(b.Input))
		default:
			d.served(a, b)
		}
	}
	a.Ended = m.Type == "message"
}
