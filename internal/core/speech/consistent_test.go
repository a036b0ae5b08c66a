// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"fmt"
	"slices"
	"testing"
)

// TestCallsThatDoNotMatch: an answer whose calls are heard in one way and would be said back in another one is not said back in its
// own words.
func TestCallsThatDoNotMatch(t *testing.T) {
	var many []string
	for i := range 257 {
		many = append(many, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":"x","arguments":"{}"}}]}}]}`, i, i))
	}
	for name, tc := range map[string]struct {
		dialect string
		events  []string
		said    bool
	}{
		"one call":              {"openai-chat", []string{many[0], "[DONE]"}, true},
		"too many calls":        {"openai-chat", append(slices.Clip(many), "[DONE]"), false},
		"calls without numbers": {"openai-chat", []string{`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}},{"id":"b","function":{"name":"y","arguments":"{}"}}]}}]}`, "[DONE]"}, false},
		"a call of another kind": {"openai-responses", []string{
			`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"f","name":"x","arguments":"{}"}}`,
			`{"type":"response.output_item.done","item":{"type":"custom_tool_call","call_id":"u","name":"x","input":"{}"}}`,
			`{"type":"response.completed","response":{"status":"completed"}}`,
		}, false},
		"a thought alone": {"anthropic", []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, `{"type":"message_stop"}`,
		}, false},
	} {
		s, _ := Find(tc.dialect)
		l := s.Listen(true)
		for _, e := range tc.events {
			l.Write([]byte("data: " + e + "\n\n"))
		}
		if a := l.Close(); (a.Message.Said != nil) != tc.said {
			t.Errorf("%s: %d calls are heard, and this is said back: %.300s", name, len(a.Message.Calls), a.Message.Said)
		}
	}
}

// TestRefuses: some servers write numbers where others write words.
func TestRefuses(t *testing.T) {
	for text, want := range map[string]bool{
		`{"error":{"type":"invalid_request_error","code":400,"message":"x"}}`: true,
		`{"error":{"type":"invalid_request_error","code":null}}`:              true,
		`{"error":{"type":"server_error","code":"invalid_prompt"}}`:           true,
		`{"response":{"error":{"code":"invalid_prompt"}}}`:                    true,
		`{"error":{"type":"overloaded_error","code":529}}`:                    false,
		`{"error":"invalid_request_error"}`:                                   false,
	} {
		if refuses([]byte(text)) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}
