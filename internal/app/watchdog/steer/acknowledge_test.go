// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// findsCritical is a checkpoint that finds rules of severity Critical broken.
func findsCritical(s *Service, sequence int64, checkpoint string, rules ...string) {
	var list []protocol.Violation
	for _, rule := range rules {
		list = append(list, protocol.Violation{Rule: rule, Path: "a.md", Severity: policy.Critical, Message: "it is outside"})
	}
	s.Post(func(b *notice.Board) bool {
		b.Broken(sequence, notice.Broken(checkpoint, time.Time{}, judge.Judgement{Severity: policy.Critical, Violations: list}, nil, nil))
		return true
	})
}

const (
	understandsAreas   = "I wrote to the wrong place.\nVIOLATION areas: UNDERSTOOD - I write to web"
	understandsSecrets = "VIOLATION secrets: UNDERSTOOD - I read the token from the environment"
)

// TestACriticalViolationIsAcknowledged in each dialect by a line of the model's answer, once. What a restarted watchdog has not heard stands in the
// next request. Words in a quotation, in a tool's result, of a person and of another agent acknowledge nothing.
func TestACriticalViolationIsAcknowledged(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		p.works()
		p.works()
		main := p.entries
		p.entries = []string{p.says("user", "You work for another agent. Find the labels.")}
		p.works()
		sub := p.entries
		p.entries = main
		p.answers(understandsAreas)
		findsCritical(p.service, 3, "login-3", "areas", "secrets")
		if told := p.works(); strings.Count(told, "VIOLATION \\u003crule\\u003e: UNDERSTOOD")+strings.Count(told, "VIOLATION <rule>: UNDERSTOOD") != 1 || !strings.Contains(told, "The rules are: areas, secrets.") {
			t.Fatalf("told %s", told)
		}
		p.entries = append(p.entries, p.called("Read", `{"file_path":"/workspace/b.go"}`, understandsAreas)...)
		p.works()
		p.entries = append(p.entries, p.says("user", understandsAreas))
		p.works()
		p.answers("They say:\n> " + understandsSecrets + "\n```\n" + understandsSecrets + "\n```")
		main = p.entries
		p.entries = sub
		p.answers(understandsAreas)
		p.entries = main
		if len(p.acknowledged) > 0 {
			t.Fatalf("acknowledged by others: %+v", p.acknowledged)
		}
		p.answers(understandsAreas)
		p.restart()
		p.answers(understandsAreas)
		p.send()
		p.restart() // it was away when the model answered
		p.entries = append(p.entries, p.says("assistant", understandsSecrets), p.says("user", "Go on."))
		p.works()
		for i := range p.acknowledged {
			if p.acknowledged[i].Turn == 0 {
				t.Errorf("no turn: %+v", p.acknowledged[i])
			}
			p.acknowledged[i].Turn = 0
		}
		want := []protocol.Acknowledgment{{Checkpoint: 3, Rule: "areas", Text: "I write to web"}, {Checkpoint: 3, Rule: "secrets", Text: "I read the token from the environment"}}
		if diff := cmp.Diff(want, p.acknowledged); diff != "" {
			t.Errorf("acknowledged (-want +got):\n%s", diff)
		}
	})
}

// TestSilenceIsToldToPeople: after 12 turns without a word the model is told again, once, and people are after 12 more; a conversation that was made
// shorter does not lose it, and a word ends it at any time.
func TestSilenceIsToldToPeople(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		p := newPerson(t, a)
		p.works()
		findsCritical(p.service, 1, "login-1", "areas")
		p.works()
		const again = "You have not acknowledged rules of severity critical"
		for n := range 12 {
			if sent := p.works(); n < 11 && strings.Contains(sent, again) {
				t.Fatalf("told again in turn %d", n)
			} else if n == 11 && strings.Count(sent, again) != 1 {
				t.Fatalf("not told again: %s", sent)
			}
		}
		p.restart()
		for range 11 {
			p.works()
		}
		if silent := p.service.Silent(); len(silent) > 0 {
			t.Errorf("people are told too early: %q", silent)
		}
		p.works()
		if silent := p.service.Silent(); !cmp.Equal(silent, []string{"rule areas at checkpoint login-1"}) {
			t.Errorf("people are told %q", silent)
		}
		p.answers(understandsAreas)
		if silent := p.service.Silent(); len(silent) > 0 || len(p.acknowledged) != 1 {
			t.Errorf("people are told %q, acknowledged %+v", silent, p.acknowledged)
		}
	})
}

// TestAnAcknowledgmentThatIsNotKept was not heard: the agent has to say it again.
func TestAnAcknowledgmentThatIsNotKept(t *testing.T) {
	p := newPerson(t, newAgent(t, "anthropic"))
	findsCritical(p.service, 1, "login-1", "areas", "secrets")
	p.works()
	p.away = errors.New("no space left on device")
	if err := p.service.Understood(notice.Understood{Rule: "areas"}); err == nil {
		t.Error("taken though it is not kept")
	}
	p.away = nil
	if err := p.service.Understood(notice.Understood{Rule: "areas", Instead: "web"}); err != nil {
		t.Error(err)
	}
	if err := p.service.Understood(notice.Understood{Rule: "areas", Instead: "web"}); err == nil || !strings.Contains(err.Error(), "no acknowledgment of this rule is due") {
		t.Errorf("once more: %v", err)
	}
	if len(p.acknowledged) != 1 {
		t.Errorf("acknowledged %+v", p.acknowledged)
	}
}

// TestAnAgentWithToolsAcknowledges: its turns are the results of its tools.
func TestAnAgentWithToolsAcknowledges(t *testing.T) {
	p := newPerson(t, newAgent(t, "anthropic"))
	findsCritical(p.service, 1, "login-1", "areas")
	if words := p.service.Words(); !strings.Contains(words, "The rules are: areas.") {
		t.Fatalf("told %q", words)
	}
	for range 11 {
		if words := p.service.Words(); words != "" {
			t.Fatalf("told %q", words)
		}
	}
	if words := p.service.Words(); !strings.Contains(words, "You have not acknowledged") {
		t.Fatalf("told %q", words)
	}
	if err := p.service.Understood(notice.Understood{Rule: "areas"}); err != nil || len(p.acknowledged) != 1 {
		t.Errorf("%v, acknowledged %+v", err, p.acknowledged)
	}
}

// TestLinesAreNotToldTwice: an agent that takes lines hears nothing by its calls of models, and its turns are its checkpoints.
func TestLinesAreNotToldTwice(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.reach.Lines = true
	p := newPerson(t, a)
	p.service.Post(func(b *notice.Board) bool {
		b.Asked(1, "login-1", []string{"areas"})
		return true
	})
	for n := range 12 {
		if due := p.service.Checked(); (len(due) > 0) != (n == 11) {
			t.Errorf("checkpoint %d: %+v", n, due)
		}
	}
	for range 12 {
		if sent := p.works(); strings.Contains(sent, supervisor) {
			t.Fatalf("told by its model: %s", sent)
		}
	}
	if silent := p.service.Silent(); len(silent) != 1 {
		t.Errorf("people are told %q", silent)
	}
}
