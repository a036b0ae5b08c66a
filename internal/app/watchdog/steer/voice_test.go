// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// swing the workspace between two trees; the agent asks no model meanwhile.
func (a *agent) swing(times int) {
	for n := range times {
		a.now = a.now.Add(10 * time.Second)
		a.service.Captured(fmt.Sprint("tree", n%2), "Valid")
	}
}

func (a *agent) line() string {
	w, _ := a.service.Line()
	return w.Text
}

// TestALine waits until it was written, also for a watchdog that begins anew, and is not written when the anomaly is over.
func TestALine(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.reach = steering.Reach{Lines: true}
	a.begin()
	a.swing(1)
	a.service.Idle(true)
	a.swing(8)
	if a.line() != "" {
		t.Fatalf("an agent that has ended is told %q", a.line())
	}
	a.service.Idle(false)
	a.swing(2)
	a.begin()
	select {
	case <-a.service.Unspoken():
	default:
		t.Error("nobody is called to write a line")
	}
	w, is := a.service.Line()
	if !is || w.Step != 1 || w.Channel != protocol.ChannelInput || w.Anomaly != "AgentLooping" || !strings.HasPrefix(w.Text, "[SUPERVISOR] the workspace went back") || a.service.Words() != "" {
		t.Fatalf("%+v", w)
	}
	a.service.Said(w.Step + 1)
	if a.line() != w.Text {
		t.Error("another line was written")
	}
	if c := a.service.Conversation(); c == nil || len(c.Anomalies) != 1 || c.Turn != 0 || !strings.HasSuffix(c.Anomalies[0].Message, "; the watchdog is telling the agent") || a.service.Told() {
		t.Errorf("people hear %+v", c)
	}
	a.service.Said(w.Step)
	if c := a.service.Conversation(); c == nil || len(c.Anomalies) != 1 || !strings.HasSuffix(c.Anomalies[0].Message, "; the watchdog told the agent") || !a.service.Told() {
		t.Errorf("people hear %+v", c)
	}
	if a.begin(); a.line() != "" {
		t.Errorf("written, and still there: %q", a.line())
	}
	a.now = a.now.Add(10 * time.Minute)
	if a.swing(2); a.line() == "" {
		t.Fatal("it was not told again")
	}
	if a.service.Captured("another", "Valid"); a.line() != "" {
		t.Errorf("over, and still there: %q", a.line())
	}
	if c := a.service.Conversation(); c != nil {
		t.Errorf("people hear %+v", c)
	}
	if n := len(a.book.steps); n != 3 || a.book.steps[0].Channel != protocol.ChannelInput || a.book.steps[0].Task != "form" || !a.book.steps[2].Over {
		t.Errorf("%+v", a.book.steps)
	}
}

// TestWordsBesideAResult are given once, and to no line.
func TestWordsBesideAResult(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.reach = steering.Reach{Tools: true, Lines: true}
	a.begin()
	a.swing(8)
	a.begin()
	if a.line() != "" {
		t.Errorf("a line: %q", a.line())
	}
	if text := a.service.Words(); !strings.HasPrefix(text, "[SUPERVISOR] the workspace went back") {
		t.Errorf("%q", text)
	}
	if a.begin(); a.service.Words() != "" {
		t.Error("given twice")
	}
}

// TestWhoAsksModelsIsToldThere: neither by tools nor by a line, and what waited to be told so is not told any more.
func TestWhoAsksModelsIsToldThere(t *testing.T) {
	for _, before := range []int{0, 8} {
		a := newAgent(t, "anthropic")
		a.reach = steering.Reach{Tools: true, Lines: true}
		a.begin()
		a.swing(before)
		a.ask()
		a.swing(8)
		a.service.Pulse(protocol.RunnerPulse{Processes: 1})
		if a.line() != "" || a.service.Words() != "" {
			t.Errorf("after %d: %q", before, a.line())
		}
		told := 0
		for range 6 {
			told = strings.Count(a.ask(), supervisor)
			a.entries = append(a.entries, a.called("Read", fmt.Sprintf(`{"file_path":"/workspace/%d.go"}`, a.calls), fmt.Sprint("package a", a.calls))...)
		}
		if told != 1 {
			t.Errorf("after %d: told %d times", before, told)
		}
	}
}

// TestAnotherTaskWithoutModels begins anew: what the files did before says nothing about it.
func TestAnotherTaskWithoutModels(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.reach = steering.Reach{Lines: true}
	a.begin()
	a.swing(8)
	a.task = "tests"
	if a.swing(2); a.line() != "" {
		t.Errorf("%q", a.line())
	}
	if n := len(a.book.steps); n != 2 || !a.book.steps[1].Over || a.book.steps[1].Task != "form" {
		t.Errorf("%+v", a.book.steps)
	}
}
