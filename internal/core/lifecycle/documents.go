// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "strings"

// knowledgeNeedsReview is there while documents of reviewers wait for a user.
func (s situation) knowledgeNeedsReview() []Condition {
	if s.o.Run == nil || len(s.o.Run.KnowledgeToReview) == 0 {
		return nil
	}
	return []Condition{{ConditionKnowledgeNeedsReview, True, ReasonDocumentsWritten,
		"Read these documents of reviewers in the last commit of the delivery, and merge them if they are right. Agents do not get them before: " + strings.Join(s.o.Run.KnowledgeToReview, ", ") + "."}}
}
