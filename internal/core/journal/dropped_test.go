// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestDroppedTask: the agent works on a task that the orders do not list any more until the task is dropped; after that it may begin again, and
// the exit of its earlier start is not taken for that of the next.
func TestDroppedTask(t *testing.T) {
	ordered := func(names ...string) journal.Record {
		o := protocol.Orders{}
		for _, name := range names {
			o.Tasks = append(o.Tasks, protocol.Task{Name: name})
		}
		return journal.Record{Orders: &o}
	}
	begun := func(name string) journal.Record { return journal.Record{TaskBegun: &journal.TaskBegun{Name: name}} }
	started := journal.Record{TaskStarted: &journal.TaskStarted{Name: "form", Start: 3, Session: true}}
	ended := journal.Record{TaskEnded: &journal.TaskEnded{Name: "form", ExitCode: 143, Stopped: true}}
	dropped := journal.Record{TaskDropped: &journal.TaskDropped{Name: "form"}}

	running := []journal.Record{attempt1, base, ordered("form", "save"), begun("form"), started, ordered("save")}
	if got := read(t, write(t, running...)).Working(); got != "form" {
		t.Errorf("the agent works on %q before its task is dropped, want form", got)
	}
	again := read(t, write(t, append(running, ordered("save", "form"))...))
	if !again.Tasks["form"].Unlisted || again.Tasks["save"].Unlisted {
		t.Errorf("tasks that are listed again: %+v, want form to be dropped", again.Tasks)
	}
	s := read(t, write(t, append(running, ended, dropped)...))
	if got := s.Working(); got != "" {
		t.Errorf("the agent works on %q after its task was dropped, want none", got)
	}
	if task := s.Tasks["form"]; task.Begun || task.Ended || task.Unlisted || task.Session || task.Interrupted || task.Before != 3 {
		t.Errorf("the dropped task is %+v", task)
	}
	s = read(t, write(t, append(running, ended, dropped, ordered("save", "form"), begun("form"))...))
	if task := s.Tasks["form"]; !task.Begun || task.Before != 3 || s.Working() != "form" {
		t.Errorf("the task that has begun again is %+v, and the agent works on %q", task, s.Working())
	}
}

// TestOnlyTheNewestSessionContinues: an agent that continues does so in its newest session. If the list of tasks has changed, that may be the session
// of another task.
func TestOnlyTheNewestSessionContinues(t *testing.T) {
	begun := func(name string) journal.Record { return journal.Record{TaskBegun: &journal.TaskBegun{Name: name}} }
	started := journal.Record{TaskStarted: &journal.TaskStarted{Name: "form", Start: 1, Session: true}}
	attempt2 := journal.Record{Attempt: &journal.Attempt{Epoch: 2, Run: "agent"}}

	lost := []journal.Record{attempt1, base, begun("form"), started, attempt2}
	if s := read(t, write(t, append(lost, begun("form"))...)); !s.Tasks["form"].Interrupted {
		t.Error("the agent does not continue its session, which is the newest one")
	}
	if s := read(t, write(t, append(lost, begun("save"), begun("form"))...)); s.Tasks["form"].Interrupted {
		t.Error("the agent of form continues the session of save")
	}
}
