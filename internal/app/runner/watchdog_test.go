// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

func TestSIGTERMBeforeAnyWatchdog(t *testing.T) {
	p := startRunner(t, nil)
	eventually(t, "the runner waits", func() bool { return strings.Contains(p.log.String(), "Waiting for the watchdog") })
	if err := p.runner.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.code(); got != exitTerminated {
		t.Errorf("code = %d, want %d", got, exitTerminated)
	}
}

// TestWaitsForTheFirstWatchdogAtLeisure counts the attempts to connect, on a clock of its own.
func TestWaitsForTheFirstWatchdogAtLeisure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const retry, late = 20 * time.Millisecond, 25
		attempts := 0
		r := &runner{
			options: Options{Socket: "socket", Retry: retry}, inbox: make(chan func()), done: make(chan struct{}),
			dial: func(_ context.Context, path string) (*runnerlink.Conn, error) {
				if path != "socket" {
					t.Errorf("looked for the watchdog at %q", path)
				}
				if attempts++; attempts <= late {
					return nil, errors.New("no watchdog is there")
				}
				return &runnerlink.Conn{}, nil
			},
		}
		defer close(r.done)
		began := time.Now()
		r.connect()
		<-r.inbox // it has one
		if waited := time.Since(began); waited != late*retry || attempts != late+1 {
			t.Errorf("%d attempts in %s, want %d in %s", attempts, waited, late+1, late*retry)
		}
	})
}

func TestTheFirstWatchdogComesLater(t *testing.T) {
	p := startRunner(t, nil)
	eventually(t, "the runner waits", func() bool { return strings.Contains(p.log.String(), "Waiting for the watchdog") })
	if got := p.watch(); got.Frozen {
		t.Error("frozen before anything was started")
	}
	p.shell("exit 0")
	p.exited()
}

func TestFrozenWithoutAWatchdog(t *testing.T) {
	p := newPod(t, nil)
	counters := p.herd(3)
	for round := range 3 {
		_ = p.watchdog.Close() // as if it had crashed
		eventually(t, "the agent is frozen", func() bool { return len(p.view.Moving(t)) == 0 })
		hello := p.watch()
		if diff := cmp.Diff(protocol.RunnerHello{Version: 1, Running: 1, Frozen: true}, hello); diff != "" {
			t.Errorf("round %d: hello (-want +got)\n%s", round, diff)
		}
		p.checkStill(counters) // until it is said
		p.thaw()
		counters.AwaitProgress(t)
	}
	if err := p.watchdog.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	p.exited()
	if id := p.shell("exit 1"); id <= 1 {
		t.Errorf("start ID %d was given twice", id)
	}
}

func TestHelloTellsWhatTheWatchdogMissed(t *testing.T) {
	p := newPod(t, nil)
	id := p.shell("touch up; while [ ! -e go ]; do sleep 0.01; done; exit 11")
	eventually(t, "the script is up", p.has("up"))
	p.freeze(time.Minute)
	_ = p.watchdog.Close()
	p.watch()
	if err := p.runner.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := p.event(); e.Signal == nil {
		t.Fatalf("event = %+v, want Signal", e)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.thaw()
	if got := p.exited(); got.Code != 11 {
		t.Errorf("code = %d, want 11", got.Code)
	}
	_ = p.watchdog.Close()
	want := protocol.RunnerHello{Version: 1, Frozen: true, LastExit: &protocol.RunnerExited{Start: id, Code: 11}}
	if diff := cmp.Diff(want, p.watch()); diff != "" {
		t.Errorf("hello (-want +got)\n%s", diff)
	}
	if e := p.event(); e.Signal == nil || e.Signal.Name != "SIGTERM" {
		t.Errorf("event = %+v, want the signal once more", e)
	}
}

func TestOrphaned(t *testing.T) {
	p := newPod(t, func(o *Options) { o.OrphanLimit = 50 * time.Millisecond })
	p.shell("trap 'touch handled' TERM; touch up; while :; do sleep 0.01; done")
	eventually(t, "the script is up", p.has("up"))
	_ = p.watchdog.Close()
	if got := p.code(); got != protocol.RunnerOrphanedCode {
		t.Errorf("code = %d, want %d", got, protocol.RunnerOrphanedCode)
	}
	if p.has("handled")() {
		t.Error("the agent ran once more without a watchdog")
	}
}

func TestConnectionBreaksInTheMiddleOfAKill(t *testing.T) {
	p := newPod(t, nil)
	p.shell("trap '' TERM; touch up; while :; do sleep 0.01; done")
	eventually(t, "the script is up", p.has("up"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.watchdog.Kill(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("kill = %v, want %v", err, context.DeadlineExceeded)
	}
	_ = p.watchdog.Close()
	if hello := p.watch(); hello.Running == 0 || !hello.Frozen {
		t.Errorf("hello = %+v, want the agent running and frozen", hello)
	}
	if err := p.watchdog.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	p.exited()
}

// TestAGarbledCommandBreaksTheConnection: what cannot be understood is no reason to go on unwatched.
func TestAGarbledCommandBreaksTheConnection(t *testing.T) {
	p := startRunner(t, nil)
	conn := acceptRaw(t, p.socket)
	if _, err := conn.Write([]byte("{\"id\":1}\n")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		if _, err := conn.Read(buf); err != nil {
			break
		}
	}
	if hello := p.watch(); !hello.Frozen {
		t.Errorf("hello = %+v, want frozen", hello)
	}
}
