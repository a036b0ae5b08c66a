// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/direct"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// pages are a journal in memory.
type pages struct{ state journal.State }

func (p *pages) State() journal.State { return p.state }

func (p *pages) Note(r journal.Record) (err error) {
	p.state, err = p.state.Apply(r)
	return err
}

// person gives an agent directives, by way of orders.
type person struct {
	*agent
	pages  *pages
	desk   *direct.Service
	orders protocol.Orders
}

func newPerson(t *testing.T, a *agent) *person {
	t.Helper()
	begun, err := journal.Replay([]journal.Record{{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}})
	if err != nil {
		t.Fatal(err)
	}
	p := &person{agent: a, pages: &pages{begun}}
	p.restart()
	return p
}

// restart the watchdog.
func (p *person) restart() {
	p.desk = direct.New(p.pages, slog.New(slog.DiscardHandler))
	p.desk.Follow(p.orders)
	p.directives = p.desk
	p.begin()
}

func (p *person) gives(id, text string) {
	p.orders.Directives = append(p.orders.Directives, protocol.Directive{ID: id, Source: protocol.SourcePerson, Description: text})
	p.desk.Follow(p.orders)
}

// works for a turn, and gives what its model gets.
func (p *person) works() string {
	p.t.Helper()
	sent := p.ask()
	p.entries = append(p.entries, p.called("Edit", fmt.Sprintf(`{"file_path":"/workspace/%d.go","old_string":"a","new_string":"b"}`, p.calls), fmt.Sprintf("done %d", p.calls))...)
	p.service.Moved()
	return sent
}

// says that it has ended its turn with some words, and is asked to go on.
func (p *person) answers(text string) {
	p.t.Helper()
	_, exchange := p.send()
	answer := &conversation.Answer{Ended: true, Stop: conversation.StopEnd}
	answer.Say(text)
	exchange.Answered(answer, 0)
	p.entries = append(p.entries, p.says("assistant", text), p.says("user", "Go on."))
}

func (p *person) states() (all []string) {
	for _, s := range p.desk.Status() {
		all = append(all, s.ID+" "+s.State)
	}
	return all
}

func (p *person) want(what string, states ...string) {
	p.t.Helper()
	if got := p.states(); !slices.Equal(got, states) {
		p.t.Errorf("%s: %q, want %q", what, got, states)
	}
}

// TestADirectiveIsTold with the next request of every dialect, and stands there in all later ones, also after a restart. It is addressed by the
// agent's own words, which are heard in its answer.
func TestADirectiveIsTold(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		if sent := p.works(); strings.Contains(sent, supervisor) {
			t.Fatalf("told of nothing: %s", sent)
		}
		p.gives("use-dict", "Take the labels from the dictionary.")
		p.want("before the next call", "use-dict Pending")
		told := p.works()
		if strings.Count(told, "Take the labels from the dictionary.") != 1 {
			t.Fatalf("not told: %s", told)
		}
		p.want("after it", "use-dict Active")
		common := strings.TrimSuffix(told[:strings.LastIndex(told, `],"tools"`)], "]}")
		for range 3 {
			if next := p.works(); !strings.HasPrefix(next, common) || strings.Count(next, supervisor) != 1 {
				t.Fatalf("the request after it:\n%s\nis to begin with\n%s", next, common)
			}
			p.restart()
		}
		p.answers("It is done.\nDIRECTIVE use-dict: ADDRESSED - by web/dict.ts\nDIRECTIVE other: ADDRESSED")
		p.want("after the agent's word", "use-dict Addressed")
		p.restart()
		if next := p.works(); strings.Count(next, supervisor) != 1 {
			t.Errorf("told again: %s", next)
		}
	})
}

// TestTheAnswerWasNotHeard: the watchdog was away when the model answered, and finds its words in the next request.
func TestTheAnswerWasNotHeard(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		p.gives("use-dict", "Take the labels from the dictionary.")
		p.send()
		p.want("no answer has come", "use-dict Pending")
		p.restart()
		p.entries = append(p.entries, p.says("assistant", "DIRECTIVE use-dict: CANNOT - there is none"), p.says("user", "Go on."))
		p.works()
		p.want("by its words", "use-dict Escalated")
	})
}

// TestACallThatFails has told nothing: the directive stays pending, and the client's next try has it in the same place.
func TestACallThatFails(t *testing.T) {
	p := newPerson(t, newAgent(t, "anthropic"))
	p.gives("use-dict", "Take the labels from the dictionary.")
	first, exchange := p.send()
	exchange.Failed(failures.Answer{Status: 529})
	p.want("the provider is overloaded", "use-dict Pending")
	if second := p.works(); second != first {
		t.Errorf("the second try:\n%s\nand the first:\n%s", second, first)
	}
	p.want("it has answered", "use-dict Active")
}

// TestACallThatFailsAndIsAlteredThen: so it is where the client says something else with the next try, before and behind what was said.
func TestACallThatFailsAndIsAlteredThen(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		alters := clients(a)
		p.client = func(entries []string) []string {
			return alters["a reminder at the end of each request"](alters["the time at the beginning"](entries))
		}
		p.works()
		p.works()
		p.gives("use-dict", "Take the labels from the dictionary.")
		for range 3 {
			sent, exchange := p.send()
			exchange.Failed(failures.Answer{Status: 529})
			if strings.Count(sent, "Take the labels from the dictionary.") != 1 {
				t.Errorf("told: %s", sent)
			}
			p.want("the provider is overloaded", "use-dict Pending")
		}
		p.works()
		p.want("it has answered", "use-dict Active")
	})
}

// TestWhatHoldsNoDirectiveBack: neither Audit nor a ladder that only tells people nor a supervision that is off.
func TestWhatHoldsNoDirectiveBack(t *testing.T) {
	for name, change := range map[string]func(*policy.Effective){
		"Audit":   func(p *policy.Effective) { p.Enforcement = policy.Audit },
		"Observe": func(p *policy.Effective) { p.Anomalies.Ladder = policy.RungObserve },
		"off":     func(p *policy.Effective) { p.Supervision.Enabled = false },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, newAgent(t, "openai-chat"))
			change(&p.policy)
			p.gives("use-dict", "Take the labels from the dictionary.")
			if sent := p.works(); !strings.Contains(sent, "Take the labels") {
				t.Errorf("not told: %s", sent)
			}
		})
	}
}

// TestBesideAnAnomaly: what is wrong and what people want are said in one note, which is JSON in every dialect.
func TestBesideAnAnomaly(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		turns := len(newAgent(t, a.dialect.Name).loop(12))
		p := newPerson(t, a)
		for range turns - 1 {
			p.ask()
			p.entries = append(p.entries, p.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		}
		p.gives("use-dict", "Take the labels from the dictionary.")
		if sent := p.ask(); strings.Count(sent, supervisor) != 2 || !strings.Contains(sent, "Take the labels") {
			t.Errorf("told: %s", sent)
		}
	})
}

// TestANewConversation has heard nothing: what is active is told in it, and what was settled and holds, in another task, in a new session of the same
// one, and after the client has compacted the old one.
func TestANewConversation(t *testing.T) {
	for name, change := range map[string]func(p *person){
		"task":    func(p *person) { p.task, p.entries = "tests", []string{p.says("user", "Add tests.")} },
		"session": func(p *person) { p.service.Anew(); p.entries = p.entries[:1] },
		"compaction": func(p *person) {
			for range 4 {
				p.works()
			}
			p.answers("Well.")
			p.entries = []string{p.says("user", "Add a form. So far: a lot.")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, newAgent(t, "anthropic"))
			p.gives("use-dict", "Take the labels from the dictionary.")
			p.gives("done", "Do this.")
			p.works()
			p.answers("DIRECTIVE done: ADDRESSED - so")
			change(p)
			for range 3 {
				if sent := p.works(); strings.Count(sent, "Take the labels from the dictionary.") != 1 || strings.Count(sent, "and holds for the rest of the work: Do this.") != 1 {
					t.Fatalf("told: %s", sent)
				}
			}
		})
	}
}

// TestOthersAreNotTold: agents that work for the main one hear no directives, and their words count for nothing.
func TestOthersAreNotTold(t *testing.T) {
	p := newPerson(t, newAgent(t, "anthropic"))
	p.works()
	p.gives("use-dict", "Take the labels from the dictionary.")
	main := p.entries
	p.entries = []string{p.says("user", "You work for another agent. Find the labels.")}
	if sent := p.works(); strings.Contains(sent, supervisor) {
		t.Fatalf("told: %s", sent)
	}
	sub := p.entries
	p.entries = main
	p.works()
	p.want("the main one was told", "use-dict Active")
	p.entries = sub
	p.answers("DIRECTIVE use-dict: ADDRESSED")
	p.want("another one speaks", "use-dict Active")
}

// TestWhatWasSettledStands: what a person has answered, and what was addressed or cannot be done, is told once to an agent that begins anew, and to a
// conversation that was compacted; what has not changed for a conversation is not told again.
func TestWhatWasSettledStands(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		if err := p.pages.Note(journal.Record{Asked: &protocol.Question{ID: "q1", Text: "Which colour?"}}); err != nil {
			t.Fatal(err)
		}
		p.gives("use-dict", "Take the labels from the dictionary.")
		p.gives("no-js", "Use no JavaScript.")
		p.orders.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}}
		p.desk.Follow(p.orders)
		for range 8 {
			p.works()
		}
		p.answers("DIRECTIVE use-dict: ADDRESSED - by web/dict.ts\nDIRECTIVE no-js: CANNOT - the menu needs it")
		p.want("after its word", "use-dict Addressed", "no-js Escalated", "answer/q1 Addressed")
		facts := []string{"Take the labels from the dictionary.", "by web/dict.ts", "Use no JavaScript.", "the menu needs it", "Blue."}
		wantOnce := func(what, sent string) {
			t.Helper()
			for _, fact := range facts {
				if n := strings.Count(sent, fact); n != 1 {
					t.Errorf("%s: %q is there %d times: %s", what, fact, n, sent)
				}
			}
			if strings.Contains(sent, "Address each directive") {
				t.Errorf("%s: a word is asked for: %s", what, sent)
			}
		}
		p.answers("Anything else?")
		p.entries = []string{p.says("user", "This is what was done so far.")}
		for range 3 {
			wantOnce("after a compaction", p.works())
			p.restart()
		}
		p.service.Anew()
		p.entries = []string{p.says("user", "Add a login page.")}
		for range 3 {
			wantOnce("a new agent", p.works())
			p.restart()
		}
		p.want("afterwards", "use-dict Addressed", "no-js Escalated", "answer/q1 Addressed")
	})
}
