// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"maps"
	"strings"
)

// The lists follow https://ai.google.dev/api/generate-content, https://ai.google.dev/api/caching#Tool and the types of google.golang.org/genai v1.77.0.

// bothSpellings has each member in the spelling of JSON and in that of protocol buffers.
func bothSpellings(members map[string]shape) map[string]shape {
	all := make(map[string]shape, 2*len(members))
	for name, p := range members {
		var snake strings.Builder
		for _, c := range name {
			if c >= 'A' && c <= 'Z' {
				snake.WriteByte('_')
				c += 'a' - 'A'
			}
			snake.WriteRune(c)
		}
		all[name], all[snake.String()] = p, p
	}
	return all
}

// geminiTools are what is known of a tool: functions, and what the agent's client carries out itself, stay. What the provider runs is taken out
// where clients offer it by themselves, and refused where it has an address or refers to what the provider keeps.
func geminiTools() map[string]shape {
	known := geminiRuns()
	maps.Copy(known, bothSpellings(reads("functionDeclarations", "computerUse")))
	return known
}

// geminiRuns are the tools that the provider runs. Routers take them as tools of other dialects, too
// (https://docs.litellm.ai/docs/providers/gemini#google-search-tool).
func geminiRuns() map[string]shape {
	runs := func(name string) shape { return shape{tool: "google/" + name, out: true, needed: true} }
	return bothSpellings(map[string]shape{
		"googleSearch": runs("google_search"), "googleSearchRetrieval": runs("google_search_retrieval"), "enterpriseWebSearch": runs("enterprise_web_search"),
		"urlContext": runs("url_context"), "codeExecution": runs("code_execution"), "googleMaps": runs("google_maps"),
		"retrieval": {tool: "google/retrieval"}, "mcpServers": {tool: "google/mcp_servers"}, "parallelAiSearch": {tool: "google/parallel_ai_search"},
		"fileSearch": {tool: "google/file_search", state: true},
	})
}

// unknownTool says that it is unknown who runs the tool in a value. For a list it checks each element.
func unknownTool(known map[string]shape) func(value []byte) bool {
	return func(value []byte) bool {
		return value[0] != '[' && !plainMembers(value, func(name string, _ []byte) bool {
			_, is := known[name]
			return is
		})
	}
}

// unknownPart says that a value has a member that nobody knows and that is not a plain value.
func unknownPart(known map[string]shape) func(value []byte) bool {
	return func(value []byte) bool {
		return value[0] == '{' && !plainMembers(value, func(name string, value []byte) bool {
			_, is := known[name]
			return is || value[0] != '{' && value[0] != '['
		})
	}
}

// geminiWall is what is known of a request.
var geminiWall = func() *shape {
	file := shape{tool: "google/url"} // an address, or a file that the provider keeps
	blob := object(bothSpellings(reads("mimeType", "data", "displayName")))
	known := func(part shape) shape { // what it is, its members say
		part.tool, part.when = "google/unknown", unknownPart(part.members)
		return part
	}
	part := object(bothSpellings(reads("text", "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"))).with(bothSpellings(map[string]shape{
		"inlineData": blob, "fileData": file,
		"functionCall": object(reads("id", "name", "args")),
		"functionResponse": object(reads("id", "name", "response", "scheduling")).with(bothSpellings(map[string]shape{
			"willContinue": {}, "parts": known(object(bothSpellings(map[string]shape{"inlineData": blob, "fileData": file}))),
		})),
	}))
	content := object(reads("role")).with(map[string]shape{"parts": known(part)})
	otherModel := shape{never: "the platform chooses the model: leave it out"} // of Vertex AI, in place of the path
	all := geminiTools()
	tools := shape{offers: true}.with(all)
	tools.tool, tools.when = "google/unknown", unknownTool(all)
	calling := object(bothSpellings(reads("mode", "allowedFunctionNames")))
	wall := object(bothSpellings(reads("model", "safetySettings"))).with(streamed).with(bothSpellings(map[string]shape{
		"contents": content, "systemInstruction": content, "tools": tools,
		"toolConfig":             object(bothSpellings(reads("retrievalConfig", "includeServerSideToolInvocations"))).with(bothSpellings(map[string]shape{"functionCallingConfig": calling})),
		"generationConfig":       object(bothSpellings(reads("maxOutputTokens", "candidateCount"))).with(bothSpellings(map[string]shape{"routingConfig": otherModel, "modelSelectionConfig": otherModel})),
		"cachedContent":          {state: true},
		"store":                  {as: "false", when: isSet},
		"serviceTier":            {tool: "google/service_tier", out: true},
		"generateContentRequest": {never: "it hides what is counted: send contents"},
	}))
	return &wall
}()
