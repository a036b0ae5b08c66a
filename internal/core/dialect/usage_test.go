// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestUsage reads what providers count into kinds of tokens, each token once.
func TestUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		dialect  string
		streamed bool
		body     string
		want     conversation.Usage
	}{
		// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
		"Anthropic, writes of 5 minutes and an hour": {"anthropic", false,
			`{"type":"message","usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":20},"output_tokens":7}}`,
			conversation.Usage{Input: 10, Cached: 100, Writes: 30, LongWrites: 20, Output: 7}},
		"Anthropic, writes without their lifetime": {"anthropic", false, `{"type":"message","usage":{"input_tokens":10,"cache_creation_input_tokens":50,"output_tokens":7}}`,
			conversation.Usage{Input: 10, Writes: 50, Output: 7}},
		// The last event repeats the sums alone.
		"Anthropic, streamed": {"anthropic", true, events(
			`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":20},"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"cache_creation_input_tokens":50,"output_tokens":7,"output_tokens_details":{"thinking_tokens":5}}}`,
			`{"type":"message_stop"}`,
		), conversation.Usage{Input: 10, Writes: 30, LongWrites: 20, Output: 7}},
		// https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool
		"Anthropic, searches": {"anthropic", false, `{"type":"message","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}],"usage":{"input_tokens":10,"output_tokens":7,"server_tool_use":{"web_search_requests":3,"web_fetch_requests":2}}}`,
			conversation.Usage{Input: 10, Output: 7, Uses: conversation.Uses{Searches: 3, Fetches: 2}}},
		"Anthropic, searches that are not counted": {"anthropic", true, events(
			`{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"t","name":"web_fetch","input":{}}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"u","name":"bash_code_execution","input":{}}}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"mcp_tool_use","id":"v","name":"x","input":{}}}`,
			`{"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"w","name":"tool_search_tool_regex","input":{}}}`,
		), conversation.Usage{Input: 10, Output: 1, Uses: conversation.Uses{Searches: 1, Fetches: 1, Executions: 1, Connectors: 1}}},
		// https://developers.openai.com/api/reference/resources/responses: reasoning is a part of output_tokens.
		"Responses, reasoning": {"openai-responses", false,
			`{"object":"response","status":"completed","usage":{"input_tokens":110,"input_tokens_details":{"cached_tokens":70,"cache_write_tokens":30},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":119}}`,
			conversation.Usage{Input: 10, Cached: 70, Writes: 30, Output: 9}},
		// https://developers.openai.com/api/docs/models/gpt-6.2-sol: "A 12-hour cache write costs $5 per million tokens", and one of 30 minutes $2.50.
		"Responses, writes of 30 minutes and 12 hours": {"openai-responses", false,
			`{"object":"response","status":"completed","usage":{"input_tokens":110,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":40,"cache_write_tokens_details":{"ttl_30m_tokens":15,"ttl_12h_tokens":25}},"output_tokens":9,"total_tokens":119}}`,
			conversation.Usage{Input: 10, Cached: 60, Writes: 15, LongWrites: 25, Output: 9}},
		"Chat, writes of 12 hours": {"openai-chat", false,
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":110,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":40,"cache_write_tokens_details":{"ttl_12h_tokens":99}},"completion_tokens":9,"total_tokens":119}}`,
			conversation.Usage{Input: 10, Cached: 60, LongWrites: 40, Output: 9}},
		"Responses, compaction": {"openai-responses", false,
			`{"id":"c","object":"response.compaction","created_at":1,"output":[{"type":"compaction","encrypted_content":"x"}],"usage":{"input_tokens":110,"input_tokens_details":{"cached_tokens":70},"output_tokens":9,"total_tokens":119}}`,
			conversation.Usage{Input: 40, Cached: 70, Output: 9}},
		// https://developers.openai.com/api/docs/pricing: calls of tools that are billed for each use. Opening a page is none.
		"Responses, searches": {"openai-responses", true, events(
			`{"type":"response.output_item.done","item":{"type":"web_search_call","id":"a","status":"completed","action":{"type":"search","query":"x"}}}`,
			`{"type":"response.output_item.done","item":{"type":"web_search_call","id":"b","status":"completed","action":{"type":"open_page"}}}`,
			`{"type":"response.output_item.done","item":{"type":"file_search_call","id":"c","status":"completed"}}`,
			`{"type":"response.output_item.done","item":{"type":"code_interpreter_call","id":"d","status":"completed"}}`,
			`{"type":"response.output_item.done","item":{"type":"image_generation_call","id":"e","status":"completed"}}`,
			`{"type":"response.output_item.done","item":{"type":"mcp_call","id":"f","status":"completed"}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"web_search_call","action":{"type":"search"}}],"usage":{"input_tokens":1,"output_tokens":2}}}`,
		), conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 1, Fetches: 1, FileSearches: 1, Executions: 1, Images: 1, Connectors: 1}}},
		"Responses, a search of the whole answer": {"openai-responses", false, `{"object":"response","status":"completed","output":[{"type":"web_search_call"}],"usage":{"input_tokens":1,"output_tokens":2}}`,
			conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 1}}},
		"Responses, searches that are counted": {"openai-responses", false, `{"object":"response","status":"completed","output":[{"type":"web_search_call"}],"tool_usage":{"image_gen":{"input_tokens":1},"web_search":{"num_requests":3}},"usage":{"input_tokens":1,"output_tokens":2}}`,
			conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 3}}},
		"Responses, counted in another form": {"openai-responses", false, `{"object":"response","status":"completed","output":[{"type":"web_search_call"}],"tool_usage":[],"usage":{"input_tokens":1,"output_tokens":2}}`,
			conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 1}}},
		// https://docs.claude.com/en/docs/build-with-claude/compaction: tokens of other iterations are not in the sums.
		"Anthropic, compaction and advice": {"anthropic", false, `{"type":"message","usage":{"input_tokens":10,"output_tokens":7,"iterations":[` +
			`{"type":"compaction","input_tokens":1000,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":20},"cache_read_input_tokens":5,"output_tokens":100},{"type":"message","input_tokens":10,"output_tokens":7},{"type":"advisor_message","model":"x","input_tokens":200,"output_tokens":40}]}}`,
			conversation.Usage{Input: 1210, Cached: 5, Writes: 10, LongWrites: 20, Output: 147}},
		// https://ai.google.dev/gemini-api/docs/google-search, /url-context and /code-execution
		"Gemini, tools": {"gemini", true, events(
			`{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}]},"groundingMetadata":{"webSearchQueries":["a"]}}],"usageMetadata":{"promptTokenCount":1}}`,
			`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"u"}},{"retrievedContext":{"uri":"u"}}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"u"},{"retrievedUrl":"v"}]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`,
		), conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 2, FileSearches: 1, Fetches: 2, Executions: 1}}},
		"Gemini, in another form": {"gemini", false, `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":{}},"urlContextMetadata":7}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`,
			conversation.Usage{Input: 1, Output: 2}},
		// https://openrouter.ai/docs/use-cases/usage-accounting, https://docs.x.ai/docs/guides/live-search
		"Chat, searches": {"openai-chat", false, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"server_tool_use":{"web_search_requests":2}}}`,
			conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 2}}},
		"Chat, sources": {"openai-chat", false, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"num_sources_used":5,"server_tool_use":null}}`,
			conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 5}}},
		"Chat, citations": {"openai-chat", true, events(
			`{"choices":[{"delta":{"content":"x","annotations":[{"type":"url_citation"}]}}]}`, `{"choices":[{"delta":{"annotations":[{"type":"url_citation"},{"type":"url_citation"}]},"finish_reason":"stop"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		), conversation.Usage{Input: 1, Output: 2, Uses: conversation.Uses{Searches: 1}}},
		// https://openrouter.ai/docs/use-cases/usage-accounting: the cost is the provider's word, which is not taken.
		"Chat, OpenRouter": {"openai-chat", false,
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":194,"prompt_tokens_details":{"cached_tokens":50,"cache_write_tokens":100},"completion_tokens":20,"completion_tokens_details":{"reasoning_tokens":15},"total_tokens":214,"cost":0.95}}`,
			conversation.Usage{Input: 44, Cached: 50, Writes: 100, Output: 20}},
		// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/grok/capabilities/reasoning: apart from completion_tokens.
		"Chat, reasoning beside the completion": {"openai-chat", false,
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":60},"total_tokens":95}}`,
			conversation.Usage{Input: 30, Output: 65}},
		// https://api-docs.deepseek.com/api/create-chat-completion
		"Chat, DeepSeek": {"openai-chat", false,
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"prompt_cache_hit_tokens":20,"prompt_cache_miss_tokens":10,"completion_tokens":5,"total_tokens":35}}`,
			conversation.Usage{Input: 10, Cached: 20, Output: 5}},
		"Chat, more cached than there is": {"openai-chat", false,
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"prompt_tokens_details":{"cached_tokens":90,"cache_write_tokens":-5},"completion_tokens":5}}`,
			conversation.Usage{Cached: 30, Output: 5}},
	} {
		got := read(reading{dialect: tc.dialect, streamed: tc.streamed, body: tc.body}, 1<<20)
		if diff := cmp.Diff(tc.want, got.Usage); diff != "" || !got.Counted {
			t.Errorf("%s: counted %v (-want +got):\n%s", name, got.Counted, diff)
		}
	}
}

// TestACompactionIsWhole: the answer of /v1/responses/compact has no status, and is one that has ended.
func TestACompactionIsWhole(t *testing.T) {
	got := read(reading{dialect: "openai-responses", body: `{"object":"response.compaction","output":[],"usage":{"input_tokens":1,"output_tokens":2}}`}, 1<<20)
	if !got.Ended || got.Stop != conversation.StopEnd {
		t.Errorf("%+v", got)
	}
}
