// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// validateKnowledge names the first field that no watchdog of ours would send.
func validateKnowledge(k protocol.KnowledgeReport) error {
	if n := len(k.LeftOut); n == 0 || n > protocol.MaxKnowledgeLeftOut {
		return fmt.Errorf("knowledge.leftOut has %d entries, not 1 to %d", n, protocol.MaxKnowledgeLeftOut)
	}
	if k.More < 0 {
		return fmt.Errorf("knowledge.more is %d, and a number of documents is not negative", k.More)
	}
	return nil
}

// KnowledgeMessage is the message of an Event about documents that agents do not get.
func KnowledgeMessage(k protocol.KnowledgeReport) string {
	documents := make([]string, len(k.LeftOut))
	for i, text := range k.LeftOut {
		documents[i] = Clean(text, protocol.MaxKnowledgeText)
	}
	message := "Agents do not get these documents: " + strings.Join(documents, "; ") + "."
	if k.More > 0 {
		message = fmt.Sprintf("Agents do not get these documents and %d more: %s.", k.More, strings.Join(documents, "; "))
	}
	return Clean(message, maxMessage)
}

// validateToReview names the first path that no watchdog of ours would send.
func validateToReview(paths []string) error {
	if n := len(paths); n > protocol.MaxKnowledgeToReview {
		return fmt.Errorf("status.knowledgeToReview has %d entries, more than %d", n, protocol.MaxKnowledgeToReview)
	}
	for i, path := range paths {
		if _, _, err := knowledge.Locate(path); err != nil || len(path) > protocol.MaxKnowledgePath {
			return fmt.Errorf("status.knowledgeToReview[%d] is not the path of a document", i)
		}
		if slices.Contains(paths[:i], path) {
			return fmt.Errorf("status.knowledgeToReview[%d] is there twice", i)
		}
	}
	return nil
}
