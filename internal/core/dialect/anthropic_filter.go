// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// The lists follow https://docs.claude.com/en/api/messages and the types of github.com/anthropics/anthropic-sdk-go v1.84.0, its beta ones too.

// anthropicFamily is a type without its date: web_search_20250305 is web_search.
func anthropicFamily(kind string) string {
	if head, is := strings.CutSuffix(trimDigits(kind, len("20250305")), "_"); is {
		return head
	}
	return kind
}

// anthropicURL is an address that Anthropic reads, anthropicFile what it keeps.
var (
	anthropicURL  = shape{tool: "anthropic/url", when: fetchedText}
	anthropicFile = shape{state: true}
)

// anthropicTools are what the agent's client carries out: its own tools, and tools that the API defines and the client runs. What the
// provider runs is taken out where clients offer it by themselves, and refused where it has an address.
func anthropicTools(offered bool) shape {
	tool := object(reads("type", "name", "description", "input_schema", "cache_control", "defer_loading", "strict")).with(geminiRuns()).with(map[string]shape{
		// Callers other than the model: the code that the provider runs.
		"allowed_callers": {tool: "anthropic/code_execution", out: true, when: mentions("code_execution")},
	})
	runs := func(name string) *shape {
		p := tool
		p.tool, p.out = "anthropic/"+name, offered
		return &p
	}
	return shape{offers: true, kinds: &kinds{
		what: "tool", vendor: "anthropic", family: anthropicFamily, none: &tool,
		of: map[string]*shape{
			"custom": &tool, "bash": &tool, "text_editor": &tool, "computer": &tool, "computer_toolset": &tool, "browser_toolset": &tool, "memory": &tool,
			// They look only through the tools of the request.
			"tool_search_tool_regex": &tool, "tool_search_tool_bm25": &tool,
			"web_search": runs("web_search"), "web_fetch": runs("web_fetch"), "code_execution": runs("code_execution"),
			"advisor":     runs("advisor"), // asks another model, with the whole conversation
			"mcp_toolset": {tool: "anthropic/mcp_servers"},
		},
	}}
}

// anthropicBlocks are contents of messages. What a provider's tool has answered before is a record, and asks for nothing; what such a record
// quotes is looked at all the same.
func anthropicBlocks() *kinds {
	k := &kinds{what: "content block", vendor: "anthropic", family: anthropicFamily}
	content := shape{kinds: k}
	source := &shape{}
	*source = object(reads("type", "media_type", "data")).with(map[string]shape{
		"url": anthropicURL, "file_id": anthropicFile, "content": content,
	})
	sources := shape{kinds: &kinds{what: "source", vendor: "anthropic", none: source, of: map[string]*shape{
		"base64": source, "text": source, "content": source, "url": source, "file": source,
	}}}
	plain := object(reads("type", "text", "cache_control"))
	of := func(members map[string]shape) *shape {
		p := plain.with(members)
		return &p
	}
	record := of(nil)
	*record = record.with(map[string]shape{"content": {kinds: &kinds{what: "result", none: record, vendor: "anthropic", family: func(string) string { return "" }, of: map[string]*shape{"": record}}}, "source": sources})
	definition := object(reads("type")).with(map[string]shape{"definition": anthropicTools(false)})
	addition := shape{kinds: &kinds{what: "change of tools", vendor: "anthropic", none: &definition, of: map[string]*shape{
		"tool_reference": {}, "mcp_tool_reference": {}, "mcp_toolset_reference": {}, "tool_definition": &definition,
	}}}
	change := of(map[string]shape{"tool": addition})
	k.none = of(map[string]shape{"content": content, "source": sources})
	k.of = map[string]*shape{
		"text": &plain, "thinking": &plain, "redacted_thinking": &plain, "tool_reference": &plain, "fallback": &plain, "browser_state": &plain,
		"image": of(map[string]shape{"source": sources}), "document": of(map[string]shape{"source": sources}),
		"search_result": of(map[string]shape{"content": content}),
		"tool_use":      of(reads("id", "name", "input")),
		"tool_result":   of(reads("tool_use_id", "is_error")),
		// Calls of provider's tools that were made, and what came of them.
		"server_tool_use": record, "mcp_tool_use": record, "mcp_tool_result": record, "mcp_tool_listing": record, "web_search_tool_result": record,
		"web_fetch_tool_result": record, "code_execution_tool_result": record, "bash_code_execution_tool_result": record,
		"text_editor_code_execution_tool_result": record, "tool_search_tool_result": record, "advisor_tool_result": record,
		"container_upload": {state: true},
		"compaction":       of(map[string]shape{"tool_changes": content}),
		"tool_addition":    change, "tool_removal": change,
	}
	result := k.of["tool_result"].with(map[string]shape{"content": content})
	k.of["tool_result"] = &result
	return k
}

// anthropicWall is what is known of a request.
var anthropicWall = func() *shape {
	content := shape{kinds: anthropicBlocks()}
	wall := object(reads("model", "max_tokens", "temperature", "stop_sequences", "metadata", "output_config", "output_format", "cache_control")).with(streamed).with(map[string]shape{
		"system":      content,
		"messages":    object(reads("role")).with(map[string]shape{"content": content}),
		"tools":       anthropicTools(true),
		"tool_choice": object(reads("type", "name")),
		"thinking":    object(reads("type", "budget_tokens")),
		"mcp_servers": {tool: "anthropic/mcp_servers", when: isFilled},
		// A container that is there already, or what is loaded into a new one.
		"container": shape{state: true, when: isText}.with(map[string]shape{"id": {state: true}, "skills": {tool: "anthropic/skills", when: isFilled}}),
		// A turn of a thread has nothing but its new messages. Claude Code sends all of them, and no thread any more, if the answer says so.
		"thread": {kinds: &kinds{what: "thread", vendor: "anthropic", none: &shape{state: true, code: codeNoThreads}, of: map[string]*shape{
			"create":   {state: true, out: true},
			"continue": {state: true, code: codeNoThreads},
		}}},
		"previous_message_id": {state: true},
	})
	return &wall
}()

// codeNoThreads tells Claude Code 2.1.289 and later to send the whole conversation.
const codeNoThreads = "thread_unsupported_request"
