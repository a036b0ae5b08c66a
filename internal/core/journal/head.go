// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
)

// Head is what is delivered: the promoted commit, or the commit with the documents of reviewers that follows it.
func (s State) Head() Promoted {
	if k := s.Knowledge; k != nil && k.On == s.Promoted.Commit {
		return Promoted{Commit: k.Commit, Tree: k.Tree}
	}
	return s.Promoted
}

// knowledge takes the commit with the documents of reviewers.
func (s *State) knowledge(k KnowledgeCommitted) error {
	switch {
	case s.Base == nil || s.Pending != nil:
		return fmt.Errorf("knowledge committed on %q before there is a delivery, or while a checkpoint is not done", k.On)
	case k.On != s.Promoted.Commit:
		return fmt.Errorf("knowledge committed on %q, and the delivery ends with %q", k.On, s.Promoted.Commit)
	case k.Commit == "" || k.Tree == "":
		return fmt.Errorf("knowledge committed on %q without a commit", k.On)
	case k.Commit == k.On && k.Tree != s.Promoted.Tree:
		return fmt.Errorf("knowledge committed as %q with the tree %s, and that commit has %s", k.On, k.Tree, s.Promoted.Tree)
	case k.After != "" && !s.learned(k.After):
		return fmt.Errorf("knowledge committed after %q, which is not a commit with documents on this history", k.After)
	}
	s.Knowledge = &k
	if k.Commit != k.On && !s.learned(k.Commit) {
		s.Learned = append(slices.Clip(s.Learned), k)
	}
	return nil
}

func (s State) learned(commit string) bool {
	return slices.ContainsFunc(s.Learned, func(k KnowledgeCommitted) bool { return k.Commit == commit })
}

// alike says whether two commits are of the same work with the same documents.
func (k KnowledgeCommitted) alike(other KnowledgeCommitted) bool {
	return k.On == other.On && k.Tree == other.Tree
}

// MayBeBehind says whether the server may have taken a commit with documents that the next one, of which On and Tree count, does not follow by itself.
func (s State) MayBeBehind(next KnowledgeCommitted) bool {
	return slices.ContainsFunc(s.Learned, func(k KnowledgeCommitted) bool { return !k.alike(next) || k.After != "" })
}

// After is which commit with documents the next one follows in addition to the promoted commit, if the branch on the server is at the commit there. It is
// empty if the branch is at none of these commits. The same work, documents and branch give the same answer, before the push and after it.
func (s State) After(next KnowledgeCommitted, there string) string {
	for _, k := range s.Learned {
		if k.alike(next) && k.Commit == there { // what it would be
			return k.After
		}
	}
	if s.learned(there) {
		return there
	}
	return ""
}
