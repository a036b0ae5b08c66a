// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// Settle records the agent's statement about one by a tool. It accepts statements only about directives that the agent received.
func (s *Service) Settle(w directives.Word) error {
	known := func(d protocol.DirectiveStatus) bool {
		return d.ID == w.ID && d.State != protocol.DirectivePending && d.State != protocol.DirectiveDropped
	}
	if !slices.ContainsFunc(s.Status(), known) {
		return fmt.Errorf("you have no directive %q. feature_get_context lists the open directives, and you get each with a turn of your conversation", w.ID)
	}
	s.Learn(directives.News{Words: []directives.Word{w}})
	return nil
}

// Reply is the answer to a question, for an agent that has not heard it, or also again; empty if there is none.
func (s *Service) Reply(question string, again bool) string {
	return s.Given().Reply(answerID(question), again)
}

// Waits says whether nobody has ever answered a question.
func (s *Service) Waits(question string) bool {
	return !s.journal.State().Directives.Has(answerID(question))
}

// Answered says that the agent got the answer to a question by asking for it.
func (s *Service) Answered(question string) {
	s.Learn(directives.News{Told: []string{answerID(question)}, How: "the agent has asked for it"})
}
