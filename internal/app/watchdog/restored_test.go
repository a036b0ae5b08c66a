// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// TestRestoredBetweenTwoStarts: a watchdog that begins anew before the agent goes on knows that it has worked, so that nothing ends without a checkpoint.
func TestRestoredBetweenTwoStarts(t *testing.T) {
	orders := &protocol.Orders{Tasks: []protocol.Task{{Name: "form"}}}
	for name, tc := range map[string]struct {
		task journal.Task
		want string
	}{
		"to go on":           {journal.Task{Begun: true, Continued: "steering/3"}, "steering/3"},
		"it has gone on":     {journal.Task{Begun: true, Continued: "steering/3", Start: 2}, ""},
		"the first start":    {journal.Task{Begun: true}, ""},
		"it has ended since": {journal.Task{Begun: true, Continued: "steering/3", Start: 2, Ended: true}, ""},
	} {
		s := restored(journal.State{Orders: orders, Tasks: map[string]journal.Task{"form": tc.task}}, false, time.Unix(1000, 0))
		if got := s.Tasks[0].Continues; got != tc.want {
			t.Errorf("%s: continues %q, want %q", name, got, tc.want)
		}
		s = s.Apply(supervise.Connected{}, time.Unix(1001, 0))
		if got := s.Tasks[0].Continues; got != tc.want {
			t.Errorf("%s: continues %q after the runner has connected, want %q", name, got, tc.want)
		}
	}
}

// TestRestoredWithAnotherList: a watchdog that begins anew knows a task that was dropped meanwhile, and one that it was about to drop when it was
// listed again.
func TestRestoredWithAnotherList(t *testing.T) {
	tasks := map[string]journal.Task{"form": {Begun: true, Start: 2}, "save": {Done: true}}
	orders := &protocol.Orders{Tasks: []protocol.Task{{Name: "mail"}, {Name: "save"}}}
	at := time.Unix(1000, 0)
	s := restored(journal.State{Orders: orders, Tasks: tasks}, false, at).Apply(supervise.Ordered{Orders: *orders}, at)
	if i := s.Current(); i < 0 || s.Tasks[i].Name != "form" || !s.Tasks[i].Dropped || s.Tasks[i].Phase != supervise.Running {
		t.Errorf("tasks %+v, want form to be dropped", s.Tasks)
	}
	orders.Tasks = append(orders.Tasks, protocol.Task{Name: "form"})
	tasks["form"] = journal.Task{Begun: true, Start: 2, Unlisted: true} // it was listed again while its agent was being ended
	s = restored(journal.State{Orders: orders, Tasks: tasks}, false, at).Apply(supervise.Ordered{Orders: *orders}, at)
	if i := s.Current(); i < 0 || s.Tasks[i].Name != "form" || !s.Tasks[i].Dropped || !s.Tasks[i].Listed {
		t.Errorf("tasks %+v, want form to begin again after it is dropped", s.Tasks)
	}
}

// TestRestoredBeforeTheRunnerIsHeard: a watchdog that begins anew and has to end the attempt does not capture the workspace while the agent may run. The
// runner may be out of reach until then.
func TestRestoredBeforeTheRunnerIsHeard(t *testing.T) {
	at := time.Unix(1000, 0)
	question := &protocol.Question{ID: "q1", Text: "Which colour?", At: at}
	for name, tc := range map[string]struct {
		task    journal.Task
		suspend bool
		want    supervise.Kind
	}{
		"suspended":              {journal.Task{Begun: true, Start: 2}, true, supervise.Wait},
		"parking":                {journal.Task{Begun: true, Start: 2, Asked: question, Parking: true}, false, supervise.Wait},
		"start not noted":        {journal.Task{Begun: true}, true, supervise.Wait},
		"between two starts":     {journal.Task{Begun: true, Before: 2}, true, supervise.Wait},
		"not started":            {journal.Task{}, true, supervise.Finish},
		"only its gates to pass": {journal.Task{Begun: true, Ended: true, Gating: "tree"}, true, supervise.Finish},
	} {
		orders := &protocol.Orders{Tasks: []protocol.Task{{Name: "form"}}, Suspend: tc.suspend}
		s := restored(journal.State{Orders: orders, Tasks: map[string]journal.Task{"form": tc.task}}, false, at).Apply(supervise.Ordered{Orders: *orders}, at)
		if got := supervise.Next(s, at).Kind; got != tc.want {
			t.Errorf("%s: before the runner is heard the watchdog does %v, want %v", name, got, tc.want)
		}
		if tc.want != supervise.Wait {
			continue
		}
		s = s.Apply(supervise.Connected{Running: true, Frozen: true}, at)
		if got := supervise.Next(s, at).Kind; got != supervise.Kill {
			t.Errorf("%s: then it does %v, want %v", name, got, supervise.Kill)
		}
	}
}
