// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Unanswered is the text for an agent whose pod had ended for a question that has no answer.
func Unanswered(q protocol.Question) string {
	return fmt.Sprintf("Nobody has answered your question %s (%q): continue with your best guess, and say in your summary what you assumed. The supervisor tells you an answer that comes later.", q.ID, q.Text)
}
