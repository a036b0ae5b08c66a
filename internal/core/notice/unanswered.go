// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// CutOff is the text for an agent that may have waited for the answer to its question when the watchdog or the pod ended.
func CutOff(q protocol.Question) string {
	return fmt.Sprintf("A restart has cut off your question %s (%q). If the call of ask_user has no answer, make the same call again with the same question_id: you get the answer as soon as there is one.", q.ID, q.Text)
}

// Unanswered is the text for an agent whose pod had ended for a question that has no answer.
func Unanswered(q protocol.Question) string {
	return fmt.Sprintf("Nobody has answered your question %s (%q): continue with your best guess, and say in your summary what you assumed. The supervisor tells you an answer that comes later.", q.ID, q.Text)
}
