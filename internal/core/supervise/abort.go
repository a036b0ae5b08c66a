// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// givesUp begins the abort of a task that has just failed, if the work is to continue without it. It does so when the corrections are spent, or when
// the agent has failed and has no retry left. Other failures are not the agent's, or a policy leaves them to a user. None of them keeps work from
// its delivery that only lacks what reviewers want.
func (s *State) givesUp(t *Task) {
	if t.Phase != Failed || !t.Continue || t.Dropped || s.End != GoOn {
		return
	}
	switch t.Reason {
	case protocol.ReasonCheckpointInvalid, protocol.ReasonGateFailed:
	case protocol.ReasonAgentFailed:
		if t.Failures < s.MaxRetries {
			return
		}
	default:
		if !protocol.Extra(t.Name) {
			return
		}
	}
	t.Phase, t.Back = Aborting, false
}

// abort journals that task i cannot be done, restores the workspace from the beginning of the task, and takes a checkpoint of it.
func (s State) abort(now time.Time, i int) Action {
	t := s.Tasks[i]
	switch {
	case t.Abort == "":
		return Action{Kind: Abort, Task: t.Name, Reason: t.Reason, Message: t.Message}
	case !t.Back:
		a := s.goBack(t.Abort, fmt.Sprintf("task %q is aborted: %s", t.Name, t.Message), now)
		a.Aborts = true
		return a
	case now.Before(s.Checkpoints.RetryAt):
		return Action{Until: s.Checkpoints.RetryAt}
	}
	a := s.checkpoint(s.closing(i), false)
	a.Aborts = true
	return a
}

// GivenUp: the journal has that a task is aborted.
type GivenUp struct {
	// Task is its name.
	Task string
	// ID of the rollback that follows.
	ID string
}

func (e GivenUp) apply(s *State, _ time.Time) {
	s.idle()
	if i := s.index(e.Task); i >= 0 && s.Tasks[i].Phase == Aborting {
		s.Tasks[i].Abort = e.ID
	}
}

// leaves takes the result of the rollback that belongs to an abort. If the workspace cannot go back, the task has failed as it would without an abort.
func (s *State) leaves(e RolledBack) {
	for i := range s.Tasks {
		t := &s.Tasks[i]
		switch {
		case t.Phase != Aborting || t.Abort == "" || t.Abort != e.ID:
		case e.Went:
			t.Back = true
		default:
			t.aborted(false, e.Refusal)
		}
	}
}

// aborted ends an abort: the changes of the task have left, or an objection says why they cannot.
func (t *Task) aborted(left bool, objection string) {
	if left {
		t.Phase = Aborted
		return
	}
	t.Phase = Failed
	t.Message = strings.TrimRight(t.Message, ".") + "; the watchdog cannot take its changes out of the workspace: " + cmp.Or(objection, "the state without them is not promoted")
}

// nothingDone says that the orders list tasks, that each of them was aborted, and that no other task was done before.
func (s State) nothingDone() bool {
	if s.AnyDone {
		return false
	}
	listed := false
	for _, t := range s.Tasks {
		if protocol.Extra(t.Name) { // no user wants it
			continue
		}
		if t.Listed && t.Phase != Aborted {
			return false
		}
		listed = listed || t.Listed
	}
	return listed
}

// notDone says at the end of a message which tasks were aborted; empty if none was.
func (s State) notDone() string {
	if names := s.abortedTasks(); names != "" {
		return "; " + protocol.TasksNotDone + names
	}
	return ""
}

// maxNamed is how many aborted tasks a message names.
const maxNamed = 4

// abortedTasks names the aborted tasks that the orders list. What only reviewers want is no part of the request that is missing: the directives say it.
func (s State) abortedTasks() string {
	var names []string
	more := 0
	for _, t := range s.Tasks {
		switch {
		case !t.Listed || t.Phase != Aborted || protocol.Extra(t.Name):
		case len(names) == maxNamed:
			more++
		default:
			names = append(names, strconv.Quote(t.Name))
		}
	}
	list := strings.Join(names, ", ")
	if more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
