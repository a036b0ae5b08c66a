// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// salute is a report, and when it was made.
type salute struct {
	at time.Duration
	*protocol.Conversation
}

// salutes of an agent that lives as it likes, on the clock of a bubble. Its runner never answers.
func salutes(t *testing.T, a *agent, lives func()) (all []salute) {
	t.Helper()
	a.clock = time.Now
	a.begin()
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer stop()
	go a.service.Follow(ctx, func(ctx context.Context) (protocol.RunnerPulse, error) {
		<-ctx.Done()
		return protocol.RunnerPulse{}, ctx.Err()
	})
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.service.Changed():
				all = append(all, salute{time.Since(began), a.service.Conversation()})
			}
		}
	}()
	lives()
	synctest.Wait()
	return all
}

// TestAStallNamesItsPlace: the agent, its Feature's condition and what is written down say which task a stall is in, and at which file.
func TestAStallNamesItsPlace(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.entries = append(a.entries, a.called("Read", `{"file_path":"web/form.tsx"}`, "export {}")...)
	told := ""
	for n := range 16 {
		if sent := a.ask(); told == "" && strings.Contains(sent, "[SUPERVISOR]") {
			told = sent
		}
		a.entries = append(a.entries, a.called("TodoWrite", fmt.Sprintf(`{"todo":"%d"}`, n), fmt.Sprint("ok ", n))...)
	}
	const place = "the task is form, and the last file that was read or written is web/form.tsx"
	c, steps := a.service.Conversation(), a.book.steps
	if !strings.Contains(told, place) || len(c.Anomalies) != 1 || !strings.Contains(c.Anomalies[0].Message, place) || len(steps) != 1 || !strings.Contains(steps[0].Evidence, place) {
		t.Errorf("the agent is told %s\nthe condition is %+v\nwhat is written down is %+v", told, c.Anomalies, steps)
	}
}

// TestReportsAreSeldom: however fast an agent is and whatever is done about it, there is one report in 10 seconds at most. What was held back is
// reported when they are over, though the agent asks nothing any more and its runner does not answer.
func TestReportsAreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, "anthropic")
		a.policy.Anomalies.CheckEveryTurns, a.policy.Anomalies.CooldownTurns = 1, 1
		all := salutes(t, a, func() {
			for range 120 {
				time.Sleep(time.Second)
				a.ask()
				a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: cannot")...)
			}
			for i := range 5 { // it does something else
				a.entries = append(a.entries, a.called("Read", fmt.Sprintf(`{"file_path":"/workspace/%d.go"}`, i), fmt.Sprintf("package p%d", i))...)
				time.Sleep(100 * time.Millisecond)
				a.ask()
			}
			if c := a.service.Conversation(); len(c.Anomalies) > 0 {
				t.Fatalf("it is not over: %+v", c.Anomalies)
			}
			time.Sleep(10 * time.Second)
		})
		if n := len(all); n != 13 || len(all[1].Anomalies) == 0 || len(all[n-1].Anomalies) > 0 || all[n-1].Turn != 125 {
			t.Fatalf("%d reports, the last %+v", n, all[n-1].Conversation)
		}
		for i := range all[1:] {
			if pause := all[i+1].at - all[i].at; pause != 10*time.Second {
				t.Errorf("%s between reports %d and %d", pause, i, i+1)
			}
		}
	})
}

// TestReportsOfChanges: a condition that appears or ends, another level of PACE, and a rung that is climbed, are reported at once, when there was no report for 10
// seconds. That the agent is told the same again is not.
func TestReportsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, "anthropic")
		a.policy.Anomalies.CheckEveryTurns, a.policy.Anomalies.CooldownTurns = 1, 1
		a.policy.Roles = []policy.Role{{Name: "implementor", SaluteEveryTurns: 1000, Alternate: "Write a test."}}
		turn := func(tool, arguments, result string) {
			time.Sleep(12 * time.Second)
			a.ask()
			a.entries = append(a.entries, a.called(tool, arguments, result)...)
		}
		all := salutes(t, a, func() {
			for range 14 {
				turn("Read", `{"file_path":"/workspace/a.go"}`, "package a")
			}
			for n := range 8 {
				turn("Read", fmt.Sprintf(`{"file_path":"/workspace/%d.go"}`, n), fmt.Sprintf("package p%d", n))
			}
		})
		var got []string
		for _, s := range all {
			text := fmt.Sprint("turn ", s.Turn, " ", s.Pace)
			for _, x := range s.Anomalies {
				_, done, _ := strings.Cut(x.Message, "; in turn")
				text += ", " + x.Type + done
			}
			got = append(got, text)
		}
		want := []string{
			"turn 1 Primary",
			"turn 6 Alternate, PaceEscalated 6 the watchdog told the model, AgentLooping",
			"turn 7 Contingent, PaceEscalated 7 the watchdog told the model, AgentLooping",
			"turn 12 Emergency, PaceEscalated 12 the watchdog told the model, AgentLooping",
			"turn 13 Emergency, PaceEscalated 12 the watchdog told the model, AgentLooping 13 the watchdog told the model",
			"turn 14 Emergency, PaceEscalated 14 the watchdog told the model, AgentStalled, AgentLooping 13 the watchdog told the model",
			"turn 15 Emergency, PaceEscalated 14 the watchdog told the model, AgentStalled 15 the watchdog told the model, AgentLooping 13 the watchdog told the model",
			"turn 18 Primary",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if n := len(a.book.steps); n < 5 {
			t.Errorf("told %d times", n)
		}
	})
}

// TestReportsWhatTheAgentAwaits: what the agent's tools have left running when its model has given its last answer is reported at once, until the model
// is asked again.
func TestReportsWhatTheAgentAwaits(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.ask()
	a.entries = append(a.entries, a.called("Read", `{}`, "It runs in the background.")...)
	a.inWords("I wait for the build.")
	for reported := true; reported; { // what was said before
		select {
		case <-a.service.Changed():
		default:
			reported = false
		}
	}
	a.now = a.now.Add(time.Minute)
	a.service.Pulse(protocol.RunnerPulse{Processes: 3, Age: 3 * time.Minute, Commands: []protocol.RunnerProcess{
		{Name: "make\x1b[2J", Age: time.Minute}, {Name: "mcp-server", Age: 3 * time.Minute},
	}})
	const want = `the background command "make\x1b[2J"`
	if c := a.service.Conversation(); c.Awaits != want {
		t.Errorf("it waits for %q, want %q", c.Awaits, want)
	}
	select {
	case <-a.service.Changed():
	default:
		t.Error("what it waits for is not reported")
	}
	a.entries = append(a.entries, a.says("assistant", "I wait for the build."), a.says("user", "The build has ended."))
	a.send()
	if c := a.service.Conversation(); c.Awaits != "" {
		t.Errorf("it waits for %q", c.Awaits)
	}
}
