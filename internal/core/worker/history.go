// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import "github.com/tidewaiter/tidewaiter/internal/core/speech"

const (
	// dropped takes the place of what a tool has answered.
	dropped = "(This answer of the tool was dropped to make room in the conversation. Call the tool again if you need it.)"
	// keptResults are the last messages with results, which are not dropped: the model is at work on them.
	keptResults = 2
)

// History of a conversation.
type History struct{ messages []speech.Message }

// Add a message.
func (h *History) Add(m speech.Message) {
	if !m.Empty() {
		h.messages = append(h.messages, m)
	}
}

// Messages so far.
func (h *History) Messages() []speech.Message { return h.messages }

// Plain removes the messages in the form of the dialect, and leaves texts and calls: another provider may not accept the first one's form.
// It says whether there were any.
func (h *History) Plain() bool {
	was := h.messages
	h.messages = nil
	plain := false
	for _, m := range was {
		plain = plain || m.Said != nil
		m.Said = nil
		h.Add(m)
	}
	return plain
}

// Drop the oldest tool results until the given number of bytes is gone, and return the number of dropped bytes. Results at the end stay,
// and Drop never removes texts.
func (h *History) Drop(bytes int) int {
	last, kept := len(h.messages), 0
	for last > 0 && kept < keptResults {
		if last--; len(h.messages[last].Results) > 0 {
			kept++
		}
	}
	gone := 0
	for i := 0; i < last && gone < bytes; i++ {
		for j := range h.messages[i].Results {
			if r := &h.messages[i].Results[j]; len(r.Text) > len(dropped) {
				gone += len(r.Text) - len(dropped)
				r.Text = dropped
			}
		}
	}
	return gone
}
