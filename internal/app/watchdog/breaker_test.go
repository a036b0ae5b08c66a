// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const chainLock = "trusted/repo.git/refs/tidewaiter/chain.lock"

// lockChain leaves a lock as a git that was killed does. It waits for the lock of a git that runs.
func (w *world) lockChain() {
	w.t.Helper()
	w.eventually("the chain is locked", func() bool {
		f, err := os.OpenFile(filepath.Join(w.dir, chainLock), os.O_CREATE|os.O_EXCL, 0o600)
		return err == nil && f.Close() == nil
	})
}

// Checkpoints that cannot be recorded open the breaker: the agent stands still until a person has fixed the cause and
// resets it. Then the checkpoint that was already in the journal is completed first.
func TestBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", keen)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo a > web/a.html; while [ ! -e "$HOME/go" ]; do echo $((n=n+1)) > web/now.html; sleep 0.02; done; echo b > web/a.html; rm web/now.html`
	})
	p := w.start(1, nil)
	w.eventually("a checkpoint was taken", func() bool { return len(w.intake.Checkpoints()) > 0 })
	w.lockChain()
	open := func() bool {
		s := w.intake.Status()
		return s.State == protocol.StateFrozen && s.Fault != nil && s.Fault.Reason == protocol.ReasonBreakerOpen
	}
	w.eventually("the breaker is open", open)
	p.awaitFrozen()
	still := w.read("workspace/web/now.html")
	w.eventually("the failures are reported", func() bool {
		failures := w.intake.Failures()
		return len(failures) > 0 && failures[0].Reason == protocol.ReasonCheckpointFailed && strings.Contains(failures[0].Message, "chain.lock")
	})
	const problem = "capture: checkpoints fail repeatedly"
	if !w.told(problem) {
		t.Errorf("problems %q, want one about %q", w.intake.Status().Problems, problem)
	}
	if told := w.read("trusted/journal.jsonl"); !strings.Contains(told, `\"type\":\"checkpoint_failed\"`) || !strings.Contains(told, `\"action_taken\":\"frozen\"`) {
		t.Error("the agent was not told that checkpoints fail, and that it is frozen because of it")
	}
	if now := w.read("workspace/web/now.html"); now != still || !p.standsStill() {
		t.Errorf("the agent goes on with an open breaker: it wrote %q, %q before", now, still)
	}
	w.remove(chainLock)
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "r1", Kind: protocol.RequestResetBreaker}}
	})
	taken := len(w.intake.Checkpoints())
	w.eventually("checkpoints are taken again", func() bool { return len(w.intake.Checkpoints()) > taken })
	w.write("home/go", "")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("b\n", true)
	w.wantEveryCheckpointOnce()
	if w.told(problem) {
		t.Errorf("problems %q at the end", w.intake.Status().Problems)
	}
}
