// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// heeds are how many directives of reviewers agents of the project have addressed, as far as it is known.
func (s situation) heeds() []review.Heed {
	if s.o.Heeds != nil {
		return s.o.Heeds
	}
	return s.o.Memory.Heeds
}

// reviewersHeeded is there once a reviewer has given enough directives.
func (s situation) reviewersHeeded() []Condition {
	c := Condition{Type: ConditionReviewersHeeded, Status: True, Reason: ReasonDirectivesAddressed}
	var messages []string
	for _, h := range s.heeds() {
		if !h.Heeded() {
			c.Status, c.Reason = False, ReasonFewDirectivesAddressed
		}
		messages = append(messages, h.Words())
	}
	if len(messages) == 0 {
		return nil
	}
	c.Message = strings.Join(messages, " ")
	return []Condition{c}
}
