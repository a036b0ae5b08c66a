// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
)

// untilBare fails until the model has no tools. The model answers that turn in words.
func (a *agent) untilBare() {
	a.t.Helper()
	for range 30 {
		a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: no")...)
		if sent := a.inWords("I am stuck."); strings.Contains(sent, "This turn has no tools") {
			if !a.bare(sent) {
				a.t.Fatal(sent)
			}
			return
		}
	}
	a.t.Fatal("the model always had tools")
}

// inWords asks, and the model answers in words.
func (a *agent) inWords(words string) string {
	a.t.Helper()
	sent, exchange := a.send()
	exchange.Answered(&conversation.Answer{Ended: true, Stop: conversation.StopEnd, Text: []byte(words)}, 0)
	return sent
}

// goesOn adds the model's words and what the agent is told then to its session.
func (a *agent) goesOn(told string) {
	a.entries = append(a.entries, a.says("assistant", "I am stuck."), a.says("user", told))
}

// TestTheEndOfABareTurn: an agent that ends with it goes on in its session, and has ended its task with the next turn that has tools.
func TestTheEndOfABareTurn(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		a.untilBare()
		a.begin() // also a watchdog that begins anew knows of it
		a.service.Ended(true)
		act := a.service.Act()
		if act == nil || act.Rung != policy.RungNoTools || act.Task != "form" || !strings.Contains(act.Message, "your run ended with it") {
			t.Fatalf("%+v", act)
		}
		c := a.service.Conversation()
		if len(c.Anomalies) == 0 || !strings.Contains(c.Anomalies[0].Message, "the agent ended: the watchdog starts it again in its session") {
			t.Errorf("people are told %+v", c)
		}
		if last := a.book.steps[len(a.book.steps)-1]; last.Rung != "NoTools" || last.Over || last.Message != act.Message || last.Channel != "" {
			t.Errorf("%+v", last)
		}
		a.begin()
		if again := a.service.Act(); again == nil || *again != *act {
			t.Fatalf("%+v", again)
		}
		a.service.Ended(true) // which is heard again after a crash
		if again := a.service.Act(); *again != *act {
			t.Fatalf("%+v", again)
		}
		a.service.Settle(act.ID, true)
		a.goesOn(act.Message)
		if sent := a.ask(); a.bare(sent) {
			t.Fatalf("no tools again: %s", sent)
		}
		a.begin() // that it goes on is known at once
		a.service.Ended(true)
		if act := a.service.Act(); act != nil {
			t.Errorf("%+v", act)
		}
	})
}

// TestGoesOnInTheSameMessage: a client that puts what it is told into the last message of its session has its tools again, too.
func TestGoesOnInTheSameMessage(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.untilBare()
	a.service.Ended(true)
	act := a.service.Act()
	a.service.Settle(act.ID, true)
	last := &a.entries[len(a.entries)-1]
	*last = strings.TrimSuffix(*last, "]}") + fmt.Sprintf(`,{"type":"text","text":%q}]}`, act.Message)
	if sent := a.ask(); a.bare(sent) {
		t.Fatalf("no tools again: %s", sent)
	}
	a.service.Ended(true)
	if act := a.service.Act(); act != nil {
		t.Errorf("it has ended its task: %+v", act)
	}
}

// TestAnAnswerOfBefore: the answer to a request that was made before the turn without tools, and comes late, is not one to what came after it.
func TestAnAnswerOfBefore(t *testing.T) {
	a := newAgent(t, "anthropic")
	_, before := a.send()
	a.untilBare()
	before.Answered(&conversation.Answer{Ended: true, Stop: conversation.StopEnd}, 0)
	a.service.Ended(true)
	if act := a.service.Act(); act == nil || act.Rung != policy.RungNoTools {
		t.Errorf("%+v", act)
	}
}

// TestAnotherEnd: one that ends again before it has been answered is given up; that a call has failed is no answer.
func TestAnotherEnd(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.untilBare()
	a.service.Ended(true)
	act := a.service.Act()
	a.service.Settle(act.ID, true)
	a.goesOn(act.Message)
	_, exchange := a.send()
	exchange.Failed(failures.Answer{Status: 500})
	_, exchange = a.send()
	exchange.Answered(&conversation.Answer{}, 0) // it broke off
	a.service.Ended(true)
	if act := a.service.Act(); act == nil || act.Rung != policy.RungBlock || !strings.Contains(act.Evidence, "had been started again") {
		t.Errorf("%+v", act)
	}
}

// TestWhoHasEnded: what is not the end of a turn without tools of the main thread.
func TestWhoHasEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		does func(a *agent)
		ends bool
	}{
		"the turn":                    {func(*agent) {}, true},
		"asked once more":             {func(a *agent) { a.inWords("I am stuck.") }, true},
		"a helper is answered":        {func(a *agent) { a.helper() }, true},
		"another turn, in words":      {func(a *agent) { a.goesOn("Go on."); a.inWords("Done.") }, false},
		"another turn, in calls":      {func(a *agent) { a.goesOn("Go on."); a.ask() }, false},
		"started again, in a new one": {func(a *agent) { a.startAgain(); a.entries = []string{a.says("user", "Something else.")}; a.ask() }, false},
		"another task":                {func(a *agent) { a.task = "tests" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, "anthropic")
			a.ask()
			a.helper()
			a.untilBare()
			tc.does(a)
			a.service.Ended(true)
			if act := a.service.Act(); (act != nil) != tc.ends {
				t.Errorf("%+v", act)
			}
		})
	}
}

// TestAHelperWithoutTools: a turn without tools of an agent that works for the main one is not what the main one ends with.
func TestAHelperWithoutTools(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.ask()
	a.calls++ // what the main one has called is not answered
	a.entries = []string{a.says("user", "Look at the tests, and say what you see.")}
	a.untilBare()
	a.service.Ended(true)
	if act := a.service.Act(); act != nil {
		t.Errorf("%+v", act)
	}
}

// startAgain is what is done when it has ended.
func (a *agent) startAgain() {
	a.t.Helper()
	a.service.Ended(true)
	a.service.Settle(a.service.Act().ID, true)
}

// helper of the agent asks about one thing more, and is answered.
func (a *agent) helper() {
	a.t.Helper()
	main := a.entries
	a.entries = []string{a.says("user", "Look at the tests, and say what you see.")}
	for range a.calls {
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
	}
	a.ask()
	a.entries = main
}

// TestAHeldAgentEnds: what would have held the agent's next call is wanted no more when the agent has ended.
func TestAHeldAgentEnds(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.untilBare()
	a.service.state.Act = &session.Act{ID: "held", Task: "form", Rung: policy.RungHold}
	a.service.Ended(true)
	if act := a.service.Act(); act == nil || act.Rung != policy.RungNoTools {
		t.Errorf("%+v", act)
	}
	a.service.state.Act = &session.Act{ID: "anew", Task: "form", Rung: policy.RungRestart}
	a.service.Ended(true)
	if act := a.service.Act(); act.ID != "anew" {
		t.Errorf("%+v", act)
	}
}

// TestAnotherAttempt begins without the end of the one before.
func TestAnotherAttempt(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.untilBare()
	a.attempt++
	a.begin()
	a.service.Ended(true)
	if act := a.service.Act(); act != nil {
		t.Errorf("%+v", act)
	}
}
