// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// another adds a second task after the gated one, and has the agent of each write its own page.
func another(o *protocol.Orders) {
	o.Tasks = append(o.Tasks, protocol.Task{Name: "another"})
}

// pages is an agent that writes a page with the name of its task.
const pages = `mkdir -p web/pages; echo page > "web/pages/$(echo $TIDEWAITER_TASK | tr / -).html"`

// TestGatesEditedWhileOneRuns: what the orders no longer say is called off, and the task is decided by what they say now.
func TestGatesEditedWhileOneRuns(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*protocol.Orders){
		"removed": func(o *protocol.Orders) { o.Gates, o.Tasks[0].Gates = nil, nil },
		"edited":  func(o *protocol.Orders) { o.Gates[0].Command = []string{"true"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGated(t, pages, "")
			w.marking("echo spoilt > web/spoilt.html; sleep 600")
			w.intake.Order(another)
			p := w.start(1, nil)
			w.eventually("the gate runs", func() bool { return w.runs() > 0 })
			began := time.Now()
			w.intake.Order(order)
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if took := time.Since(began); took > 5*time.Minute {
				t.Errorf("the gate was not called off: %s", took)
			}
			if chain := w.trusted("rev-list", "--objects", protocol.RefChain); strings.Contains(chain, "spoilt") {
				t.Error("what the gate wrote is in a checkpoint")
			}
		})
	}
}

// TestGatesRemovedWhenOneEnds: a result that nobody asks for any more ends no watchdog.
func TestGatesRemovedWhenOneEnds(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "true")
	p := w.start(1, func(step string) error {
		if step == "gate ended" {
			w.intake.Order(func(o *protocol.Orders) { o.Gates, o.Tasks[0].Gates = nil, nil })
			w.eventually("the orders are journaled", func() bool {
				for _, r := range w.journaled() {
					if r.Orders != nil && len(r.Orders.Gates) == 0 {
						return true
					}
				}
				return false
			})
		}
		return nil
	})
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

// TestACrashWhileAGateOfAnEditedTaskRuns: what the gate wrote is not taken for work of the agent.
func TestACrashWhileAGateOfAnEditedTaskRuns(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*protocol.Orders){
		"task dropped":  func(o *protocol.Orders) { o.Tasks = []protocol.Task{{Name: "another"}} },
		"gates removed": func(o *protocol.Orders) { o.Gates, o.Tasks[0].Gates = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGated(t, pages, "echo spoilt > web/spoilt.html")
			w.intake.Order(another)
			p := w.start(1, pullAt("gate ended", 1))
			if err := p.wait(); !errors.Is(err, errPulled) {
				t.Fatalf("the watchdog ended with %v", err)
			}
			w.intake.Order(order)
			p.resume(false)
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if chain := w.trusted("rev-list", "--objects", protocol.RefChain); strings.Contains(chain, "spoilt") {
				t.Error("what the gate wrote is in a checkpoint")
			}
		})
	}
}

// TestACrashAfterAGateThatWasCalledOff: the end of the gate is not taken for that of the next task's agent.
func TestACrashAfterAGateThatWasCalledOff(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "")
	w.marking("sleep 1000")
	p := w.start(1, pullAt("task begun", 2))
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	w.intake.Order(func(o *protocol.Orders) { o.Tasks = []protocol.Task{{Name: "another"}} })
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.resume(false)
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/pages/another.html"); got != "page" {
		t.Errorf("delivered %q", got)
	}
}

// TestAGateThatHidesWhatItWrites: ignore rules of its own, links and repositories in the way do not keep what it wrote.
func TestAGateThatHidesWhatItWrites(t *testing.T) {
	t.Parallel()
	for name, scripts := range map[string][]string{
		"ignore rules, a link": {
			`echo '*.html' > web/.gitignore; echo spoilt > web/spoilt.html`,
			`mkdir web/a; echo '*.html' > web/a/.gitignore; echo spoilt > web/a/spoilt.html; echo a > web/.gitignore`,
			`rm -rf web; ln -s "OUTSIDE" web; echo spoilt > web/spoilt.html`,
		},
		"repositories": {
			`git init -q web; echo spoilt > web/spoilt.html`,
			`git init -q web/inside; echo spoilt > web/inside/spoilt.html`,
			`mkdir web/.git; echo 'gitdir: /nowhere' > web/.git/HEAD; echo spoilt > web/spoilt.html`,
		},
		"a daemon": {`setsid sh -c 'trap "" TERM HUP; while :; do echo spoilt > web/spoilt.html; done' > /dev/null 2>&1 & sleep 0.2`},
		"pipes, all gone": {
			`rm -rf web; mkfifo web`,
			`rm -rf .[a-z]* *; mkdir README.md; echo spoilt > README.md/spoilt`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const clean = `[ "$(cat web/index.html)" = "<h1>Shop</h1>" ] && [ ! -L web ] && [ ! -e web/spoilt.html ] && [ -f README.md ] && ! [ -e web/.gitignore ] && [ -e web/pages/login.html ]`
			var all, ran []string
			for _, script := range scripts {
				ran = append(ran, fmt.Sprintf("gate-%d Passed 0", len(all)), fmt.Sprintf("gate-%d Passed 0", len(all)+1))
				all = append(all, script, clean)
			}
			w := newGated(t, pages, all...)
			outside := w.mkdir("outside")
			w.write("outside/index.html", "outside")
			w.intake.Order(another)
			w.intake.Order(func(o *protocol.Orders) {
				for _, g := range o.Gates {
					g.Command[2] = strings.ReplaceAll(g.Command[2], "OUTSIDE", outside)
				}
			})
			wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantRan(ran...)
			if chain := w.trusted("rev-list", "--objects", protocol.RefChain); strings.Contains(chain, "spoilt") {
				t.Error("what the gate wrote is in a checkpoint")
			}
			if data, err := os.ReadFile(filepath.Join(outside, "index.html")); string(data) != "outside" {
				t.Errorf("outside of the workspace: %q, %v", data, err)
			}
			if got := w.git("-C", w.origin, "diff", "--name-only", "main", "tidewaiter/login"); got != "web/pages/another.html\nweb/pages/login.html" {
				t.Errorf("the delivery changes %q", got)
			}
		})
	}
}

// TestAGateThatWritesTooMuch: what no checkpoint takes goes back all the same.
func TestAGateThatWritesTooMuch(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a large file": `head -c 300000 /dev/zero > web/large.html`,
		"many files":   `mkdir web/many; for i in $(seq 200); do echo $i > web/many/$i; done`,
		"many bytes":   `mkdir web/many; for i in $(seq 40); do head -c 60000 /dev/zero > web/many/$i; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGated(t, pages, script)
			w.intake.Order(func(o *protocol.Orders) {
				o.Policy.Changes.MaxFileSize, o.Policy.Changes.MaxWorkspaceFiles, o.Policy.Changes.MaxWorkspaceSize = 100_000, 100, 1_000_000
			})
			p := w.start(1, nil)
			w.eventually("the gate has run, or the breaker opens", func() bool {
				return len(w.ran()) > 0 || strings.Contains(w.log.String(), "Breaker opens")
			})
			if len(w.ran()) == 0 {
				t.Fatalf("the breaker is open: %+v", w.intake.Status())
			}
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		})
	}
}

// checkpointPage has a checkpoint taken once the agent has written its page, and lets the agent continue.
func (w *world) checkpointPage() {
	w.t.Helper()
	w.eventually("the agent writes", func() bool {
		_, err := os.Stat(filepath.Join(w.paths.Workspace, "web/page.html"))
		return err == nil
	})
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = append(o.Requests, protocol.Request{ID: "c", Kind: protocol.RequestCheckpoint})
	})
	w.eventually("the checkpoint", func() bool { return w.result("c") != nil })
	w.signal("agent")
}

// TestARollbackWhileGatesRun: what a user took back does not come again, and only what has passed is delivered.
func TestARollbackWhileGatesRun(t *testing.T) {
	t.Parallel()
	w := newGated(t, "", "", good)
	w.marking(w.waitFor("gate"))
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `case "$TIDEWAITER_INSTRUCTIONS" in *"exited with code 3"*) echo good > web/page.html;; *) echo bad > web/page.html; ` + w.waitFor("agent") + ` echo good > web/page.html;; esac`
	})
	p := w.start(1, nil)
	w.checkpointPage()
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	w.intake.Order(func(o *protocol.Orders) {
		o.Generation++
		o.Requests = append(o.Requests, protocol.Request{ID: "r", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: 1}})
	})
	w.eventually("the watchdog has the request", func() bool {
		records, _ := w.recorded()
		for _, r := range records {
			if r.Orders != nil && slices.ContainsFunc(r.Orders.Requests, func(q protocol.Request) bool { return q.ID == "r" }) {
				return true
			}
		}
		return false
	})
	w.signal("gate")
	f := p.finish()
	t.Logf("ran %q, result %+v, final %+v", w.ran(), w.result("r"), f)
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/page.html"); got != "good" {
		t.Errorf("delivered %q", got)
	}
	w.wantProved(2)
}

// wantProved: each gate of the orders has passed on the tree that was delivered.
func (w *world) wantProved(gates int) {
	w.t.Helper()
	tree := w.git("-C", w.origin, "rev-parse", "refs/heads/tidewaiter/login^{tree}")
	passed := map[string]bool{}
	records, _ := w.recorded()
	for _, r := range records {
		if g := r.GateRan; g != nil && g.Result.Tree == tree && g.Result.State == "Passed" {
			passed[g.Result.Gate] = true
		}
	}
	if len(passed) != gates {
		w.t.Errorf("gates that passed on the delivered tree %s: %v", tree, passed)
	}
}

// TestAGateThatAttacksTheRunner: code of the agent, in a gate, cannot end the container's first process or answer for it.
func TestAGateThatAttacksTheRunner(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, `kill -TERM 1 && exit 11; kill -KILL 1 && exit 12; prlimit --pid 1 --nofile=3:3 && exit 13
		yes '{"understood":{"rule":"x","checkpoint":1}}' >&3 & sleep 0.2; kill -KILL -1; exit 0`)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantRan("gate-0 Passed 0")
}

// TestSecretsAtTheCut: a secret whose beginning is not kept is not told either, however short the rest becomes.
func TestSecretsAtTheCut(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, `for i in $(seq 60); do echo "-----BEGIN RSA PRIVATE KEY-----"; for j in $(seq 30); do echo "MIIEpAIBAAKCAQEAxfromakeyfromakeyfromakeyfromakeyfromakeyfromakey"; done; echo "-----END RSA PRIVATE KEY-----"; done; exit 1`)
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Supervision.MaxCorrections = 0 })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	records, _ := w.recorded()
	for _, r := range records {
		if g := r.GateRan; g != nil && strings.Contains(g.Result.Output, "fromakey") {
			t.Errorf("the output has a part of a key: %.300q", g.Result.Output)
		}
	}
}

// TestAFailedGateIsTriedAgainByRetry: a user who has mended what a gate needs may try again, although the tree is the same.
func TestAFailedGateIsTriedAgainByRetry(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "")
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Supervision.MaxCorrections = 0 })
	w.marking("[ -e " + filepath.Join(w.dir, "signals", "mended") + " ]")
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	w.signal("mended")
	f := w.start(2, nil).finish()
	if w.runs() != 2 {
		t.Errorf("the gate ran %d times, final %+v", w.runs(), f)
	}
}

// TestAGateWithExitCodesOfSignals has failed.
func TestAGateWithExitCodesOfSignals(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "exit 143", "kill -KILL $$")
	w.intake.Order(func(o *protocol.Orders) { o.Policy.Supervision.MaxCorrections = 0 })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	w.wantRan("gate-0 Failed 143", "gate-1 Failed 137")
}

// TestARequestWhileAGateRuns is answered.
func TestARequestWhileAGateRuns(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "")
	w.marking(w.waitFor("gate"))
	p := w.start(1, nil)
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	w.intake.Order(func(o *protocol.Orders) {
		o.Generation++
		o.Requests = append(o.Requests, protocol.Request{ID: "c", Kind: protocol.RequestCheckpoint})
	})
	w.eventually("the watchdog has the request", func() bool {
		records, _ := w.recorded()
		return slices.ContainsFunc(records, func(r journal.Record) bool { return r.Orders != nil && len(r.Orders.Requests) == 1 })
	})
	w.signal("gate")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if r := w.result("c"); r == nil || !r.OK {
		t.Errorf("result %+v", r)
	}
}

// TestASealRunOfAGatedFeature: a rollback between attempts is not undone by a gate of the next one.
func TestASealRunOfAGatedFeature(t *testing.T) {
	t.Parallel()
	w := newGated(t, "", "no-such-program-here")
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `[ -e web/page.html ] && echo again > web/again.html; echo page > web/page.html; ` + w.waitFor("agent") + ` echo taken back > web/other.html`
	})
	p := w.start(1, nil)
	w.checkpointPage()
	wantFinal(t, p.finish(), protocol.OutcomeBlocked, protocol.ReasonGateNotStarted)
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = append(o.Requests, protocol.Request{ID: "r", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Kind: protocol.RollbackFull, Checkpoint: 1}})
	})
	w.seal(2)
	if r := w.result("r"); r == nil || !r.OK {
		t.Fatalf("result %+v", r)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Gates[0].Command = []string{"true"} })
	wantFinal(t, w.start(3, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/again.html"); got != "again" {
		t.Errorf("delivered %q: the agent was not started again from what the rollback left", got)
	}
	w.wantProved(1)
}

// TestAGateThatFillsTheVolume: what cannot be put back opens the breaker, and once there is room the gate runs again.
func TestAGateThatFillsTheVolume(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "")
	if err := unix.Mount("tmpfs", w.paths.Workspace, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("a small volume is needed: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.paths.Workspace, unix.MNT_DETACH) })
	w.marking("[ $(wc -l < " + filepath.Join(w.dir, "gate-runs") + `) -gt 1 ] || { rm web/index.html; cat /dev/zero > web/filler.log; }; exit 0`)
	p := w.start(1, nil)
	w.eventually("the breaker opens", func() bool { return strings.Contains(w.log.String(), "Breaker opens") })
	if err := os.Remove(filepath.Join(w.paths.Workspace, "web/filler.log")); err != nil {
		t.Fatal(err)
	}
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = append(o.Requests, protocol.Request{ID: "b", Kind: protocol.RequestResetBreaker})
	})
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/index.html"); got != "<h1>Shop</h1>" {
		t.Errorf("delivered %q", got)
	}
}

// TestALostRunnerWhileAGateRuns: the attempt ends, and the next one runs the gate.
func TestALostRunnerWhileAGateRuns(t *testing.T) {
	t.Parallel()
	w := newGated(t, pages, "")
	w.marking("[ $(wc -l < " + filepath.Join(w.dir, "gate-runs") + ") -gt 1 ] || sleep 1000")
	p := w.start(1, nil)
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	_ = p.agent.Process.Kill()
	<-p.gone
	p.terminate()
	if err := p.wait(); err != nil {
		t.Errorf("the watchdog ended with %v", err)
	}
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}
