// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// abacus is a runtime that only this test knows: it starts the command its own way and knows of no pauses.
type abacus struct{}

func (abacus) Launch(t runtimes.Task) runtimes.Launch {
	return runtimes.Launch{Argv: append([]string{"env", "BEADS=10"}, t.Command...), Env: append(t.Env, "HOME="+t.Home+"/abacus"), Files: map[string]string{"abacus/rods": "13"}}
}

func (abacus) Pause(string, time.Duration) (ask, resume any) { return nil, nil }

// A runtime is an adapter and a line of the table. One that knows of no pauses is not asked, whatever its agent says.
func TestARuntimeIsAnAdapter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom, shadow, func(o *protocol.Orders) { o.Agent.Runtime = "abacus" })
	w.runtimes = []runtimes.Record{{Name: "abacus", Available: true, Interactive: true, Adapter: abacus{}}}
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo '{"type":"capabilities","pause_resume":true}' >&$TIDEWAITER_REPLY_FD
			echo evil > web/legacy/evil.html; ` + w.signalled("written") + untilTold + `echo "$BEADS $(cat "$HOME/rods") $HOME $TIDEWAITER_TASK" > web/good.html`
	})
	p := w.start(1, nil)
	w.waitSignal("written")
	if first := w.checkpointNow("look"); !first.Frozen || first.Pause != nil {
		t.Errorf("frozen %v, pause %+v", first.Frozen, first.Pause)
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got, want := w.delivered("web/good.html"), "10 13 "+w.paths.Home+"/abacus login"; got != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
}

// An agent whose runtime has no adapter is not started, and the end says why.
func TestAnUnknownRuntimeIsNotStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "echo one > web/one.html", func(o *protocol.Orders) { o.Agent.Runtime = "abacus" })
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentNotStarted)
	if !strings.Contains(f.Message, `this version cannot start the runtime "abacus": choose another spec.agent.runtime`) {
		t.Errorf("message %q", f.Message)
	}
}

// monk is a runtime with sessions: it is told by variables whether it goes on, and what is wrong.
type monk struct{ abacus }

func (monk) Launch(t runtimes.Task) runtimes.Launch {
	env := append(slices.Clone(t.Env), "HOME="+t.Home, "CORRECTION="+t.Correction)
	if t.Interrupted {
		env = append(env, "INTERRUPTED=1")
	}
	return runtimes.Launch{Argv: t.Command, Env: env}
}

// newMonastery has an agent with a session, which runs a script.
func newMonastery(t *testing.T, script string, change ...func(*protocol.Orders)) *world {
	w := newWorld(t, script, append([]func(*protocol.Orders){seldom, func(o *protocol.Orders) { o.Agent.Runtime = "monk" }}, change...)...)
	w.runtimes = []runtimes.Record{monastery}
	return w
}

// monastery is the record of that runtime.
var monastery = runtimes.Record{Name: "monk", Available: true, Interactive: true, Sessions: true, Adapter: monk{}}

// correctedScript breaks a rule. When it is told, it breaks the rule at another path; when it is told again, it fixes that.
const correctedScript = `if [ "$CORRECTION" ]; then echo "$CORRECTION" >> "$HOME/told"; else echo good > web/good.html; echo evil > web/legacy/evil.html; exit 0; fi
	if [ -e web/legacy/evil.html ]; then mv web/legacy/evil.html web/legacy/worse.html; else rm web/legacy/worse.html; fi`

// TestAnAgentIsCorrected: one that has ended with work that is not valid goes on in its session, is told what is wrong, and its
// work is delivered in the same attempt; also where the watchdog ends in the middle of it.
func TestAnAgentIsCorrected(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]struct {
		step string
		n    int
	}{
		"undisturbed": {}, "the correction was journaled": {"task begun", 2}, "the correction was launched": {"agent launched", 2},
		"the correction was started": {"task started", 2}, "the second one was launched": {"agent launched", 3}, "the checkpoint was acted on": {"done journaled", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMonastery(t, correctedScript)
			var p *pod
			if crash.step == "" {
				p = w.start(1, nil)
			} else {
				p = w.start(1, pullAt(crash.step, crash.n))
				if err := p.wait(); !errors.Is(err, errPulled) {
					t.Fatalf("watchdog: %v", err)
				}
				p.watch(nil)
			}
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantBlob("good\n", true)
			w.wantBlob("evil\n", false)
			told, err := os.ReadFile(filepath.Join(w.paths.Home, "told"))
			for _, part := range []string{`"web/legacy/evil.html", rule forbidden-areas: `, `"web/legacy/worse.html", rule forbidden-areas: `} {
				if strings.Count(string(told), part) != 1 {
					t.Errorf("%q is not said once in %q (%v)", part, told, err)
				}
			}
			w.wantHealthy()
		})
	}
}

// TestWorkThatWentBackIsNotCorrected: where the strategy puts the work back, the agent would find nothing to correct, and what it
// leaves would be valid without it.
func TestWorkThatWentBackIsNotCorrected(t *testing.T) {
	t.Parallel()
	w := newMonastery(t, correctedScript, shadow)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
}

// TestACorrectionInVain: an agent that does not fix its work is told as often as the policy allows.
func TestACorrectionInVain(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{0: 1, 2: 3} {
		w := newMonastery(t, `echo evil > web/legacy/evil.html; echo run >> "$HOME/runs"`, func(o *protocol.Orders) { o.Policy.Supervision.MaxCorrections = most })
		wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
		runs, err := os.ReadFile(filepath.Join(w.paths.Home, "runs"))
		if got := strings.Count(string(runs), "run"); err != nil || got != want {
			t.Errorf("at most %d corrections: %d runs, want %d (%v)", most, got, want, err)
		}
	}
}

// TestALostAgentGoesOnWithItsSession: one whose pod is lost, or that was suspended, is told that it was interrupted; one that failed
// begins anew.
func TestALostAgentGoesOnWithItsSession(t *testing.T) {
	t.Parallel()
	w := newMonastery(t, "")
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo "${INTERRUPTED:-0}" >> "$HOME/runs"; case $(wc -l < "$HOME/runs") in
			1) ` + w.signalled("first") + w.waitFor("never") + `;; 2) ` + w.signalled("second") + w.waitFor("never") + `;; 3) exit 7;; esac; echo a > web/a.html`
	})
	p := w.start(1, nil)
	w.waitSignal("first")
	p.kill()
	if err := p.wait(); err != nil {
		t.Fatalf("watchdog: %v", err)
	}
	p = w.start(2, nil)
	w.waitSignal("second")
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = false })
	wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	wantFinal(t, w.start(4, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	runs, err := os.ReadFile(filepath.Join(w.paths.Home, "runs"))
	if got := strings.Join(strings.Fields(string(runs)), " "); err != nil || got != "0 1 1 0" {
		t.Errorf("interrupted: %q, want 0 1 1 0 (%v)", got, err)
	}
}
