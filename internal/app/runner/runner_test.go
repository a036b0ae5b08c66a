// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

func TestTasksOneAfterTheOther(t *testing.T) {
	p := newPod(t, nil)
	for _, test := range []struct {
		script string
		want   protocol.RunnerExited
	}{
		{"exit 0", protocol.RunnerExited{}},
		{"exit 42", protocol.RunnerExited{Code: 42}},
		{"kill -KILL $$", protocol.RunnerExited{Code: 137, Signal: "SIGKILL"}},
		{`[ "$INHERITED $REPLACED $GIVEN" = "yes new  x=y" ] && [ "$(pwd)" = ` + p.dir + ` ] && exit 7`, protocol.RunnerExited{Code: 7}},
	} {
		id := p.start([]string{"REPLACED=new", "GIVEN= x=y"}, "/bin/sh", "-c", test.script)
		test.want.Start = id
		if got := p.exited(); !cmp.Equal(got, test.want) {
			t.Errorf("%s: exited = %+v, want %+v", test.script, got, test.want)
		}
	}
	p.shell("echo to the log; echo also >&2")
	p.exited()
	if err := p.watchdog.Exit(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := p.code(); got != 0 {
		t.Errorf("code = %d, want 0", got)
	}
	for _, want := range []string{"to the log\n", "also\n"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the container log lacks %q", want)
		}
	}
}

func TestExitCodeIsTheWatchdogs(t *testing.T) {
	for _, code := range []int{1, 75, 255} {
		p := newPod(t, nil)
		p.shell("sleep 1000") // ends with the container
		if err := p.watchdog.Exit(t.Context(), code); err != nil {
			t.Fatal(err)
		}
		if got := p.code(); got != code {
			t.Errorf("code = %d, want %d", got, code)
		}
	}
}

func TestRefusals(t *testing.T) {
	p := newPod(t, nil)
	ctx := t.Context()
	p.shell("sleep 1000")
	start := func(s protocol.RunnerStart) error { _, _, err := p.watchdog.Start(ctx, s); return err }
	freeze := func(f protocol.RunnerFreeze) error { _, err := p.watchdog.Freeze(ctx, f); return err }
	check := func(name string, err error, want string) {
		t.Helper()
		var refused *runnerlink.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, want) {
			t.Errorf("%s: %v, want a refusal with %q", name, err, want)
		}
	}
	check("second agent", start(protocol.RunnerStart{Argv: []string{"/bin/true"}, Dir: "/"}), "an agent runs already: process ")
	check("bad environment", start(protocol.RunnerStart{Argv: []string{"/bin/true"}, Dir: "/", Env: []string{"x"}}), "an agent runs already")
	check("no timeout", freeze(protocol.RunnerFreeze{Limit: time.Second}), "must be positive")
	check("no limit", freeze(protocol.RunnerFreeze{Timeout: time.Second}), "must be positive")
	check("negative grace", p.watchdog.Kill(ctx, -1), "grace -1ns is negative")
	check("code", p.watchdog.Exit(ctx, 256), "256 is not between 0 and 255")
	_, err := p.watchdog.Input(ctx, "two\nlines")
	check("input", err, "line break")
	if err := p.watchdog.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	p.exited()
	check("bad environment", start(protocol.RunnerStart{Argv: []string{"/bin/true"}, Dir: "/", Env: []string{"x"}}), `"x" is not NAME=value`)
	check("no command", start(protocol.RunnerStart{Argv: []string{"no-such-agent"}, Dir: "/"}), `command "no-such-agent": not found in PATH`)
	check("no directory", start(protocol.RunnerStart{Argv: []string{"/bin/true"}, Dir: "/nope"}), `"/nope" does not exist`)
	p.freeze(time.Minute)
	check("frozen", start(protocol.RunnerStart{Argv: []string{"/bin/true"}, Dir: "/"}), "frozen")
	p.thaw()
	p.shell("exit 3") // after all that it still works
	if got := p.exited(); got.Code != 3 {
		t.Errorf("code = %d, want 3", got.Code)
	}
}

func TestFreezeAndThaw(t *testing.T) {
	p := newPod(t, nil)
	counters := p.herd(3)
	for range 10 {
		p.freeze(time.Minute)
		p.checkStill(counters)
		p.thaw()
		counters.AwaitProgress(t)
	}
	p.thaw() // nothing to thaw
}

func TestFreezeLimit(t *testing.T) {
	p := newPod(t, nil)
	counters := p.herd(3)
	// Whether all had stopped by then is not the point.
	if _, err := p.watchdog.Freeze(t.Context(), protocol.RunnerFreeze{Timeout: 10 * time.Second, Limit: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	e := p.event()
	if e.Thawed == nil || !e.Thawed.ByLimit {
		t.Fatalf("event = %+v, want Thawed by limit", e)
	}
	counters.AwaitProgress(t)
	p.freeze(time.Minute) // and the old limit is forgotten
	p.checkStill(counters)
	p.thaw()
}

func TestKillTellsTheEndFirst(t *testing.T) {
	p := newPod(t, nil)
	for _, frozen := range []bool{false, true} {
		id := p.shell("(setsid sleep 1000 &); touch up; sleep 1000")
		eventually(t, "the script is up", p.has("up"))
		if frozen {
			p.freeze(time.Minute)
		}
		if err := p.watchdog.Kill(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-p.watchdog.Events():
			if want := (protocol.RunnerExited{Start: id, Code: 143, Signal: "SIGTERM"}); e.Exited == nil || !cmp.Equal(*e.Exited, want) {
				t.Errorf("event = %+v, want %+v", e, want)
			}
		case <-time.After(time.Minute):
			t.Error("the end was not told")
		}
		_ = os.Remove(filepath.Join(p.dir, "up"))
	}
}

// TestPulse: what processes have used stays used when they end, and what sleeps uses nothing.
func TestPulse(t *testing.T) {
	p := newPod(t, nil)
	pulse := func() protocol.RunnerPulse {
		t.Helper()
		got, err := p.watchdog.Pulse(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := pulse(); got.Processes != 0 {
		t.Errorf("without an agent: %+v", got)
	}
	p.shell(`sh -c 'i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done'; touch used; exec sleep 1000`)
	eventually(t, "the work is done", p.has("used"))
	var worked protocol.RunnerPulse
	eventually(t, "one that sleeps is left", func() bool {
		worked = pulse()
		return worked.Processes == 1
	})
	if worked.CPU == 0 || worked.Age <= 0 || len(worked.Commands) != 0 {
		t.Errorf("after work: %+v", worked)
	}
	if again := pulse(); again.Written != worked.Written {
		t.Errorf("one that sleeps has written: %+v, before: %+v", again, worked)
	}
	if err := p.watchdog.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	p.exited()
	if got := pulse(); got.CPU < worked.CPU || got.Processes != 0 {
		t.Errorf("after all have ended: %+v, before: %+v", got, worked)
	}
	p.shell(`echo to say something; touch said; read line; echo more; touch more; exec sleep 1000`)
	eventually(t, "something is said", p.has("said"))
	var said protocol.RunnerPulse
	eventually(t, "the shell waits", func() bool {
		said = pulse()
		return said.Processes == 1
	})
	if _, err := p.watchdog.Input(t.Context(), "go on"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "more is said", p.has("more"))
	if got := pulse(); said.Written < int64(len("to say something\n")) || got.Written != said.Written+int64(len("more\n")) {
		t.Errorf("%d bytes are written, %d before", got.Written, said.Written)
	}
}

// TestPulseTellsOfCommands: of what an agent has started, by name and age, and not of the agent itself.
func TestPulseTellsOfCommands(t *testing.T) {
	p := newPod(t, nil)
	p.shell(`sleep 1000 & sleep 1001 & touch begun; wait`)
	eventually(t, "they run", func() bool {
		got, err := p.watchdog.Pulse(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		for _, c := range got.Commands {
			names[c.Name]++
			if c.Age > got.Age {
				t.Errorf("%s is older than the agent that started it: %+v", c.Name, got)
			}
		}
		return names["sleep"] == 2 && len(got.Commands) == 2
	})
}

func TestInput(t *testing.T) {
	p := newPod(t, nil)
	input := func(line string) bool {
		t.Helper()
		delivered, err := p.watchdog.Input(t.Context(), line)
		if err != nil {
			t.Fatal(err)
		}
		return delivered
	}
	if input("nobody") {
		t.Error("a line was delivered to no agent")
	}
	p.shell(`read line; [ "$line" = '{"a":1}' ] && exit 9`)
	if !input(`{"a":1}`) {
		t.Error("the line was dropped")
	}
	if got := p.exited(); got.Code != 9 {
		t.Errorf("code = %d, want 9", got.Code)
	}
	p.shell("exec <&-; touch closed; sleep 1000")
	eventually(t, "the input is closed", p.has("closed"))
	if input("closed") {
		t.Error("a line was delivered to a closed input")
	}
}

func TestSIGTERMIsTheWatchdogsToAnswer(t *testing.T) {
	for _, signal := range proc.StopSignals() {
		p := newPod(t, nil)
		counters := p.herd(1)
		for range 3 { // told once
			if err := p.runner.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		if e := p.event(); e.Signal == nil || e.Signal.Name != unix.SignalName(signal) {
			t.Fatalf("event = %+v, want %s", e, unix.SignalName(signal))
		}
		counters.AwaitProgress(t) // the agent was left alone
		p.freeze(time.Minute)
		p.checkStill(counters)
		if err := p.watchdog.Exit(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		if got := p.code(); got != 5 {
			t.Errorf("code = %d, want 5", got)
		}
	}
}

func TestSIGTERMWithoutAnAnswer(t *testing.T) {
	p := newPod(t, func(o *Options) { o.TerminationLimit = 50 * time.Millisecond })
	p.shell("trap 'touch handled; exit 0' TERM; touch up; while :; do sleep 0.01; done")
	eventually(t, "the script is up", p.has("up"))
	if err := p.runner.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.code(); got != exitTerminated {
		t.Errorf("code = %d, want %d", got, exitTerminated)
	}
	if !p.has("handled")() {
		t.Error("the agent had no grace")
	}
}

func TestRefusesToRunElsewhere(t *testing.T) {
	var log lockedBuffer
	if got := Run(DefaultOptions(), &log); got != exitBroken {
		t.Errorf("code = %d, want %d", got, exitBroken)
	}
	eventually(t, "the reason is logged", func() bool { return strings.Contains(log.String(), "not PID 1") })
}
