// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestAgentBlindsTheRunner tries what would keep PID 1 from seeing any process, and finds that it is not permitted.
func TestAgentBlindsTheRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `prlimit --pid 1 --nofile=3:3 && echo blind > web/blind.html; echo a > web/a.html; exit 0`)
	p := w.start(1, nil)
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("a\n", true)
	if out, err := tryGit("-C", w.origin, "show", "refs/heads/tidewaiter/login:web/blind.html"); err == nil {
		t.Errorf("the limit of PID 1 was set: web/blind.html = %q", out)
	}
}

// TestBlindRunner takes the runner's sight from outside, as a process without the filter could: no checkpoint can hold the
// agent still, and nothing but the end of its container stops it.
func TestBlindRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `while :; do date +%N > web/now.html; done`, keen)
	p := w.start(1, nil)
	w.eventually("a checkpoint was taken", func() bool { return len(w.intake.Checkpoints()) > 0 })
	if err := unix.Prlimit(p.agent.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil); err != nil {
		t.Fatal(err)
	}
	f := p.finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentUnstoppable)
	if !strings.Contains(f.Message, "too many open files") {
		t.Errorf("message = %q, want the reason in it", f.Message)
	}
}

// TestBlindRunnerSuspends: a suspension needs no sight.
func TestBlindRunnerSuspends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `while :; do date +%N > web/now.html; done`, keen)
	p := w.start(1, nil)
	w.eventually("a checkpoint was taken", func() bool { return len(w.intake.Checkpoints()) > 0 })
	if err := unix.Prlimit(p.agent.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil); err != nil {
		t.Fatal(err)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
}
