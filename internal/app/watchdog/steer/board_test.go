// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// finds is a checkpoint that finds a broken rule.
func finds(s *Service, checkpoint string, back *notice.Back) {
	s.Post(func(b *notice.Board) bool {
		b.Broken(0, notice.Broken(checkpoint, time.Time{}, judge.Judgement{Severity: policy.Error, Violations: []protocol.Violation{
			{Rule: "areas", Path: "a.md", Severity: policy.Error, Message: "it is outside"},
		}}, nil, back))
		return true
	})
}

// TestTheBoardIsTold in each dialect: with the next request, behind the same entry in every later one, and once, though the watchdog begins anew. A
// conversation that has lost what still holds is told again, and what was not told yet outlives everything but the agent.
func TestTheBoardIsTold(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		const found = "Checkpoint login-1 found 1 broken rule of severity error."
		want := func(what string, broken, fixed int) {
			t.Helper()
			sent := p.works()
			if strings.Count(sent, found) != broken || strings.Count(sent, "are fixed. There is nothing more to do") != fixed {
				t.Fatalf("%s: want %d times that it is broken, and %d times that it is fixed: %s", what, broken, fixed, sent)
			}
		}
		shorten := func() { // as a client does
			for range 4 {
				p.works()
			}
			p.answers("Well.")
			p.entries = []string{p.says("user", fmt.Sprintf("Add a form. So far: %d calls.", p.calls))}
		}
		want("before", 0, 0)
		finds(p.service, "login-1", nil)
		p.restart()
		want("the next request", 1, 0)
		first := p.works()
		at := strings.Index(first, found)
		p.restart()
		finds(p.service, "login-2", nil) // it says the same
		if later := p.works(); strings.Index(later, found) != at || strings.Count(later, "found 1 broken rule") != 1 {
			t.Fatalf("said elsewhere, or twice: %s", later)
		}
		shorten()
		want("a conversation that was made shorter", 1, 0)
		p.service.Post(func(b *notice.Board) bool {
			b.Valid(0, "login-3")
			return true
		})
		want("fixed", 1, 1)
		shorten()
		want("a conversation that need not know", 0, 0)
		finds(p.service, "login-1", &notice.Back{Paths: []string{"a.md"}})
		if words := p.service.Words(); words != "" {
			t.Errorf("it asks models, and is told by a tool: %q", words)
		}
		want("what went back", 1, 0)
		finds(p.service, "login-1", nil)
		p.service.Anew()
		p.entries = p.entries[:1]
		want("another agent", 0, 0)
	})
}

// TestAQuestionThatWasCutOffIsTold: with the next call of a model after the restart, at the same place in later ones, and once.
func TestAQuestionThatWasCutOffIsTold(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		p.works()
		p.restart()
		p.service.Post(func(b *notice.Board) bool {
			b.Question = &protocol.Question{ID: "q1", Text: "Which colour?"}
			return true
		})
		p.restart() // before it was told
		for range 3 {
			if sent := p.works(); strings.Count(sent, "A restart has cut off your question q1") != 1 {
				t.Fatalf("told: %s", sent)
			}
		}
	})
}

// TestWhatIsFixedInTimeIsCounted: for people, whoever the agent is and whether it asks a model.
func TestWhatIsFixedInTimeIsCounted(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		warn := func(broken ...protocol.Violation) {
			p.service.Post(func(b *notice.Board) bool { return b.Warn(broken, true) })
		}
		warn(protocol.Violation{Rule: "areas", Path: "a.md", Severity: policy.Error}, protocol.Violation{Rule: "areas", Path: "b.md", Severity: policy.Error})
		if c := p.service.Conversation(); c != nil {
			t.Fatalf("nothing is fixed, and nothing was said: %+v", c)
		}
		warn()
		if c := p.service.Conversation(); c == nil || c.FixedInTime != 2 {
			t.Fatalf("without a request: %+v", c)
		}
		p.works()
		p.service.Anew()
		if c := p.service.Conversation(); c == nil || c.FixedInTime != 2 {
			t.Fatalf("of another agent: %+v", c)
		}
		p.restart()
		if c := p.service.Conversation(); c == nil || c.FixedInTime != 2 {
			t.Fatalf("after a restart: %+v", c)
		}
	})
}

// TestTheBoardIsToldByTools to an agent that asks no model, once.
func TestTheBoardIsToldByTools(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		finds(p.service, "login-1", nil)
		if words := p.service.Words(); strings.Count(words, "Checkpoint login-1 found 1 broken rule") != 1 {
			t.Errorf("told %q", words)
		}
		if words := p.service.Words(); words != "" {
			t.Errorf("told again: %q", words)
		}
	})
}
