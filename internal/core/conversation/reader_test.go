// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// heedless is a decoder that reads nothing.
type heedless struct{}

func (heedless) Event(*conversation.Answer, []byte) {}
func (heedless) Whole(*conversation.Answer, []byte) {}

// TestSays: what only keeps the connection open says nothing of an answer. Whoever asks hears of each part once.
func TestSays(t *testing.T) {
	for part, want := range map[string]struct{ streamed, whole bool }{
		": OPENROUTER PROCESSING\n\n":                                {false, true},
		"event: ping\ndata: {\"type\": \"ping\"}\n\n":                {false, true},
		"data: {\"type\":\"keepalive\",\"sequence_number\":466}\n\n": {false, true},
		"data: \n\n": {false, true},
		"\r\n \n":    {false, false},
		"data: {\"type\":\"content_block_delta\",\"delta\":\"ping\"}\n\n":                        {true, true},
		"data: {\"choices\":[{\"delta\":{\"content\":\"\\\"ping\\\"\"}}]}\n\n":                   {true, true},
		"data: {\"type\":\"ping\",\"x\":\"" + strings.Repeat("x", 300) + "\"}\n\n":               {true, true},
		"data: {\"type\":\"response.output_text.del":                                             {false, true},
		"data: {\"type\":\"response.output_text.delta\",\"delta\":\"" + strings.Repeat("x", 300): {true, true},
	} {
		for streamed, want := range map[bool]bool{true: want.streamed, false: want.whole} {
			r := conversation.NewReader(heedless{}, streamed)
			r.Write([]byte(part))
			if got, again := r.Says(), r.Says(); got != want || again {
				t.Errorf("%q, streamed %t: says something %t and then %t, want %t", part, streamed, got, again, want)
			}
		}
	}
}
