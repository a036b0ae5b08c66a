// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// The lists follow https://platform.openai.com/docs/api-reference and the types of github.com/openai/openai-go v3.96.0. Servers that speak these
// dialects have members of their own; members that reach further are here, too.

// openaiFamily is a type without what tells its versions apart: web_search_preview_2025_03_11 is web_search.
func openaiFamily(kind string) string {
	if head, is := strings.CutSuffix(kind, "_2025_03_11"); is {
		kind = head
	} else if head, is := strings.CutSuffix(kind, "_2025_08_26"); is {
		kind = head
	}
	return strings.TrimSuffix(kind, "_preview")
}

// openaiURL is an address that the provider reads, openaiData data that may be one.
var (
	openaiURL  = shape{tool: "openai/url", when: fetchedText}
	openaiData = shape{tool: "openai/url", when: fetchedData}
	// openaiLink is an address, or an object that has one.
	openaiLink = shape{tool: "openai/url", when: fetched}.with(map[string]shape{"url": openaiURL, "data": openaiData, "file_id": {state: true}, "detail": {}})
)

// openaiContent is what a message has in it. Each kind has the members of all: servers differ in which they read.
func openaiContent() shape {
	every := object(reads("type", "text", "refusal")).with(map[string]shape{
		"image_url": openaiLink, "video_url": openaiLink, "audio_url": openaiLink, "image": openaiLink, "video": openaiLink, "audio": openaiLink, "source": openaiLink,
		"url": openaiURL, "file_url": openaiURL, "file_id": {state: true}, "file_data": openaiData,
		"file":        object(map[string]shape{"file_id": {state: true}, "file_data": openaiData, "file_url": openaiURL, "url": openaiURL, "filename": {}}),
		"input_audio": object(map[string]shape{"data": openaiData, "url": openaiURL, "file_id": {state: true}, "format": {}}),
	})
	k := &kinds{what: "content part", vendor: "openai", none: &every, of: map[string]*shape{}}
	for _, kind := range []string{
		"text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "thinking", "reasoning", "encrypted_content",
		"image_url", "input_image", "image", "input_audio", "audio_url", "file", "input_file", "video_url", "video", "computer_screenshot",
	} {
		k.of[kind] = &every
	}
	return shape{kinds: k}
}

// tool is what somebody reads of a tool, in both dialects.
func openaiTool() shape {
	return object(reads("type", "name", "description", "parameters", "strict", "format", "function", "custom", "defer_loading")).with(geminiRuns()).with(map[string]shape{
		"function": object(reads("name", "description", "parameters", "strict")),
		"custom":   object(reads("name", "description", "format")),
		// Callers other than the model: the code that the provider runs.
		"allowed_callers": {tool: "openai/programmatic_tool_calling", out: true, when: mentions("programmatic")},
	})
}

// responsesTools are what the agent's client carries out. What the provider runs is taken out where clients offer it by themselves, and refused
// where it has an address or refers to what the provider keeps.
func responsesTools() shape {
	tool := openaiTool()
	runs := func(name string, members map[string]shape) *shape {
		p := tool.with(members)
		p.tool, p.out = "openai/"+name, true
		return &p
	}
	container := map[string]shape{"container_id": {state: true}, "file_ids": {state: true, when: isFilled}, "skills": {tool: "openai/skills", when: isFilled}, "network_policy": {}, "type": {}}
	shell := tool.with(map[string]shape{"environment": object(container)})
	shell.tool, shell.out = "openai/shell", true
	shell.when = func(tool []byte) bool {
		environment, has := valueOf(tool, 0, "environment")
		if !has || environment[0] != '{' {
			return true // what the provider does then is its own decision
		}
		kind, _ := textMember(environment, "type")
		return kind != "local"
	}
	k := &kinds{what: "tool", vendor: "openai", family: openaiFamily, none: &tool}
	nested := tool.with(map[string]shape{"tools": {kinds: k, offers: true, needed: true}})
	k.of = map[string]*shape{
		"function": &tool, "custom": &tool, "local_shell": &tool, "apply_patch": &tool, "computer": &tool, "computer_use": &tool,
		"tool_search": &tool, // looks only through the tools of the request
		"namespace":   &nested,
		"shell":       &shell,
		"web_search":  runs("web_search", nil), "image_generation": runs("image_generation", map[string]shape{"input_image_mask": openaiLink.with(map[string]shape{"image_url": openaiURL})}),
		"code_interpreter":          runs("code_interpreter", map[string]shape{"container": shape{state: true, when: isText}.with(container)}),
		"programmatic_tool_calling": runs("programmatic_tool_calling", nil),
		"mcp":                       {tool: "openai/mcp"},
		"file_search":               {tool: "openai/file_search", state: true},
	}
	return shape{kinds: k, offers: true}
}

// choice of a tool is taken out with the tool that it names.
func responsesChoice() shape {
	tools := responsesTools()
	k := *tools.kinds
	k.of = make(map[string]*shape, len(tools.kinds.of))
	for name, p := range tools.kinds.of {
		c := object(reads("type", "name", "mode", "server_label"))
		c.tool, c.out, c.state = p.tool, true, p.state
		if p.tool == "" {
			c.out = false
		}
		if name == "shell" { // whose it is says the tool
			c = object(reads("type", "name"))
		}
		k.of[name] = &c
	}
	one := shape{kinds: &k, needed: true}
	allowed := object(reads("type", "mode")).with(map[string]shape{"tools": one})
	k.of["allowed_tools"] = &allowed
	return shape{kinds: &k}
}

// responsesItems are what a conversation has in it. Calls of the provider's tools that were made are records, and ask for nothing.
func responsesItems() shape {
	content := openaiContent()
	base := object(reads("type", "id", "call_id", "name", "arguments", "input", "status", "action"))
	of := func(members map[string]shape) *shape {
		p := base.with(members)
		return &p
	}
	message := of(map[string]shape{"role": {}, "content": content})
	answer := of(map[string]shape{"output": content})
	offers := responsesTools()
	offers.stays = true
	reference := func(p *shape, unless ...string) *shape {
		c := *p
		c.state, c.when = true, lacks(unless...)
		return &c
	}
	reasoning := reference(message, "encrypted_content", "content")
	reasoning.when = func(item []byte) bool { return !lacks("id")(item) && lacks("encrypted_content", "content")(item) }
	k := &kinds{
		what: "item", vendor: "openai",
		// One with a role is a message; one with nothing but an ID refers to what is kept.
		none: reference(message, "role"),
		of: map[string]*shape{
			"message": message, "agent_message": message, "reasoning": reasoning, "item_reference": {state: true},
			"function_call": of(nil), "custom_tool_call": of(nil), "local_shell_call": of(nil), "apply_patch_call": of(nil), "computer_call": of(nil),
			"tool_search_call": of(nil), "program": of(nil), "program_output": of(nil),
			"shell_call":           of(map[string]shape{"environment": object(map[string]shape{"container_id": {state: true}, "type": {}})}),
			"function_call_output": answer, "custom_tool_call_output": answer, "local_shell_call_output": answer, "shell_call_output": answer,
			"apply_patch_call_output": answer, "computer_call_output": answer,
			"compaction": of(nil), "compaction_summary": of(nil), "context_compaction": of(nil), "compaction_trigger": of(nil), "configuration_update": of(nil),
			"tool_search_output": of(map[string]shape{"tools": offers}), "additional_tools": of(map[string]shape{"tools": offers}),
			// What the provider's tools have done.
			"web_search_call": of(nil), "file_search_call": of(nil), "code_interpreter_call": of(nil), "mcp_list_tools": of(nil), "mcp_call": of(nil), "mcp_approval_request": of(nil),
			"image_generation_call": reference(of(nil), "result"),
			"mcp_approval_response": {tool: "openai/mcp"}, // has the provider make the call
		},
	}
	return shape{kinds: k}
}

// openaiWall are the members that both dialects have.
func openaiWall() shape {
	return object(reads("model", "temperature", "metadata", "include")).with(streamed).with(map[string]shape{
		"previous_response_id": {state: true}, "conversation": {state: true}, "background": {state: true, when: isSet}, "prompt": {state: true}, "cached_content": {state: true},
		// Searches of other providers: of xAI (https://docs.x.ai/docs/guides/live-search), of Alibaba Cloud's Model Studio.
		"search_parameters": {tool: "xai/search", out: true}, "enable_search": {tool: "dashscope/search", out: true, when: isSet},
		"plugins":             {tool: "openrouter/plugins", when: isFilled}, // https://openrouter.ai/docs/features/web-search
		"data_sources":        {tool: "azure/data_sources", when: isFilled}, // addresses of Azure OpenAI On Your Data
		"mcp_servers":         {tool: "openai/mcp", when: isFilled},
		"parallel_tool_calls": {},
		streamOptions:         object(reads(includeUsage, "include_obfuscation")),
	})
}

// responsesWall is what is known of a request of the Responses API.
var responsesWall = func() *shape {
	wall := openaiWall().with(map[string]shape{
		"store": {as: "false", when: isAny}, "instructions": {}, "input": responsesItems(), "tools": responsesTools(), "tool_choice": responsesChoice(),
		"text": {}, "reasoning": {}, "max_output_tokens": {}, "context_management": {},
	})
	return &wall
}()

func isAny([]byte) bool { return true }

// chatWall is what is known of a request of Chat Completions.
var chatWall = func() *shape {
	content, tool := openaiContent(), openaiTool()
	const tools = "its use is deprecated, and hides what the model may call: use tools"
	call := object(reads("type", "id")).with(map[string]shape{"function": object(reads("name", "arguments")), "custom": object(reads("name", "input"))})
	message := object(reads("name", "tool_call_id", "refusal")).with(map[string]shape{
		"role":          {never: tools, when: func(value []byte) bool { role, _ := text(value); return role == "function" }},
		"content":       content,
		"images":        content,
		"tool_calls":    call,
		"function_call": {never: tools},
		"audio":         object(map[string]shape{"id": {state: true}}),
	})
	wall := openaiWall().with(map[string]shape{
		"messages":           message,
		"tools":              {offers: true, kinds: &kinds{what: "tool", vendor: "openai", family: openaiFamily, none: &tool, of: map[string]*shape{"function": &tool, "custom": &tool}}},
		"tool_choice":        object(reads("type", "function", "name")),
		"functions":          {never: tools},
		"function_call":      {never: tools},
		"store":              {as: "false", when: isSet},
		"web_search_options": {tool: "openai/web_search", out: true},
		"prediction":         object(reads("type")).with(map[string]shape{"content": content}),
		"max_tokens":         {}, "max_completion_tokens": {}, "response_format": {}, "n": {},
	})
	return &wall
}()
