// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// mends writes a page that its gate refuses and, once it has been told so, one that the gate accepts. Each start is counted.
const mends = `echo start >> "$HOME/starts"
	case "$TIDEWAITER_INSTRUCTIONS" in *"exited with code 3"*) echo good > web/page.html;; *) echo bad > web/page.html;; esac`

// newGated is a world with one task and gates after it, each a script.
func newGated(t *testing.T, agent string, scripts ...string) *world {
	t.Helper()
	w := newWorld(t, "", seldom)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = agent
		o.Policy.Supervision.MaxCorrections = 2
		for i, script := range scripts {
			g := protocol.Gate{Name: fmt.Sprint("gate-", i), Command: []string{"/bin/sh", "-c", script}, Timeout: time.Minute}
			o.Gates = append(o.Gates, g)
			o.Tasks[0].Gates = append(o.Tasks[0].Gates, g.Name)
		}
	})
	return w
}

const good = `grep -q good web/page.html || { echo "the page is bad"; exit 3; }`

// marks leaves a mark for each run of a gate, outside of the pod.
func (w *world) marks() string { return "echo run >> " + filepath.Join(w.dir, "gate-runs") + "; " }

// runs counts the runs of gates that leave a mark.
func (w *world) runs() int {
	data, _ := os.ReadFile(filepath.Join(w.dir, "gate-runs"))
	return strings.Count(string(data), "\n")
}

// marking makes the first gate a script that leaves a mark before it does anything.
func (w *world) marking(script string) {
	w.intake.Order(func(o *protocol.Orders) { o.Gates[0].Command[2] = w.marks() + script })
}

// ran lists the gates that ran, as the journal has them.
func (w *world) ran() (all []string) {
	for _, r := range w.journaled() {
		if g := r.GateRan; g != nil {
			all = append(all, fmt.Sprintf("%s %s %d", g.Result.Gate, g.Result.State, g.Result.ExitCode))
		}
	}
	return all
}

func (w *world) wantRan(want ...string) {
	w.t.Helper()
	if got := w.ran(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("gates ran: %q, want %q", got, want)
	}
}

// TestATaskIsDoneWhenItsGatesPass: an agent without a session starts again with what failed; all gates run, so that it hears of all at once.
func TestATaskIsDoneWhenItsGatesPass(t *testing.T) {
	t.Parallel()
	w := newGated(t, mends, good, "true")
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantRan("gate-0 Failed 3", "gate-1 Passed 0", "gate-0 Passed 0", "gate-1 Passed 0")
	if got := w.delivered("web/page.html"); got != "good" {
		t.Errorf("delivered %q", got)
	}
	w.wantEveryCheckpointOnce()
}

// TestGatesThatKeepFailingBlock: when the corrections are spent nothing is delivered, and the message names gate and exit code.
func TestGatesThatKeepFailingBlock(t *testing.T) {
	t.Parallel()
	w := newGated(t, `echo "$TIDEWAITER_TASK" >> web/page.html`, "echo no; exit 4", "exit 0")
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if !strings.Contains(f.Message, `gate "gate-0" exited with code 4`) || strings.Contains(f.Message, "gate-1") {
		t.Errorf("message %q", f.Message)
	}
	if len(w.ran()) != 6 || w.branch() != "" {
		t.Errorf("gates ran: %q, branch %q", w.ran(), w.branch())
	}
}

// TestAGateThatCannotStartBlocksAtOnce: no agent can mend the command of a gate.
func TestAGateThatCannotStartBlocksAtOnce(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"not found": "no-such-program-here", "not executable": "./README.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGated(t, mends, script)
			if name == "not found" {
				w.intake.Order(func(o *protocol.Orders) { o.Gates[0].Command = []string{script} })
			}
			f := w.start(1, nil).finish()
			wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateNotStarted)
			if !strings.Contains(f.Message, `gate "gate-0" could not be started`) || len(w.ran()) != 1 {
				t.Errorf("message %q, gates ran: %q", f.Message, w.ran())
			}
		})
	}
}

// TestAGateThatDoesNotEnd is ended with all that it started, runs once more, and then has failed.
func TestAGateThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := newGated(t, `echo page > web/page.html`, "")
	w.marking("sleep 1000 & sleep 1000")
	w.intake.Order(func(o *protocol.Orders) {
		o.Gates[0].Timeout, o.Policy.Supervision.MaxCorrections = 300*time.Millisecond, 0
	})
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if !strings.Contains(f.Message, "did not end within its timeout") || w.runs() != 2 {
		t.Errorf("message %q after %d runs", f.Message, w.runs())
	}
}

// TestWhatAGateChangesGoesBack: captured files become what the closing checkpoint has, and ignored files stay for the next gate.
func TestWhatAGateChangesGoesBack(t *testing.T) {
	t.Parallel()
	w := newGated(t, `echo page > web/page.html`,
		`echo spoilt > web/page.html; echo new > web/new.html; rm web/index.html; echo kept > web/x.log; mkfifo web/pipe`,
		`grep -q page web/page.html && [ ! -e web/new.html ] && [ ! -e web/pipe ] && [ -e web/index.html ] && grep -q kept web/x.log`)
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantRan("gate-0 Passed 0", "gate-1 Passed 0")
	records, _ := w.recorded()
	for _, r := range records {
		if r.GateRan != nil && r.GateRan.Result.Gate == "gate-0" && len(r.GateRan.Result.Changed) < 4 {
			t.Errorf("the result names %q", r.GateRan.Result.Changed)
		}
	}
	w.wantEveryCheckpointOnce()
}

// TestAGateHasNothingOfTheAgent: neither its home, nor its temporary files' place, nor its environment.
func TestAGateHasNothingOfTheAgent(t *testing.T) {
	t.Parallel()
	w := newGated(t, `mkdir -p "$HOME/bin"; printf '#!/bin/sh\nexit 0\n' > "$HOME/bin/check"; chmod +x "$HOME/bin/check"; echo 'exit 0' > "$HOME/.profile"; echo page > web/page.html`,
		`[ -z "$TIDEWAITER_TASK" ] && [ -z "$ANTHROPIC_BASE_URL" ] && [ -z "$(ls -A "$HOME")" ] && [ -z "$(ls -A "$TMPDIR")" ] && [ "$CI" = true ] && ! command -v check`)
	w.intake.Order(func(o *protocol.Orders) { o.Agent.Env = append(o.Agent.Env, "TIDEWAITER_TASK=x") })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

// TestACrashWhileGatesRun: whatever step the watchdog ends after, the agent is started as often as without a crash, and the work is proved before it is delivered.
func TestACrashWhileGatesRun(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{ // a gate that has ended and has no result is run again
		"a result is noted": after("agent exited", "done journaled", "gate ran", "gate ran", "agent launched", "gate ran"),
		"a gate ends": slices.Concat(after("captured", "gate ended"), past("gate ran"), after("gate ended"), past("gate ran"),
			after("task begun", "gate ended"), past("gate ran"), after("gate ran")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGated(t, mends, good+"; touch web/spoilt.html", "true")
			plugs := newPlugs(t, list)
			p := plugs.processes(w.start(1, plugs.probe()))
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if got := w.delivered("web/page.html"); got != "good" {
				t.Errorf("delivered %q", got)
			}
			if got := w.ran(); len(got) != 4 {
				t.Errorf("gates ran: %q", got)
			}
			if got := w.git("-C", w.origin, "diff", "--name-only", "main", "tidewaiter/login"); got != "web/page.html" {
				t.Errorf("the delivery changes %q", got)
			}
			w.wantEveryCheckpointOnce()
		})
	}
}

// TestALostPodWhileAGateRuns: the next attempt runs the gate, and not the agent.
func TestALostPodWhileAGateRuns(t *testing.T) {
	t.Parallel()
	w := newGated(t, `echo start >> web/page.html`, "")
	w.marking("[ $(wc -l < " + filepath.Join(w.dir, "gate-runs") + ") -gt 1 ] || sleep 1000")
	p := w.start(1, nil)
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	p.kill()
	_ = p.wait()
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/page.html"); got != "start" {
		t.Errorf("the agent was started again: %q", got)
	}
}

// TestOrdersReachAGateThatRuns: it is called off at once; what it changed is not taken for the agent's work.
func TestOrdersReachAGateThatRuns(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*protocol.Orders){
		"suspend": func(o *protocol.Orders) { o.Suspend = true },
		"drop":    func(o *protocol.Orders) { o.Tasks = []protocol.Task{{Name: "another"}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGated(t, `echo $TIDEWAITER_TASK >> web/page.html`, "")
			w.marking("echo spoilt > web/spoilt.html; sleep 1000")
			p := w.start(1, nil)
			w.eventually("the gate runs", func() bool { return w.runs() > 0 })
			w.intake.Order(order)
			f := p.finish()
			if name == "suspend" {
				wantFinal(t, f, protocol.OutcomeSuspended, protocol.ReasonSuspended)
			} else {
				wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
			}
			if chain := w.trusted("rev-list", "--objects", protocol.RefChain); strings.Contains(chain, "spoilt") {
				t.Error("what the gate wrote is in a checkpoint")
			}
			w.wantEveryCheckpointOnce()
		})
	}
}
