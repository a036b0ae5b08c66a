// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
)

// knowledge checks the commit with the documents of reviewers: its parents are the delivery and, if the branch had one, an earlier such commit. It changes
// nothing but documents, and these are as the journal has them.
func (w *walk) knowledge(link string, k journal.KnowledgeCommitted) error {
	w.result.Delivery = k.Commit
	if k.Commit == k.On { // there is no such commit any more
		return nil
	}
	parents := []string{k.On}
	if k.After != "" {
		parents = append(parents, k.After)
	}
	if _, err := w.follows(link, k.Commit, k.Tree, parents...); err != nil {
		return err
	}
	w.promoted[k.Commit] = true
	changes, err := w.repository.Changes(w.state.Promoted.Tree, k.Tree)
	if err != nil {
		return damaged(link, err)
	}
	for _, c := range changes {
		if !w.written(c) {
			return broken(link, fmt.Sprintf("commit %s changes %s, and no reviewer has written that", k.Commit, judge.Escape(c.Path)))
		}
	}
	return nil
}

// written says whether a change is a document as a reviewer has written it, or the index of documents.
func (w *walk) written(c judge.Change) bool {
	if c.Path == knowledge.IndexPath {
		return c.New.Mode == judge.ModeFile
	}
	text, is := w.state.Written[c.Path]
	return is && c.New.Mode == judge.ModeFile && c.New.ID == blobOf(text)
}

// blobOf is the name that Git gives a file with a text.
func blobOf(text string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text))
	return hex.EncodeToString(sum[:])
}
