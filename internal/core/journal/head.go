// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import "fmt"

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
	}
	s.Knowledge = &k
	return nil
}
