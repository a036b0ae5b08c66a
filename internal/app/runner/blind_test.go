// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// TestAgentCannotBlindTheRunner tries from inside what TestBlindRunner does from outside.
func TestAgentCannotBlindTheRunner(t *testing.T) {
	p := newPod(t, nil)
	p.shell("prlimit --pid 1 --nofile=3:3 && touch blinded; taskset -p 1 1 && touch bound; renice -n 19 -p 1 && touch reniced; touch tried; exit 0")
	if got := p.exited(); got.Code != 0 {
		t.Errorf("exited = %+v", got)
	}
	for file, want := range map[string]bool{"tried": true, "blinded": false, "bound": false, "reniced": false} {
		if p.has(file)() != want {
			t.Errorf("file %s exists = %v, want %v", file, !want, want)
		}
	}
	counters := p.herd(3)
	p.freeze(time.Minute)
	p.checkStill(counters)
}

// blind does what an agent without the filter could do: the runner can open no file any more.
func (p *pod) blind() {
	p.t.Helper()
	none := &unix.Rlimit{Cur: 3, Max: 3}
	if err := unix.Prlimit(p.runner.Process.Pid, unix.RLIMIT_NOFILE, none, nil); err != nil {
		p.t.Fatal(err)
	}
}

func TestBlindRunnerKills(t *testing.T) {
	for name, grace := range map[string]time.Duration{"at once": 0, "with grace": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, nil)
			counters := p.herd(3)
			p.blind()
			for range 3 {
				if err := p.watchdog.Kill(t.Context(), grace); err != nil {
					t.Fatal(err)
				}
			}
			p.checkStill(counters)
			p.exited()
		})
	}
}

func TestBlindRunnerEnds(t *testing.T) {
	p := newPod(t, nil)
	counters := p.herd(3)
	p.blind()
	refusals := 0
	for {
		_, err := p.watchdog.Freeze(t.Context(), protocol.RunnerFreeze{Timeout: time.Minute, Limit: time.Minute})
		if _, ok := errors.AsType[*runnerlink.RefusedError](err); !ok {
			break
		}
		if refusals++; refusals > 2*maxFailedSweeps {
			t.Fatalf("%d refusals, and the runner goes on: %v", refusals, err)
		}
	}
	if got := p.code(); got != protocol.RunnerBlindCode {
		t.Errorf("code = %d, want %d", got, protocol.RunnerBlindCode)
	}
	p.checkStill(counters)
}

// TestBlindRunnerWithoutWatchdog: what cannot be stopped could take the watchdog's connection, so it ends.
func TestBlindRunnerWithoutWatchdog(t *testing.T) {
	p := newPod(t, nil)
	counters := p.herd(3)
	p.blind()
	if err := p.watchdog.Close(); err != nil {
		t.Fatal(err)
	}
	if got := p.code(); got != protocol.RunnerBlindCode {
		t.Errorf("code = %d, want %d", got, protocol.RunnerBlindCode)
	}
	p.checkStill(counters)
}
