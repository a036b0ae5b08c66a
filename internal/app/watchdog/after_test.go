// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/reporter"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// word is what a watchdog remembers that it has to say to its agent.
type word struct{ data []byte }

func (w *word) Load() ([]byte, error) { return w.data, nil }

func (w *word) Keep(data []byte) error {
	w.data = data
	return nil
}

// atWork is a loop whose agent works, and takes no line. There is a directive for it, a line of steering, a breaker that has just opened, and
// a measure that is over.
func atWork(t *testing.T) *loop {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Runtimes: runtimes.All(), Now: time.Now, Log: slog.New(slog.DiscardHandler), Attempt: 1, FoldAbove: 1 << 30, Paths: Paths{Trusted: t.TempDir()}}
	a := &attempt{options: o, health: &health.Health{}, orders: newInbox()}
	a.reports = reporter.New(reporter.Options{Health: a.health, Now: o.Now, Log: o.Log})
	must(a.openJournal())
	t.Cleanup(func() { must(a.journal.Close()) })
	orders := protocol.Orders{Attempt: 1, Run: "agent", Agent: protocol.Agent{Runtime: "command"}, Tasks: []protocol.Task{{Name: "form"}}, Policy: policy.Merge(policy.Sources{}),
		Directives: []protocol.Directive{{ID: "use-dict", Source: protocol.SourcePerson, Description: "Take the labels from the dictionary."}}}
	for _, r := range []journal.Record{
		{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}, {Orders: &orders}, {Base: &journal.Base{Commit: "c", Tree: "t"}},
		{TaskBegun: &journal.TaskBegun{Name: "form", Policy: orders.Policy}}, {TaskStarted: &journal.TaskStarted{Name: "form", Start: 1}},
	} {
		must(a.journal.Note(r))
	}
	s := newServices(a, nil, true)
	agent, err := runnerlink.Listen(filepath.Join(t.TempDir(), "s"), trusted.NewSession(o.Paths.trusted(), 1))
	must(err)
	t.Cleanup(func() { must(agent.Close()) })
	remembered, err := json.Marshal(&session.State{Attempt: 1, Task: "form", Word: &session.Word{Step: 1, Channel: protocol.ChannelInput, Text: "Stop that."}})
	must(err)
	l := newLoop(s, agent, orders)
	t.Cleanup(l.backend.Close)
	l.steering = steer.New(steer.Options{Terms: a.terms, Cache: &word{data: remembered}, Recorder: steeringRecord{journal: a.journal, handover: s.handover},
		Attempt: 1, Reach: a.reach(), Directives: s.directives, Acknowledged: a.acknowledged, Now: o.Now, Log: o.Log})
	l.acts.steering, l.acts.teller.steering = l.steering, l.steering
	l.state = l.state.Apply(supervise.Connected{Running: true, Leftovers: true}, time.Now())
	l.state.Measure = &supervise.Measure{ID: "m", Over: true}
	l.state.Checkpoints.Breaker, l.state.Checkpoints.Failures = true, repeated
	l.state.Question = &protocol.Question{ID: "q1"} // the tools have none
	return l
}

// said are the types of the lines that the agent of a loop was sent.
func said(t *testing.T, l *loop) (all string) {
	t.Helper()
	l.acts.teller.writer.drain(t.Context())
	text, err := os.ReadFile(filepath.Join(l.attempt.options.Paths.Trusted, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"steering", "directive"} {
		all += strings.Repeat(kind+" ", strings.Count(string(text), fmt.Sprintf(`\"type\":\"%s\"`, kind)))
	}
	return strings.TrimSpace(all)
}

// TestAfter: each event is followed by the same: tools are asked, a measure that is over is settled, failing captures and the breaker are told,
// and the agent hears what it is to be told while it runs. Directives are followed, and are written again, after acts, the runner and orders.
func TestAfter(t *testing.T) {
	const all, steering, nothing = "steering directive", "steering", ""
	for _, tc := range []struct {
		event supervise.Event
		said  string
		moves bool
	}{
		{nil, steering, false},
		{supervise.Allowed{}, steering, false},
		{supervise.AnswerRejected{Message: "No."}, steering, false},
		{supervise.Changed{Paths: 3}, steering, false},
		{supervise.Conversed{}, steering, false},
		{supervise.Steered{Measure: supervise.Measure{ID: "n", Over: true}}, steering, false},

		{supervise.CalledOff{}, all, true},
		{supervise.Answered{}, all, true},
		{supervise.Disconnected{}, all, true},
		{supervise.FrozenNow{}, all, true},
		{supervise.Laid{}, all, true},
		{supervise.Ordered{Orders: protocol.Orders{Tasks: []protocol.Task{{Name: "form"}}}}, all, true},
		{supervise.Pushed{}, all, true},
		{supervise.Refused{}, all, true},
		{supervise.Released{}, all, true},
		{supervise.Resisted{}, all, true},
		{supervise.Reviewed{}, all, true},
		{supervise.RolledBack{}, all, true},
		{supervise.Slipped{}, all, true},
		{supervise.Started{}, all, true},
		{supervise.Terminated{}, all, true},
		{supervise.ThawedNow{}, all, true},
		{supervise.Undelivered{}, all, true},

		{supervise.AgentExited{}, nothing, true},
		{supervise.Connected{}, nothing, true},
		{supervise.Finished{}, all, true},
		{supervise.Killed{}, nothing, true},
		{supervise.NotStarted{}, steering, true},
	} {
		t.Run(fmt.Sprintf("%T", tc.event), func(t *testing.T) {
			l := atWork(t)
			l.after(t.Context(), tc.event)
			if got := said(t, l); got != tc.said {
				t.Errorf("the agent was sent %q, want %q", got, tc.said)
			}
			j := l.attempt.journal.State()
			if followed := len(j.Directives) == 1; followed != tc.moves {
				t.Errorf("directives are followed: %t", followed)
			}
			if l.state.Question != nil {
				t.Error("tools were not asked")
			}
			if l.state.Measure != nil {
				t.Errorf("a measure is not settled: %+v", l.state.Measure)
			}
			if got := l.attempt.health.List(); len(got) != 1 || !strings.Contains(got[0], "checkpoints fail repeatedly") {
				t.Errorf("health %q", got)
			}
			if j.Breaker.Open != l.state.Checkpoints.Breaker {
				t.Errorf("breaker %+v", j.Breaker)
			}
			l.after(t.Context(), nil)
			if got := said(t, l); got != tc.said {
				t.Errorf("the agent was sent %q after nothing", got)
			}
		})
	}
}

// TestAnAgentThatTakesNoLine is written a directive at later occasions, and three times at most.
func TestAnAgentThatTakesNoLine(t *testing.T) {
	l := atWork(t)
	for n := range maxRefused + 2 {
		l.after(t.Context(), supervise.CalledOff{})
		l.after(t.Context(), supervise.Changed{})
		if got, want := strings.Count(said(t, l), "directive"), min(n+1, maxRefused); got != want {
			t.Fatalf("it was written %d times, want %d", got, want)
		}
	}
}

// TestSourcesAsThingsStand: those that are not listened to now.
func TestSourcesAsThingsStand(t *testing.T) {
	l := atWork(t)
	names := map[string]bool{}
	wantSilent := func(want string) {
		t.Helper()
		silent := ""
		for _, s := range sources {
			if names[s.name] = true; s.channel(l).IsNil() {
				silent += s.name + ", "
			}
		}
		if silent != want {
			t.Errorf("not listened to: %q, want %q", silent, want)
		}
	}
	wantSilent("rejection, time, allowance, workspace, quiet, warning, signal, deadline, ")
	l.state.Doing = supervise.Start
	wantSilent("rejection, measure, time, allowance, workspace, quiet, warning, signal, deadline, ")
	l.state.Doing, l.quiet, l.warnings.due, l.terminated, l.timer = supervise.Wait, make(chan time.Time), make(chan time.Time), make(chan struct{}), make(chan time.Time)
	wantSilent("rejection, allowance, workspace, deadline, ")
	l.terminate()
	wantSilent("rejection, allowance, workspace, signal, ")
	l.agent, l.steering = nil, nil
	wantSilent("rejection, measure, runner, allowance, conversation, words, workspace, signal, ")
	if len(names) != len(sources) {
		t.Errorf("%d names of %d sources", len(names), len(sources))
	}
}

// TestWhatCameIsHandledOnce: an error ends the process, and nothing follows it; a channel that was closed gives the zero value.
func TestWhatCameIsHandledOnce(t *testing.T) {
	l := atWork(t)
	closed := make(chan error)
	close(closed)
	var got []error
	fail := errors.New("full")
	s := from("test", func(*loop) <-chan error { return closed }, func(_ *loop, _ context.Context, err error) (supervise.Event, error) {
		got = append(got, err)
		return supervise.CalledOff{}, fail
	})
	came, open := s.channel(l).Recv()
	if err := l.take(t.Context(), s, came); !errors.Is(err, fail) || open || len(got) != 1 || got[0] != nil {
		t.Errorf("%v; %v", err, got)
	}
	if n := len(l.attempt.journal.State().Directives); n != 0 || said(t, l) != "" {
		t.Errorf("%d directives were followed, and it was sent %q", n, said(t, l))
	}
	l.crashed <- fail
	for err := error(nil); !errors.Is(err, fail); { // what is to be said may come first
		err = l.wait(t.Context(), time.Time{})
	}
}
