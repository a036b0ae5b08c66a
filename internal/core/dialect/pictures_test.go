// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestResultsThatArePictures are as different as the pictures are, though they have no words, or the same ones; where a mark of what is to be cached stands
// is no difference.
func TestResultsThatArePictures(t *testing.T) {
	for name, format := range map[string]string{
		"anthropic":        `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","data":%q}%s}]}]}`,
		"openai-chat":      `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"Done."},{"type":"image_url","image_url":{"url":%q}%s}]}`,
		"openai-responses": `{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"Done."},{"type":"input_image","image_url":%q%s}]}`,
		"gemini":           `{"role":"user","parts":[{"functionResponse":{"name":"shot","response":{"output":"Done."},"parts":[{"inlineData":{"mimeType":"image/png","data":%q%s}}]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			of := func(picture, mark string) conversation.Quote {
				t.Helper()
				results := messageIn(t, name, fmt.Sprintf(format, picture, mark)).Results
				if len(results) != 1 {
					t.Fatalf("%d results", len(results))
				}
				return results[0].Text
			}
			one, again, two := of("AAAA", ""), of("AAAA", `,"cache_control":{"type":"ephemeral"}`), of("AAAB", "")
			if one != again {
				t.Error("a mark makes another result of it")
			}
			if one.Other == two.Other || one.Other == (conversation.Digest{}) {
				t.Error("another picture is the same result")
			}
		})
	}
}

// messageIn is what an entry of a dialect's request says.
func messageIn(t *testing.T, name, entry string) conversation.Message {
	t.Helper()
	for _, d := range All() {
		if d.Name == name {
			return d.message([]byte(entry))
		}
	}
	t.Fatalf("no dialect %s", name)
	return conversation.Message{}
}
