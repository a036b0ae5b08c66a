// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// abacus is a runtime that only this test knows: it starts the command its own way and knows of no pauses.
type abacus struct{}

func (abacus) Launch(t runtimes.Task) runtimes.Launch {
	return runtimes.Launch{Argv: append([]string{"env", "BEADS=10"}, t.Command...), Env: append(t.Env, "HOME="+t.Home+"/abacus", "ROOM="+strconv.FormatInt(t.Window, 10)), Files: map[string]string{"abacus/rods": "13"}}
}

func (abacus) Pause(string, time.Duration) (ask, resume any) { return nil, nil }

// A runtime is an adapter and a line of the table. One that knows of no pauses is not asked, whatever its agent says.
func TestARuntimeIsAnAdapter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom, shadow, func(o *protocol.Orders) { o.Agent.Runtime = "abacus" })
	w.runtimes = []runtimes.Runtime{{Name: "abacus", Available: true, Interactive: true, Adapter: abacus{}}}
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo '{"type":"capabilities","pause_resume":true}' >&$TIDEWAITER_REPLY_FD
			echo evil > web/legacy/evil.html; ` + w.signalled("written") + untilTold + `echo "$BEADS $(cat "$HOME/rods") $ROOM $HOME $TIDEWAITER_TASK" > web/good.html`
	})
	p := w.start(1, nil)
	w.waitSignal("written")
	if first := w.checkpointNow("look"); !first.Frozen || first.Pause != nil {
		t.Errorf("frozen %v, pause %+v", first.Frozen, first.Pause)
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got, want := w.delivered("web/good.html"), "10 13 64000 "+w.paths.Home+"/abacus login"; got != want {
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
	env := append(slices.Clone(t.Env), "HOME="+t.Home, "CORRECTION="+t.Correction, "REMAINS="+t.Remains, "REPLY="+t.Reply)
	if t.Interrupted {
		env = append(env, "INTERRUPTED=1")
	}
	return runtimes.Launch{Argv: t.Command, Env: env}
}

// newMonastery has an agent with a session, which runs a script.
func newMonastery(t *testing.T, script string, change ...func(*protocol.Orders)) *world {
	w := newWorld(t, script, append([]func(*protocol.Orders){seldom, func(o *protocol.Orders) { o.Agent.Runtime = "monk" }}, change...)...)
	w.runtimes = []runtimes.Runtime{monastery}
	return w
}

// monastery is the record of that runtime.
var monastery = runtimes.Runtime{Name: "monk", Available: true, Interactive: true, Sessions: true, Adapter: monk{}}

// correctedScript breaks a rule. When it is told, it breaks the rule at another path; when it is told again, it fixes that.
const correctedScript = `if [ "$CORRECTION" ]; then echo "$CORRECTION" >> "$HOME/told"; else echo good > web/good.html; echo evil > web/legacy/evil.html; exit 0; fi
	if [ -e web/legacy/evil.html ]; then mv web/legacy/evil.html web/legacy/worse.html; else rm web/legacy/worse.html; fi`

// TestAnAgentIsCorrected: one that has ended with work that is not valid goes on in its session, is told what is wrong, and its
// work is delivered in the same attempt; also where the watchdog ends in the middle of it.
func TestAnAgentIsCorrected(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{"undisturbed": nil,
		// The checkpoint was acted on, the correction was journaled and launched, and the second one was launched.
		"launched": after("done journaled", "task begun", "agent launched", "agent launched"),
		// What was launched before a crash has no such step.
		"started": slices.Concat(past("done journaled"), after("task started")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMonastery(t, correctedScript)
			plugs := newPlugs(t, list)
			p := plugs.processes(w.start(1, plugs.probe()))
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

// TestWorkThatWentBackIsCorrected: where the strategy puts the work back, the agent is told what went and why, and does it again in its session;
// also where the watchdog ends in the middle of it. One that does nothing instead has not succeeded, although what is left is valid.
func TestWorkThatWentBackIsCorrected(t *testing.T) {
	t.Parallel()
	const script = `echo run >> "$HOME/runs"; if [ "$CORRECTION" ]; then echo "$CORRECTION" >> "$HOME/told"; %s; else echo good > web/good.html; echo evil > web/legacy/evil.html; fi`
	for name, tc := range map[string]struct {
		then, step            string
		n, runs               int
		outcome, reason, told string
	}{
		"done again": {then: "echo good > web/good.html", runs: 2, outcome: protocol.OutcomeDelivered, reason: protocol.ReasonDelivered,
			told: `Your work is not delivered yet: checkpoint login-1 breaks rules.`},
		"done again after a crash": {then: "echo good > web/good.html", step: "done journaled", n: 1, runs: 2, outcome: protocol.OutcomeDelivered, reason: protocol.ReasonDelivered,
			told: `Your work went back at checkpoint login-1, and you did no other work: there is nothing to deliver.`},
		"nothing is done":        {then: ":", runs: 3, outcome: protocol.OutcomeBlocked, reason: protocol.ReasonCheckpointInvalid, told: "there is nothing to deliver"},
		"the same is done again": {then: "echo evil > web/legacy/evil.html", runs: 3, outcome: protocol.OutcomeBlocked, reason: protocol.ReasonCheckpointInvalid, told: "files went back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMonastery(t, fmt.Sprintf(script, tc.then), shadow)
			var p *pod
			if tc.step == "" {
				p = w.start(1, nil)
			} else {
				p = w.start(1, pullAt(tc.step, tc.n))
				if err := p.wait(); !errors.Is(err, errPulled) {
					t.Fatalf("watchdog: %v", err)
				}
				p.watch(nil)
			}
			wantFinal(t, p.finish(), tc.outcome, tc.reason)
			if got := strings.Count(w.read("home/runs"), "run"); got != tc.runs {
				t.Errorf("%d runs, want %d", got, tc.runs)
			}
			if told := w.read("home/told"); !strings.Contains(told, tc.told) || !strings.Contains(told, "web/legacy/evil.html") || !strings.Contains(told, "within the rules") {
				t.Errorf("it is told %q", told)
			}
			if tc.outcome == protocol.OutcomeDelivered {
				w.wantBlob("good\n", true)
				w.wantBlob("evil\n", false)
			}
			w.wantHealthy()
		})
	}
}

// TestALostAgentIsToldWhatWentBack: the files that were in no valid checkpoint, whether or not there was a checkpoint of them before.
func TestALostAgentIsToldWhatWentBack(t *testing.T) {
	t.Parallel()
	for name, captured := range map[string]bool{"captured": true, "never captured": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMonastery(t, "")
			w.intake.Order(func(o *protocol.Orders) {
				o.Agent.Command[2] = `echo "$REMAINS" >> "$HOME/remains"; if [ "$INTERRUPTED" ]; then ls web > "$HOME/found"; echo good > web/good.html; exit 0; fi
					echo good > web/good.html; echo evil > web/legacy/evil.html; ` + w.signalled("first") + w.waitFor("never")
			})
			p := w.start(1, nil)
			w.waitStarted(1, "first")
			if captured {
				w.checkpointNow("now")
			}
			p.kill()
			if err := p.wait(); err != nil {
				t.Fatalf("watchdog: %v", err)
			}
			wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			want := `These files of yours were in no valid checkpoint, and went back to the last one: "web/good.html", "web/legacy/evil.html". Checkpoint login-`
			if told := w.read("home/remains"); !strings.HasPrefix(told, "\n"+want) {
				t.Errorf("it is told %q, want nothing and then %q", told, want)
			}
			if found := w.read("home/found"); strings.Contains(found, "good.html") {
				t.Errorf("it found %q", found)
			}
		})
	}
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
// begins anew. Under the restart mode Replay each begins anew.
func TestALostAgentGoesOnWithItsSession(t *testing.T) {
	t.Parallel()
	for mode, want := range map[policy.RestartMode]string{"": "0 1 1 0", policy.RestartResume: "0 1 1 0", policy.RestartAsk: "0 1 1 0", policy.RestartReplay: "0 0 0 0"} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			lostAgent(t, mode, want)
		})
	}
}

func lostAgent(t *testing.T, mode policy.RestartMode, want string) {
	w := newMonastery(t, "")
	w.intake.Order(func(o *protocol.Orders) {
		o.Policy.Supervision.RestartMode = mode
		o.Agent.Command[2] = `echo "${INTERRUPTED:-0}" >> "$HOME/runs"; case $(wc -l < "$HOME/runs") in
			1) ` + w.signalled("first") + w.waitFor("never") + `;; 2) ` + w.signalled("second") + w.waitFor("never") + `;; 3) exit 7;; esac; echo a > web/a.html`
	})
	p := w.start(1, nil)
	w.waitStarted(1, "first")
	p.kill()
	if err := p.wait(); err != nil {
		t.Fatalf("watchdog: %v", err)
	}
	p = w.start(2, nil)
	w.waitStarted(2, "second")
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = false })
	wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	wantFinal(t, w.start(4, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	runs, err := os.ReadFile(filepath.Join(w.paths.Home, "runs"))
	if got := strings.Join(strings.Fields(string(runs)), " "); err != nil || got != want {
		t.Errorf("interrupted: %q, want %s (%v)", got, want, err)
	}
}
