// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// world plays everything around the state machine: it starts each act, and answers it in any way that is possible.
type world struct {
	t        *rapid.T
	state    supervise.State
	orders   protocol.Orders
	now      time.Time
	running  supervise.Action
	captured time.Time
	heads    int
	policies int
	kind     bool // the world fails nothing any more
	valid    bool // the work breaks no rule
	steady   bool // what happens to a task that cannot be done does not change
	// measures that were asked for, and settled.
	measures int
	settled  map[string]int
	// patches on the desk, and when each task was said to be done.
	patches   int
	completed map[string]time.Time
	// over are the tasks that were done or aborted at some time, and aborts counts the acts that begin an abort.
	over   map[string]supervise.Phase
	aborts int
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: epoch, completed: map[string]time.Time{}, settled: map[string]int{}, over: map[string]supervise.Phase{}}
	w.orders.Mode = rapid.SampledFrom([]string{policy.ModeInteractive, policy.ModeDeterministic}).Draw(t, "mode")
	w.orders.NextMode = w.orders.Mode
	w.orders.Delivery = protocol.Delivery{Push: rapid.Bool().Draw(t, "push"), RequireApproval: rapid.Bool().Draw(t, "approval")}
	for _, name := range []string{"form", "save", "check"}[:rapid.IntRange(1, 3).Draw(t, "tasks")] {
		w.orders.Tasks = append(w.orders.Tasks, protocol.Task{Name: name, Continue: rapid.Bool().Draw(t, "continues")})
	}
	w.orders.MaxRetries = rapid.IntRange(0, 1).Draw(t, "retries")
	w.state.Rules = supervise.Rules{Interval: 30 * time.Second, MinInterval: 5 * time.Second, MaxChanges: 50, MaxFailures: 3}
	w.state.Checkpoints.Last = epoch
	w.state.Delivery.Head = "base"
	w.apply(w.ordered())
	return w
}

// apply an event, and then what is on the desk, as the watchdog does.
func (w *world) apply(e supervise.Event) {
	w.state = w.state.Apply(e, w.now)
	begun := 0
	for _, t := range w.state.Tasks {
		switch {
		case w.over[t.Name] != "" && w.over[t.Name] != t.Phase:
			w.t.Fatalf("task %q was %s, and is %s", t.Name, w.over[t.Name], t.Phase)
		case t.Phase == supervise.Done, t.Phase == supervise.Aborted:
			w.over[t.Name] = t.Phase
		case t.Begun:
			begun++
		}
	}
	if begun > 1 {
		w.t.Fatalf("%d tasks are begun: %+v", begun, w.state.Tasks)
	}
	if !w.state.TakesPatches() {
		w.patches = 0
	}
	desk := supervise.Tools{Patches: w.patches}
	if i := w.state.Current(); i >= 0 {
		desk.Completed = w.completed[w.state.Tasks[i].Name]
	}
	w.state = w.state.Apply(desk, w.now)
	if m, over := w.state.Settled(); over {
		w.state = w.state.Apply(supervise.Settled{}, w.now)
		w.settled[m.ID]++
	}
}

// complete is the agent's word that its task is done.
func (w *world) complete() {
	if name := w.state.AtWork(); name != "" && w.completed[name].IsZero() {
		w.completed[name] = w.now
	}
}

// step asks for the next act and begins it, or lets the time pass.
func (w *world) step() supervise.Action {
	a := supervise.Next(w.state, w.now)
	w.check(a)
	w.state = w.state.Begin(a)
	switch a.Kind {
	case supervise.Wait:
		if !a.Until.IsZero() {
			w.now = a.Until
		}
	case supervise.Cancel:
		w.apply(supervise.CalledOff{})
	default:
		w.running = a
	}
	return a
}

// check holds every act against what must never happen.
func (w *world) check(a supervise.Action) {
	s := w.state
	if a.Kind != supervise.Wait && a.Kind != supervise.Cancel && s.Doing != supervise.Wait {
		w.t.Fatalf("%s begins while %s is under way", a.Kind, s.Doing)
	}
	if s.Over() && a.Kind != supervise.Wait {
		w.t.Fatalf("%s after the end", a.Kind)
	}
	switch a.Kind {
	case supervise.Wait:
		if !a.Until.IsZero() && !a.Until.After(w.now) {
			w.t.Fatalf("waits until %v, which is not after %v", a.Until, w.now)
		}
	case supervise.Start:
		t, _ := s.Task(a.Task)
		if t.Phase != supervise.Pending || t.Dropped || !t.Listed {
			w.t.Fatalf("starts %+v", t)
		}
		for _, before := range w.orders.Tasks { // what is not begun follows the order of the list
			if have, _ := s.Task(before.Name); before.Name == a.Task {
				break
			} else if have.Phase != supervise.Done && have.Phase != supervise.Aborted && !t.Begun {
				w.t.Fatalf("skips %q for %q", before.Name, a.Task)
			}
		}
		if s.NextMode != s.Mode && t.Continues == "" { // an agent that goes on with its task does so in the mode of its pod
			w.t.Fatalf("starts an agent in mode %s, and %s is wanted", s.Mode, s.NextMode)
		}
		if s.Agent.Leftovers || !s.Agent.Connected || s.Checkpoints.Breaker || s.End != supervise.GoOn {
			w.t.Fatalf("starts an agent in %+v", s)
		}
		if t.Restart != "" && !t.Back {
			w.t.Fatalf("starts an agent anew, and the workspace has not gone back: %+v", t)
		}
	case supervise.Rollback:
		if s.Checkpoints.Breaker || !s.Agent.Connected {
			w.t.Fatalf("goes back in %+v", s)
		}
		if t, _ := s.Task(a.Task); a.Aborts && (t.Phase != supervise.Aborting || t.Abort != a.Request.ID || s.Agent.Leftovers) {
			w.t.Fatalf("takes the changes of %+v away while the agent is %+v", t, s.Agent)
		}
	case supervise.Abort:
		if t, _ := s.Task(a.Task); !t.Continue || !t.Begun || s.Agent.Leftovers || s.End != supervise.GoOn || a.Reason == "" || a.Message == "" {
			w.t.Fatalf("aborts %+v for %q while the agent is %+v", t, a.Reason, s.Agent)
		}
	case supervise.Answer:
		if a.Answer.ID == "g" && !s.Agent.Connected {
			w.t.Fatalf("says whether an agent is held before it is known: %+v", a.Answer)
		}
	case supervise.Release:
		if w.now.Before(s.Measure.Until) || s.Measure.Until.IsZero() {
			w.t.Fatalf("releases an agent that is held: %+v", s.Measure)
		}
	case supervise.Checkpoint:
		t, _ := s.Task(a.Task)
		if a.Aborts && !t.Back {
			w.t.Fatalf("ends the abort of %+v before the workspace has gone back", t)
		}
		ends := a.Closes || a.Aborts || t.Dropped || s.End != supervise.GoOn
		if !ends && w.now.Sub(w.captured) < s.Rules.MinInterval && !w.captured.IsZero() {
			w.t.Fatalf("%s checkpoint only %v after the one before", a.Trigger, w.now.Sub(w.captured))
		}
		if s.Checkpoints.Breaker && s.End == supervise.GoOn {
			w.t.Fatalf("checkpoint with an open breaker")
		}
		if a.Closes && s.Agent.Leftovers {
			w.t.Fatalf("closes a task while processes of the agent may live")
		}
		if a.Closes && t.Continues != "" {
			w.t.Fatalf("closes a task whose agent goes on")
		}
	case supervise.Drop:
		if t, _ := s.Task(a.Task); !t.Dropped || !t.Captured || s.Agent.Running || s.Agent.Leftovers {
			w.t.Fatalf("drops %+v while the agent is %+v", t, s.Agent)
		}
	case supervise.Patch:
		if !s.TakesPatches() || s.Patches == 0 || s.Checkpoints.Breaker {
			w.t.Fatalf("lays a patch in with %+v", s)
		}
	case supervise.Push:
		d := s.Delivery
		if !d.Reviewed || d.Objection != "" || !d.Push || d.RequireApproval && d.ApprovedCommit != d.Head || s.Current() >= 0 {
			w.t.Fatalf("pushes with %+v", d)
		}
	case supervise.Finish:
		w.finishes(a.Final)
		if a.Final.Reason == protocol.ReasonDelivered && s.Delivery.Push && s.Delivery.Pushed != s.Delivery.Head {
			w.t.Fatalf("says delivered with %+v", s.Delivery)
		}
	}
}

// finishes checks that work is delivered when each task is done or aborted, and at least one is done.
func (w *world) finishes(f protocol.FinalReport) {
	if f.Outcome != protocol.OutcomeDelivered && f.Outcome != protocol.OutcomeReadyToMerge {
		return
	}
	done := 0
	for _, t := range w.orders.Tasks {
		switch have, _ := w.state.Task(t.Name); have.Phase {
		case supervise.Done:
			done++
		case supervise.Aborted:
			if named := strconv.Quote(t.Name); !strings.Contains(f.Message, named) {
				w.t.Fatalf("does not name the aborted task %s: %s", named, f.Message)
			}
		default:
			w.t.Fatalf("delivers while %+v", have)
		}
	}
	if done == 0 && !slices.Contains(slices.Collect(maps.Values(w.over)), supervise.Done) {
		w.t.Fatalf("delivers, and no task is done: %+v", f)
	}
}

// answer ends the act under way.
func (w *world) answer() {
	fails := !w.kind && rapid.IntRange(0, 3).Draw(w.t, "fails") == 0
	fault := protocol.Fault{Reason: protocol.ReasonCheckpointFailed, Message: "it did not work"}
	a := w.running
	switch w.state.Doing {
	case supervise.Start:
		if fails {
			w.apply(supervise.NotStarted{Message: "no such file"})
			return
		}
		w.apply(supervise.Started{Rules: w.state.Rules})
	case supervise.Checkpoint:
		w.captured = w.now
		if fails {
			w.apply(supervise.Missed{Action: a, Fault: fault})
			return
		}
		w.taken(a)
	case supervise.Patch:
		w.patches--
		w.heads++
		w.apply(supervise.Laid{Head: "c" + string(rune('a'+w.heads%26)), Changed: true})
	case supervise.Kill, supervise.Freeze, supervise.Thaw:
		if fails {
			w.apply(supervise.Resisted{Message: "it did not work"})
			return
		}
		w.apply(map[supervise.Kind]supervise.Event{
			supervise.Kill: supervise.Killed{}, supervise.Freeze: supervise.FrozenNow{}, supervise.Thaw: supervise.ThawedNow{},
		}[a.Kind])
	case supervise.Release:
		w.apply(supervise.Released{})
	case supervise.Abort:
		w.aborts++
		w.apply(supervise.GivenUp{Task: a.Task, ID: fmt.Sprint("a", w.aborts)})
	case supervise.Drop:
		delete(w.completed, a.Task)
		w.apply(supervise.Dropped{Task: a.Task})
	case supervise.Rollback:
		if fails && rapid.Bool().Draw(w.t, "missed") {
			w.apply(supervise.Missed{Action: a, Fault: fault})
			return
		}
		w.apply(supervise.RolledBack{ID: a.Request.ID, Went: !fails, Head: w.state.Delivery.Head, Changed: w.state.Delivery.Changed})
	case supervise.Answer:
		w.apply(supervise.Answered{Answer: a.Answer})
	case supervise.Review:
		objection := ""
		if fails {
			objection = "it is protected now"
		}
		w.apply(supervise.Reviewed{PolicyHash: w.state.PolicyHash, Objection: objection})
	case supervise.Push:
		switch {
		case !fails:
			w.apply(supervise.Pushed{Commit: w.state.Delivery.Head})
		case rapid.Bool().Draw(w.t, "refused"):
			w.apply(supervise.Refused{Fault: fault, Overtaken: rapid.Bool().Draw(w.t, "overtaken")})
		default:
			w.apply(supervise.Undelivered{Fault: fault})
		}
	case supervise.Finish:
		w.apply(supervise.Finished{Final: &a.Final})
	case supervise.Leave:
		w.apply(supervise.Finished{})
	}
}

func (w *world) taken(a supervise.Action) {
	e := supervise.Taken{Action: a, Settled: w.kind || rapid.Bool().Draw(w.t, "settled"), TreeVerdict: protocol.Valid,
		Head: w.state.Delivery.Head, Changed: w.state.Delivery.Changed}
	if !w.valid && rapid.Bool().Draw(w.t, "invalid") {
		e.TreeVerdict, e.Objection = protocol.Invalid, "it is forbidden"
	}
	if e.Settled && e.TreeVerdict == protocol.Valid {
		w.heads++
		e.Head, e.Changed = "c"+string(rune('a'+w.heads%26)), true
	}
	var end supervise.Ending
	if t, ok := w.state.Task(a.Task); ok {
		end = w.state.Ending(t)
	}
	e.Aborted = a.Aborts && e.Settled && e.TreeVerdict == protocol.Valid
	e.Completes = a.Closes && e.Settled && supervise.Completes(end, e.TreeVerdict, "")
	w.apply(e)
}

// disturb lets something happen from outside.
func (w *world) disturb() {
	switch rapid.SampledFrom([]string{"connected", "disconnected", "changed", "exited", "request", "reset", "policy", "approve",
		"suspend", "stop", "terminate", "slipped", "patch", "complete", "mode", "steered", "release", "list", "time"}).Draw(w.t, "event") {
	case "connected":
		if !w.state.Agent.Connected {
			w.apply(supervise.Connected{Running: w.state.Agent.Running, Frozen: w.state.Agent.Running, Leftovers: w.state.Agent.Leftovers})
		}
	case "disconnected":
		w.apply(supervise.Disconnected{})
	case "changed":
		w.apply(supervise.Changed{Paths: rapid.IntRange(0, 100).Draw(w.t, "paths")})
	case "exited":
		if w.state.Agent.Running {
			w.apply(supervise.AgentExited{Code: rapid.IntRange(0, 1).Draw(w.t, "code")})
		}
	case "request":
		w.orders.Requests = append(w.orders.Requests, protocol.Request{ID: "r", Kind: protocol.RequestCheckpoint})
	case "reset":
		w.orders.Requests = append(w.orders.Requests, protocol.Request{ID: "b", Kind: protocol.RequestResetBreaker})
	case "steered":
		if w.state.Measure == nil && w.state.Agent.Running {
			w.steer()
		}
	case "release":
		w.orders.Requests = append(w.orders.Requests, protocol.Request{ID: "g", Kind: protocol.RequestRelease})
	case "policy":
		w.policies++
		w.orders.Policy.Hash = "p" + string(rune('a'+w.policies%26))
	case "approve":
		w.orders.Delivery.ApprovedCommit = w.state.Delivery.Head
	case "suspend":
		w.orders.Suspend = rapid.IntRange(0, 5).Draw(w.t, "really") == 0
	case "stop":
		w.orders.Stop = rapid.IntRange(0, 5).Draw(w.t, "really") == 0
	case "terminate":
		if rapid.IntRange(0, 5).Draw(w.t, "really") == 0 {
			w.apply(supervise.Terminated{})
		}
	case "list":
		w.list()
	case "patch":
		w.patches++
	case "complete":
		w.complete()
	case "mode":
		w.orders.NextMode = rapid.SampledFrom([]string{policy.ModeInteractive, policy.ModeDeterministic}).Draw(w.t, "mode")
	case "slipped":
		w.apply(supervise.Slipped{})
	case "time":
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(w.t, "seconds")) * time.Second)
		return
	}
	w.apply(w.ordered())
	w.orders.Requests = nil
}

// list orders other tasks, or the same in another order.
func (w *world) list() {
	names := rapid.Permutation([]string{"form", "save", "check", "mail"}).Draw(w.t, "tasks")
	w.orders.Tasks = nil
	for _, name := range names[:rapid.IntRange(1, len(names)).Draw(w.t, "listed")] {
		w.orders.Tasks = append(w.orders.Tasks, protocol.Task{Name: name, Continue: w.continues(name)})
	}
}

// continues says whether the work goes on when a task cannot be done: the same for a name for ever, or anything.
func (w *world) continues(name string) bool {
	if w.steady {
		return name == "form" || name == "mail"
	}
	return rapid.Bool().Draw(w.t, "continues")
}

// ordered is the event of the orders as they are.
func (w *world) ordered() supervise.Ordered {
	is := func(phase supervise.Phase) func(string) bool {
		return func(name string) bool { return w.over[name] == phase }
	}
	return supervise.Ordered{Orders: w.orders, Done: is(supervise.Done), Aborted: is(supervise.Aborted)}
}

// steer asks for a measure.
func (w *world) steer() {
	w.measures++
	m := supervise.Measure{ID: fmt.Sprint("m", w.measures), Message: "it repeats itself", Rung: rapid.SampledFrom([]policy.Rung{
		policy.RungNoTools, policy.RungHold, policy.RungRollback, policy.RungRestart, policy.RungBlock}).Draw(w.t, "rung")}
	if m.Rung == policy.RungHold && rapid.Bool().Draw(w.t, "bounded") {
		m.Until = w.now.Add(time.Minute)
	}
	w.apply(supervise.Steered{Measure: m})
	if m.Rung == policy.RungNoTools { // it is wanted of an agent that has ended
		w.apply(supervise.AgentExited{})
		if i := w.state.Current(); i >= 0 && w.state.Tasks[i].Phase == supervise.Exited && !w.state.Tasks[i].Dropped {
			w.t.Fatalf("the end of an agent that goes on is that of its task: %+v", w.state.Tasks[i])
		}
	}
}

// Whatever happens in whatever order, nothing that must not happen does; and once nothing fails any more, a stop ends
// the attempt.
func TestNextKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch {
			case w.state.Doing != supervise.Wait && rapid.Bool().Draw(t, "answer"):
				w.answer()
			case rapid.Bool().Draw(t, "disturb"):
				w.disturb()
			default:
				w.step()
			}
		}
		w.kind = true
		w.apply(supervise.Connected{Leftovers: true})
		w.orders.Stop = true
		w.apply(w.ordered())
		for range 50 {
			if w.state.Over() {
				for id, times := range w.settled {
					if times != 1 {
						t.Fatalf("measure %s was settled %d times", id, times)
					}
				}
				return
			}
			if w.state.Doing != supervise.Wait {
				w.answer()
				continue
			}
			w.step()
		}
		t.Fatalf("never ends: %+v", w.state)
	})
}

// A world without faults brings every task to its end and the work to the branch.
func TestNextDelivers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.kind = true
		w.apply(supervise.Connected{})
		for range 200 {
			switch {
			case w.state.Over():
				outcome := w.state.Final.Outcome
				invalid := outcome == protocol.OutcomeBlocked && (w.state.Current() >= 0 || w.state.Final.Reason == protocol.ReasonTasksAborted)
				approval := outcome == protocol.OutcomeReadyToMerge && w.orders.Delivery.RequireApproval
				if outcome != protocol.OutcomeDelivered && !invalid && !approval {
					t.Fatalf("ended with %+v", w.state.Final)
				}
				return
			case w.state.Doing != supervise.Wait:
				w.answer()
			case w.state.Agent.Running && rapid.Bool().Draw(t, "exits"):
				w.complete()
				w.apply(supervise.AgentExited{})
			case w.state.Agent.Running && rapid.Bool().Draw(t, "writes"):
				w.apply(supervise.Changed{Paths: 60})
			default:
				w.step()
			}
		}
		t.Fatalf("never ends: %+v", w.state)
	})
}

// However often the list of tasks changes while they are worked on, at the end every task of the list is done or aborted, each of them once, and
// nothing of another task is left.
func TestAnEditedListConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.orders.Mode, w.orders.NextMode, w.kind, w.valid = policy.ModeInteractive, policy.ModeInteractive, true, true
		w.orders.MaxRetries, w.steady = 0, true
		for i := range w.orders.Tasks {
			w.orders.Tasks[i].Continue = w.continues(w.orders.Tasks[i].Name)
		}
		w.apply(w.ordered())
		w.apply(supervise.Connected{})
		edits := rapid.IntRange(1, 6).Draw(t, "edits")
		for range 400 {
			switch {
			case w.state.Over():
				for _, task := range w.orders.Tasks {
					if w.over[task.Name] == "" {
						t.Fatalf("ended with %+v, and %q is not over", w.state.Final, task.Name)
					}
				}
				if w.state.Current() >= 0 {
					t.Fatalf("ended with %+v and %+v", w.state.Final, w.state.Tasks)
				}
				return
			case edits > 0 && w.state.Current() >= 0 && rapid.IntRange(0, 3).Draw(t, "edit") == 0:
				edits--
				w.list()
				w.apply(w.ordered())
			case w.state.Doing != supervise.Wait:
				w.answer()
			case w.state.Agent.Running && rapid.Bool().Draw(t, "exits"):
				exit := supervise.AgentExited{}
				if i := w.state.Current(); i >= 0 && w.state.Tasks[i].Continue && rapid.IntRange(0, 2).Draw(t, "code") == 0 {
					exit.Code = 3
				}
				w.apply(exit)
			default:
				before := w.state.Agent.Running
				if a := w.step(); a.Kind == supervise.Kill && before { // the agent exits because of it
					w.apply(supervise.AgentExited{Code: 143})
				}
			}
		}
		t.Fatalf("never ends: %+v", w.state)
	})
}
