// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// responsesAnswer reads responses of https://platform.openai.com/docs/api-reference/responses and their stream.
type responsesAnswer struct {
	// said says that the text of the item under way has come in pieces.
	said bool
}

// use counts an item that is a use of a tool which the provider runs. Among the uses of web search, opening a page and looking into it are
// not billed as searches (https://developers.openai.com/api/docs/pricing).
func (i responsesItem) use(u *conversation.Uses) {
	switch i.Type {
	case "web_search_call":
		var action struct {
			Type string `json:"type"`
		}
		if len(i.Action) == 0 || json.Unmarshal(i.Action, &action) != nil || action.Type == "" || action.Type == "search" {
			u.Searches++
		} else {
			u.Fetches++
		}
	case "file_search_call":
		u.FileSearches++
	case "code_interpreter_call", "shell_call_output": // where a client runs the shell, its output is in a request
		u.Executions++
	case "image_generation_call":
		u.Images++
	case "mcp_call":
		u.Connectors++
	}
}

type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`
	Content   []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// acts says whether an item asks the agent for something.
func (i responsesItem) acts() bool {
	switch i.Type {
	case "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "mcp_approval_request", "tool_search_call":
		return true
	}
	return false
}

// take an item that is whole.
func (i responsesItem) take(a *conversation.Answer, said bool) {
	i.use(&a.Usage.Uses)
	switch i.Type {
	case "message":
		for _, c := range i.Content {
			if c.Type == "output_text" && !said {
				a.Say(c.Text)
			}
		}
	case "function_call":
		a.Argue(a.Call(i.CallID, i.Name), i.Arguments)
	case "custom_tool_call":
		a.Argue(a.Call(i.CallID, i.Name), i.Input)
	case "local_shell_call", "shell_call", "apply_patch_call":
		a.Argue(a.Call(i.CallID, i.Type), string(i.Action))
	default:
		a.Acts = a.Acts || i.acts()
	}
}

type response struct {
	Object     string          `json:"object"`
	Model      string          `json:"model"`
	Status     string          `json:"status"`
	Output     []responsesItem `json:"output"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   int64        `json:"input_tokens"`
		Details openaiCached `json:"input_tokens_details"`
		Output  int64        `json:"output_tokens"`
		Total   int64        `json:"total_tokens"`
	} `json:"usage"`
	// Tools counts searches once more.
	Tools lenient[responsesTallies] `json:"tool_usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type responsesTallies struct {
	Search struct {
		Requests int64 `json:"num_requests"`
	} `json:"web_search"`
}

// end of an answer; its items were taken before.
func (r response) end(a *conversation.Answer) {
	a.By(r.Model)
	if u := r.Usage; u != nil {
		count := openaiUsage(u.Input, u.Details, u.Output, u.Total)
		count.Searches = r.Tools.v.Search.Requests
		a.Count(count)
	}
	switch {
	case r.Object == compaction:
		a.Stop = conversation.StopEnd
	case r.Error != nil:
		a.Fail(r.Error.Message)
	case r.Status == "incomplete" && r.Incomplete.Reason == "max_output_tokens":
		a.Stop = conversation.StopLength
	case r.Status != "completed":
		a.Stop = conversation.StopOther
	case len(a.Tools) > 0:
		a.Stop = conversation.StopTools
	default:
		a.Stop = conversation.StopEnd
	}
	a.Ended = r.Error == nil
}

// Event implements conversation.Decoder.
func (d *responsesAnswer) Event(a *conversation.Answer, data []byte) {
	var e struct {
		Type     string          `json:"type"`
		Delta    json.RawMessage `json:"delta"`
		Item     responsesItem   `json:"item"`
		Response json.RawMessage `json:"response"`
		Message  string          `json:"message"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "response.output_text.delta":
		var text string
		if json.Unmarshal(e.Delta, &text) == nil {
			a.Say(text)
			d.said = true
		}
	case "response.output_item.added":
		a.Acts = a.Acts || e.Item.acts()
	case "response.output_item.done":
		e.Item.take(a, d.said)
		d.said = false
	case "response.created", "response.completed", "response.incomplete", "response.failed":
		var r response
		if json.Unmarshal(e.Response, &r) != nil {
			return
		}
		if a.By(r.Model); e.Type != "response.created" {
			r.end(a)
		}
	case "error":
		a.Fail(e.Message)
	}
}

// Whole implements conversation.Decoder.
func (d *responsesAnswer) Whole(a *conversation.Answer, body []byte) {
	var r response
	if json.Unmarshal(body, &r) != nil {
		return
	}
	for _, item := range r.Output {
		item.take(a, false)
	}
	if r.Object == "response" || r.Object == compaction || r.Error != nil {
		r.end(a)
	}
}

// compaction is the object that /v1/responses/compact answers. It has no status
// (https://developers.openai.com/api/reference/resources/responses/methods/compact).
const compaction = "response.compaction"

// openaiCached is how much of the input was in the cache, and was written into it: also with OpenRouter
// (https://openrouter.ai/docs/use-cases/usage-accounting). What is kept for 12 hours has a price of its own
// (https://developers.openai.com/api/docs/models/gpt-6.2-sol); the types are from github.com/openai/openai-go v3.96.0.
type openaiCached struct {
	Cached int64 `json:"cached_tokens"`
	Writes int64 `json:"cache_write_tokens"`
	Kept   struct {
		Long int64 `json:"ttl_12h_tokens"`
	} `json:"cache_write_tokens_details"`
}

// openaiUsage is a usage whose input has the cached tokens and those written into the cache in it, and whose output has the
// reasoning in it. Providers that count the reasoning separately from the output have it in the total
// (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/grok/capabilities/reasoning).
func openaiUsage(input int64, of openaiCached, output, total int64) conversation.Usage {
	input = max(input, 0)
	cached := min(max(of.Cached, 0), input)
	writes := min(max(of.Writes, 0), input-cached)
	long := min(max(of.Kept.Long, 0), writes)
	return conversation.Usage{Input: input - cached - writes, Cached: cached, Writes: writes - long, LongWrites: long, Output: max(output, total-input)}
}

// chatAnswer reads chat completions of https://platform.openai.com/docs/api-reference/chat and their stream. Of several
// choices the first one counts: agents ask for one.
type chatAnswer struct {
	// tools by their index in the stream.
	tools map[int]int
}

type chatTool struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatMessage struct {
	Content chatContent `json:"content"`
	Tools   []chatTool  `json:"tool_calls"`
	// Function is how tools were called before there were tool_calls.
	Function json.RawMessage `json:"function_call"`
	// Annotations cite what was found.
	Annotations lenient[[]kindOnly] `json:"annotations"`
}

// kindOnly is the type of an object.
type kindOnly struct {
	Type string `json:"type"`
}

// searched counts the search of an answer that cites the web, where nothing else does: OpenAI searches once for it
// (https://developers.openai.com/api/docs/guides/tools-web-search).
func (m chatMessage) searched(a *conversation.Answer) {
	for _, x := range m.Annotations.v {
		if x.Type == "url_citation" {
			a.Usage.Searches = max(a.Usage.Searches, 1)
		}
	}
}

// chatContent is a text, or a list of parts of which the text parts count.
type chatContent string

// UnmarshalJSON implements json.Unmarshaler.
func (c *chatContent) UnmarshalJSON(data []byte) error {
	var text string
	if len(data) > 0 && data[0] == '"' {
		err := json.Unmarshal(data, &text)
		*c = chatContent(text)
		return err
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(data, &parts) == nil { // anything else is none
		for _, p := range parts {
			text += p.Text
		}
	}
	*c = chatContent(text)
	return nil
}

// asks says whether the message asks the agent for something in the old way.
func (m chatMessage) asks() bool { return len(m.Function) > 0 && string(m.Function) != "null" }

type chat struct {
	Model   string `json:"model"`
	Choices []struct {
		Index   int         `json:"index"`
		Delta   chatMessage `json:"delta"`
		Message chatMessage `json:"message"`
		Finish  string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64        `json:"prompt_tokens"`
		Details    openaiCached `json:"prompt_tokens_details"`
		Hits       int64        `json:"prompt_cache_hit_tokens"` // of DeepSeek: https://api-docs.deepseek.com/api/create-chat-completion
		Completion int64        `json:"completion_tokens"`
		Total      int64        `json:"total_tokens"`
		// Server is of OpenRouter.
		Server  lenient[serverTools] `json:"server_tool_use"`
		Queries lenient[int64]       `json:"num_search_queries"` // of Perplexity: https://docs.perplexity.ai/api-reference/chat-completions-post
		Sources lenient[int64]       `json:"num_sources_used"`   // of xAI, which bills each: https://docs.x.ai/docs/guides/live-search
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func chatStop(finish string) conversation.Stop {
	switch finish {
	case "":
		return conversation.StopNone
	case "stop":
		return conversation.StopEnd
	case "tool_calls", "function_call":
		return conversation.StopTools
	case "length":
		return conversation.StopLength
	default:
		return conversation.StopOther
	}
}

// common is what chunks and whole completions have.
func (c chat) common(a *conversation.Answer) {
	if c.Model != "" {
		a.By(c.Model)
	}
	if u := c.Usage; u != nil {
		u.Details.Cached = max(u.Details.Cached, u.Hits)
		count := openaiUsage(u.Prompt, u.Details, u.Completion, u.Total)
		count.Searches = max(u.Server.v.Searches, u.Queries.v, u.Sources.v)
		a.Count(count)
	}
	if c.Error != nil {
		a.Fail(c.Error.Message)
	}
}

// call is a tool call, or a part of one.
func (d *chatAnswer) call(a *conversation.Answer, t chatTool) {
	tool, known := d.tools[t.Index]
	if !known {
		if d.tools == nil {
			d.tools = map[int]int{}
		}
		if len(d.tools) == conversation.MaxTools {
			return
		}
		tool = a.Call(t.ID, t.Function.Name)
		d.tools[t.Index] = tool
	}
	a.Argue(tool, t.Function.Arguments)
}

// Event implements conversation.Decoder.
func (d *chatAnswer) Event(a *conversation.Answer, data []byte) {
	if string(data) == "[DONE]" {
		a.Ended = true
		return
	}
	var c chat
	if json.Unmarshal(data, &c) != nil {
		return
	}
	c.common(a)
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			a.Cut = true
			continue
		}
		a.Say(string(choice.Delta.Content))
		a.Acts = a.Acts || choice.Delta.asks()
		choice.Delta.searched(a)
		for _, t := range choice.Delta.Tools {
			d.call(a, t)
		}
		if stop := chatStop(choice.Finish); stop != conversation.StopNone {
			a.Stop = stop
		}
	}
}

// Whole implements conversation.Decoder.
func (d *chatAnswer) Whole(a *conversation.Answer, body []byte) {
	var c chat
	if json.Unmarshal(body, &c) != nil {
		return
	}
	c.common(a)
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			a.Cut = true
			continue
		}
		a.Say(string(choice.Message.Content))
		a.Acts = a.Acts || choice.Message.asks()
		choice.Message.searched(a)
		for _, t := range choice.Message.Tools {
			a.Argue(a.Call(t.ID, t.Function.Name), t.Function.Arguments)
		}
		a.Stop, a.Ended = chatStop(choice.Finish), true
	}
}
