// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// TestStepsAreBounded: an agent that makes trouble for ever does not fill the journal. It is told all the same.
func TestStepsAreBounded(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.book.steps = []protocol.SteeringStep{{Sequence: session.MaxSteps - 1}}
	for range 3 {
		a.entries = []string{a.says("user", "Add a form.")}
		a.loop(20)
		a.service.Anew()
	}
	if n := len(a.book.steps); n != 2 {
		t.Errorf("%d steps are written down: %+v", n-1, a.book.steps[1:])
	}
}

// silent lets time pass in which the agent does nothing, until something is wanted.
func (a *agent) silent(most time.Duration) *session.Act {
	for end := a.now.Add(most); a.now.Before(end); a.now = a.now.Add(time.Minute) {
		a.service.Pulse(protocol.RunnerPulse{Processes: 1})
		if act := a.service.Act(); act != nil {
			return act
		}
	}
	return nil
}

// TestOneActAtATime: what is wanted may take long. Nothing is taken for tried meanwhile.
func TestOneActAtATime(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.policy.Anomalies.Ladder = policy.RungBlock
	var rungs []policy.Rung
	for {
		act := a.silent(12 * time.Hour)
		if act == nil {
			break
		}
		rungs = append(rungs, act.Rung)
		for range 12 * 60 { // its runner is out of reach
			a.now = a.now.Add(time.Minute)
			a.service.Pulse(protocol.RunnerPulse{Processes: 1})
		}
		a.service.Settle(act.ID, false)
	}
	if want := []policy.Rung{policy.RungRestart, policy.RungBlock}; !slices.Equal(rungs, want) {
		t.Errorf("wanted %v, want %v", rungs, want)
	}
}

// TestAnAgentIsStartedAnewOnce for a task: one that hangs again, before it has asked a model, is ended. It does not matter that the agent was
// started without a session, or that the watchdog began anew. In another attempt, and for another task, it may be tried again.
func TestAnAgentIsStartedAnewOnce(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.policy.Anomalies.Ladder = policy.RungBlock
	next := func(want policy.Rung) {
		t.Helper()
		act := a.silent(12 * time.Hour)
		if act == nil || act.Rung != want {
			t.Fatalf("%+v is wanted, want %s", act, want)
		}
		a.service.Settle(act.ID, true)
		a.service.Anew()
		a.begin()
	}
	next(policy.RungRestart)
	a.attempt++
	a.begin()
	next(policy.RungRestart)
	next(policy.RungBlock)
	next(policy.RungRestart)
	a.task = "tests"
	next(policy.RungRestart)
	next(policy.RungBlock)
}

// TestFilesThatChangeAreMovement, also between two requests: an agent that hardly computes, and prints and writes files all the time, is healthy.
func TestFilesThatChangeAreMovement(t *testing.T) {
	for name, begin := range map[string]func(a *agent){
		"it asks no model":            func(*agent) {},
		"its model is asked":          func(a *agent) { a.send() },
		"its model has called a tool": func(a *agent) { a.ask() },
		"it is silent since its answer": func(a *agent) {
			_, x := a.send()
			x.Answered(&conversation.Answer{Ended: true, Stop: conversation.StopEnd}, 0)
		},
	} {
		a := newAgent(t, "anthropic")
		a.policy.Anomalies.Ladder, a.reach = policy.RungBlock, steering.Reach{Lines: true}
		a.begin()
		begin(a)
		pulse := func(every time.Duration, n int) {
			a.now = a.now.Add(every)
			a.service.Pulse(protocol.RunnerPulse{Processes: 2, Written: int64(n)})
		}
		for n := range 4 * 120 {
			a.service.Moved()
			pulse(30*time.Second, n)
		}
		if len(a.book.steps) > 0 {
			t.Errorf("%s: %+v", name, a.book.steps[0])
		}
		for range 240 { // neither files nor output
			pulse(time.Minute, 0)
		}
		if len(a.book.steps) == 0 {
			t.Errorf("%s: then nothing moves, and nothing is done", name)
		}
	}
}

// TestActsHaveNewIDs also where what was remembered is lost. The newest is wanted again then, and whoever carries it out knows it as done.
func TestActsHaveNewIDs(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.policy.Anomalies.Ladder = policy.RungBlock
	first := a.silent(12 * time.Hour)
	a.service.Settle(first.ID, true)
	a.shelf.data = []byte("{")
	a.begin()
	again := a.service.Act()
	if again == nil || again.ID != first.ID || again.Rung != first.Rung || again.Message != first.Message {
		t.Fatalf("wanted again: %+v, want %+v", again, first)
	}
	a.service.Settle(again.ID, true)
	if next := a.silent(12 * time.Hour); next == nil || next.ID == first.ID || next.Rung != policy.RungBlock {
		t.Errorf("%+v after %+v", next, first)
	}
}

// TestLateAnswers: what an agent that has ended still hears says nothing about the next one.
func TestLateAnswers(t *testing.T) {
	for name, hear := range map[string]func(x *exchange){
		"answered": func(x *exchange) { x.Answered(&conversation.Answer{Ended: true}, 0) },
		"failed":   func(x *exchange) { x.Failed(failures.Answer{Status: 500}) },
	} {
		a := newAgent(t, "anthropic")
		_, late := a.send()
		a.service.Anew()
		x, _ := late.(*exchange)
		hear(x)
		if n := len(a.service.state.Anomalies.Threads); n != 0 {
			t.Errorf("%s: %d threads of an agent that has said nothing", name, n)
		}
	}
}

// TestWhatCameOfAnActIsSaid, also with a request in which something else is to be said.
func TestWhatCameOfAnActIsSaid(t *testing.T) {
	told := len(newAgent(t, "anthropic").loop(12))
	a := newAgent(t, "anthropic")
	for range told - 1 {
		a.ask()
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
	}
	a.service.state.Threads = map[int]*session.Thread{1: {Unsaid: "The workspace has gone back."}}
	if sent := a.ask(); !strings.Contains(sent, "The workspace has gone back.") || !strings.Contains(sent, supervisor) {
		t.Errorf("not said: %s", sent)
	}
}

// TestWhatHasNoPlaceIsSaidLater: nothing of it is lost, and the agent cannot have it grow for ever by requests that have no place.
func TestWhatHasNoPlaceIsSaidLater(t *testing.T) {
	a := newAgent(t, "anthropic")
	steps := 0
	for range 40 {
		a.askClosed()
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		if steps = len(a.book.steps); steps > 1 {
			break
		}
	}
	if sent := a.ask(); steps != 2 || strings.Count(sent, supervisor) != 2 {
		t.Errorf("%d steps, and said is %d times something: %s", steps, strings.Count(sent, supervisor), sent)
	}
}

// TestForgottenThreads: of threads that nothing is remembered of, neither is what was said to them.
func TestForgottenThreads(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.ask()
	r := &a.service.state
	r.Threads[99] = &session.Thread{Notes: []dialect.Note{{After: 1, Text: "x"}}, Cuts: []dialect.Cut{{From: 1, To: 2}}, Bare: 1, Unsaid: "y"}
	r.Anomalies.Threads = append(r.Anomalies.Threads, &anomaly.Thread{ID: 99})
	r.Steering.Threads = append(r.Steering.Threads, steering.Thread{ID: 99})
	a.ask()
	others := slices.ContainsFunc(r.Anomalies.Threads, func(t *anomaly.Thread) bool { return t.ID == 99 })
	if r.Threads[99] != nil || others || slices.ContainsFunc(r.Steering.Threads, func(t steering.Thread) bool { return t.ID == 99 }) {
		t.Errorf("of a thread that the book does not know: %+v, %t, %+v", r.Threads[99], others, r.Steering.Threads)
	}
}

// TestManyCallsAtOnce: an agent that makes up an exchange of very many calls does not keep the watchdog busy with it.
func TestManyCallsAtOnce(t *testing.T) {
	a := newAgent(t, "anthropic")
	var results []string
	for i := range 3 {
		var calls, came []string
		for j := range conversation.MaxParts {
			calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"%d_%d","name":"Deploy","input":{}}`, i, j))
			came = append(came, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"%d_%d","is_error":true,"content":"Error: no"}`, i, j))
		}
		a.entries = append(a.entries, `{"role":"assistant","content":[`+strings.Join(calls, ",")+`]}`)
		results = append(results, `{"role":"user","content":[`+strings.Join(came, ",")+`]}`)
	}
	a.entries = append(append(a.entries, results...), a.called("Deploy", `{}`, "Error: no")...)
	request, err := a.dialect.ReadRequest([]byte(`{"model":"m","messages":[` + strings.Join(a.entries, ",") + `],"tools":[{"name":"Deploy"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var book conversation.Book
	turn := book.Observe(request.Conversation())
	if found := book.Repeats(request.Conversation(), turn.Ends, func(string) bool { return true }); len(found.Spans) > 0 {
		t.Errorf("%+v", found.Spans)
	}
}

// TestAgainWithoutTools: a turn without tools has none either where the client asks once more, also a watchdog that begins anew.
func TestAgainWithoutTools(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		fail := func() { a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: no")...) }
		sent := ""
		for range 30 {
			fail()
			if sent = a.ask(); strings.Contains(sent, "This turn has no tools") {
				break
			}
		}
		if !a.bare(sent) {
			t.Fatal(sent)
		}
		a.begin()
		if again := a.ask(); again != sent {
			t.Errorf("sent again:\n%s\nwant\n%s", again, sent)
		}
		fail()
		if next := a.ask(); a.bare(next) {
			t.Errorf("the next turn: %s", next)
		}
	})
}
