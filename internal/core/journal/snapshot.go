// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Snapshot is the state after the records before it, so that a reader can start here. It names the last of them like any other record:
// together they form one chain, in which a reader can check the snapshot.
type Snapshot struct {
	// Segments is how many files hold the records before it.
	Segments int `json:"segments"`
	// State after them.
	State State `json:"state"`
}

// Segments is how many segments come before a journal, as its first line says; 0 for a journal without segments, or an empty one.
func Segments(data []byte) int {
	first, _, whole := bytes.Cut(data, []byte{'\n'})
	if !whole {
		return 0
	}
	var r Record
	if json.Unmarshal(first, &r) != nil || r.Snapshot == nil {
		return 0 // what is wrong with it, Decode says
	}
	return r.Snapshot.Segments
}

var errSnapshot = errors.New("the snapshot is not what the records before it add up to")

// snapshot begins a journal whose earlier records are elsewhere, or confirms what they add up to.
func (s *State) snapshot(n Snapshot) error {
	if n.Segments < 1 || n.State.Epoch < 1 {
		return fmt.Errorf("a snapshot of %d segments and attempt %d", n.Segments, n.State.Epoch)
	}
	if s.Epoch == 0 {
		*s = n.State
		s.relearn()
		return nil
	}
	now := *s
	if n.State.Steered.Steps == nil { // it is older than they are
		now.Steered.Steps = nil
	}
	if n.State.Gated == nil { // so is one without the results of gates for people
		now.Gated = nil
	}
	if n.State.Reviews == nil { // so is one without reviews
		now.Reviews = nil
	}
	if n.State.Answered == nil { // so is one without answers that reviewers are to check
		now.Answered = nil
	}
	if n.State.Written == nil { // so is one without documents of reviewers
		now.Written = nil
	}
	if n.State.Learned == nil { // so is one that does not list the commits with documents
		now.Learned = nil
	}
	if n.State.Proved == nil { // so is one that does not count in which tasks documents prove themselves
		now.Proved = nil
	}
	if n.State.Failures == nil { // so is one that does not list failures
		now.Failures = nil
	}
	now.Reviews = maps.Clone(now.Reviews)
	for name, look := range now.Reviews { // so is one without what reviews said
		if n.State.Reviews[name].Said == "" {
			look.Said, look.After = "", ""
			now.Reviews[name] = look
		}
	}
	now.Tasks = maps.Clone(now.Tasks)
	for name, t := range now.Tasks { // so is one without the works of tasks, or without the checkpoints before them, and who began to read with it knows no more
		if n.State.Tasks[name].Work == (protocol.TaskWork{}) {
			t.Work = protocol.TaskWork{}
			now.Tasks[name] = t
		}
		if was := n.State.Tasks[name]; was.Documents == nil && !was.Faulty { // a faulty task had documents before, and its version knows them
			t.Documents, t.Faulty = nil, false
			now.Tasks[name] = t
		}
		if n.State.Tasks[name].Since == 0 {
			t.Since, t.Chosen = 0, ""
			now.Tasks[name] = t
		}
	}
	have, err := canonical(now)
	if err != nil {
		return err
	}
	want, err := canonical(n.State)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return errSnapshot
	}
	s.Tasks, s.Gated, s.Reviews, s.Answered, s.Written, s.Learned, s.Proved, s.Failures = now.Tasks, now.Gated, now.Reviews, now.Answered, now.Written, now.Learned, now.Proved, now.Failures
	s.relearn()
	return nil
}

// relearn lists the newest commit with documents after a snapshot of an earlier version, which does not list them: the server may have taken it. After the
// history was replaced, the commit counts only if it follows the new one.
func (s *State) relearn() {
	if k := s.Knowledge; s.Learned == nil && k != nil && k.Commit != k.On && (s.Squashed == nil || k.On == s.Promoted.Commit) {
		s.Learned = []KnowledgeCommitted{*k}
	}
}

// canonical is a state in the form that it has after it was read from a journal.
func canonical(s State) ([]byte, error) {
	once, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	var read State
	if err := json.Unmarshal(once, &read); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	return json.Marshal(read)
}
