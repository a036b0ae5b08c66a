// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// grave is a checkpoint that finds rules of severity Critical broken.
func (b *board) grave(n int64, rules ...string) {
	var list []protocol.Violation
	for _, rule := range rules {
		list = append(list, protocol.Violation{Rule: rule, Path: "a.md", Severity: policy.Critical, Message: "it is outside"})
	}
	b.Broken(n, notice.Broken("login-1", time.Time{}, judge.Judgement{Severity: policy.Critical, Violations: list}, nil, nil))
}

// turns pass, in which the agent is told something so many times.
func (b *board) turns(n int) (told []string) {
	for range n {
		b.Tick()
		text, next := b.Note(1)
		if b.Board = next; text != "" {
			told = append(told, text)
		}
	}
	return told
}

// TestHeard: a line of the agent's own acknowledges a rule, and nothing else does.
func TestHeard(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []notice.Understood
	}{
		"as asked":        {"Well.\nVIOLATION areas: UNDERSTOOD - I write to web", []notice.Understood{{Rule: "areas", Instead: "I write to web"}}},
		"in Markdown":     {"- **VIOLATION `areas`: UNDERSTOOD** - web", []notice.Understood{{Rule: "areas", Instead: "web"}}},
		"in a sentence":   {"I say VIOLATION areas: UNDERSTOOD", nil},
		"in a quotation":  {"> VIOLATION areas: UNDERSTOOD", nil},
		"in code":         {"```\nVIOLATION areas: UNDERSTOOD\n```", nil},
		"after code":      {"```go\nx\n```\nVIOLATION areas: UNDERSTOOD", []notice.Understood{{Rule: "areas"}}},
		"no word":         {"VIOLATION areas: NOT UNDERSTOOD", nil},
		"another word":    {"VIOLATION areas: UNDERSTOODLY", nil},
		"another subject": {"VIOLATION two words: UNDERSTOOD", nil},
	} {
		if diff := cmp.Diff(tc.want, notice.Heard(tc.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	long := notice.Heard("VIOLATION areas: UNDERSTOOD - " + strings.Repeat("why ", 500_000))
	if len(long) != 1 || len([]rune(long[0].Instead)) > 300 {
		t.Errorf("of 2 MB %d are heard", len(long))
	}
	if many := notice.Heard(strings.Repeat("VIOLATION areas: UNDERSTOOD\n", 1000)); len(many) > 32 {
		t.Errorf("%d are heard", len(many))
	}
}

// TestAnAgentIsAskedToAcknowledge: once, again after its patience, and then people are told, until it does.
func TestAnAgentIsAskedToAcknowledge(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	b.grave(1, "areas", "secrets")
	first := b.turns(1)
	if len(first) != 1 || !strings.Contains(first[0], "VIOLATION <rule>: UNDERSTOOD") || !strings.HasSuffix(first[0], "The rules are: areas, secrets.") {
		t.Fatalf("told %q", first)
	}
	if said := notice.Heard(first[0]); len(said) > 0 {
		t.Errorf("an agent that repeats it acknowledges %+v", said)
	}
	list, next := b.Acknowledge([]notice.Understood{{Rule: "other"}, {Rule: "secrets", Instead: "I use\x1b[2J the \u202evault"}})
	if diff := cmp.Diff([]protocol.Acknowledgment{{Checkpoint: 1, Rule: "secrets", Text: "I use[2J the vault"}}, list); diff != "" {
		t.Errorf("acknowledged (-want +got):\n%s", diff)
	}
	b.Board = next
	if list, _ := b.Acknowledge([]notice.Understood{{Rule: "secrets"}}); len(list) > 0 {
		t.Errorf("acknowledged again: %+v", list)
	}
	b.Keep(func(int) bool { return false }) // its client made the conversation shorter
	if again := b.turns(1); len(again) != 1 || !strings.HasSuffix(again[0], "The rules are: areas.") {
		t.Errorf("told again %q", again)
	}
	b.Forget(2) // it is corrected, in the same session
	if told := b.turns(notice.Patience - 2); len(told) > 0 {
		t.Errorf("told too early: %q", told)
	}
	if told := b.turns(2); len(told) != 1 || !strings.Contains(told[0], "You have not acknowledged rules") {
		t.Errorf("told %q", told)
	}
	if told := b.turns(notice.Patience - 2); len(told) > 0 || len(b.Silent()) > 0 {
		t.Errorf("told %q, people %q", told, b.Silent())
	}
	if told := b.turns(3); len(told) > 0 || !cmp.Equal(b.Silent(), []string{"rule areas at checkpoint login-1"}) {
		t.Errorf("told %q, people %q", told, b.Silent())
	}
	if list, next = b.Acknowledge([]notice.Understood{{}}); len(list) != 1 || len(next.Silent()) > 0 {
		t.Errorf("late %+v, %q", list, next.Silent())
	}
}

// TestAsksAreBounded, and end with the agent.
func TestAsksAreBounded(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	for n := range int64(100) {
		b.grave(n+1, fmt.Sprint("one-", n), fmt.Sprint("two-", n))
		b.turns(1)
	}
	if list, _ := b.Acknowledge([]notice.Understood{{}}); len(list) != 32 {
		t.Errorf("%d are remembered", len(list))
	}
	if b.Anew(); len(b.Asks) > 0 {
		t.Error("another agent is asked")
	}
}

// TestManyAreAskedAgain in parts: a line for an agent, and a Checkpoint, have room for eight rules.
func TestManyAreAskedAgain(t *testing.T) {
	t.Parallel()
	b := notice.Board{}
	var rules []string
	for n := range 32 {
		rules = append(rules, fmt.Sprint("rule-", n))
	}
	b.Asked(1, "login-1", rules)
	for range notice.Patience {
		b.Tick()
	}
	for range 32 / protocol.MaxAcknowledgments {
		if due := b.Remind(); len(due) != protocol.MaxAcknowledgments {
			t.Fatalf("asks for %d rules at once", len(due))
		}
	}
	if due := b.Remind(); len(due) > 0 {
		t.Errorf("asks for %d rules a third time", len(due))
	}
}

// TestAnAgentThatBreaksTheSameAgain has been silent since it was asked first, and acknowledges the newest checkpoint.
func TestAnAgentThatBreaksTheSameAgain(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	var told []string
	for n := range int64(3 * notice.Patience) {
		b.grave(n+1, []string{"a", "b", "c", "d"}[:2+n%2*2]...)
		told = append(told, b.turns(1)...)
	}
	if text := strings.Join(told, "\n"); strings.Count(text, "You have not acknowledged") == 0 || len(b.Silent()) != 4 {
		t.Errorf("people are told %q, the agent %s", b.Silent(), text)
	}
	if list, _ := b.Acknowledge([]notice.Understood{{Rule: "a"}}); len(list) != 1 || list[0].Checkpoint != 3*notice.Patience {
		t.Errorf("acknowledged %+v", list)
	}
}
