// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// gate runs a script as a gate, to its end.
func (p *pod) gate(script string, env ...string) protocol.RunnerExited {
	p.t.Helper()
	nothing := ""
	id, _, err := p.watchdog.Start(p.t.Context(), protocol.RunnerStart{Argv: []string{"/bin/sh", "-c", script}, Env: env, Dir: p.dir, Gate: true, Input: &nothing})
	if err != nil {
		p.t.Fatal(err)
	}
	e := p.exited()
	if e.Start != id {
		p.t.Fatalf("the exit is that of start %d, want %d", e.Start, id)
	}
	return e
}

// TestGateEnvironment: a gate has the container's PATH, folders of its own, and what the watchdog gives it. Nothing else of the container or the agent.
func TestGateEnvironment(t *testing.T) {
	p := newPod(t, nil)
	e := p.gate(`env; echo "to standard error" >&2; touch "$HOME/x" "$TMPDIR/y"; read line; exit 3`, "HTTPS_PROXY=http://127.0.0.1:1")
	if e.Code != 3 || e.OutputSize != int64(len(e.Head)) {
		t.Errorf("the gate ended with code %d, and %d bytes of %d", e.Code, len(e.Head), e.OutputSize)
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(e.Head)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		variables[name] = value
	}
	for _, name := range []string{"INHERITED", "REPLACED", protocol.EnvReplies} {
		if value, is := variables[name]; is {
			t.Errorf("the gate has %s=%s", name, value)
		}
	}
	if variables["CI"] != "true" || variables["LANG"] != "C.UTF-8" || variables["PATH"] == "" || variables["HTTPS_PROXY"] == "" {
		t.Errorf("the gate's environment is %v", variables)
	}
	if _, is := variables["to standard error"]; !is {
		t.Errorf("standard error is not in the output: %s", e.Head)
	}
	second := p.gate(`ls -A "$HOME" "$TMPDIR"; echo "$HOME"`)
	if strings.Contains(string(second.Head), "x\n") || strings.Contains(string(second.Head), variables["HOME"]) {
		t.Errorf("the second gate sees what the first has left: %s", second.Head)
	}
	if err := p.watchdog.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{variables["HOME"], variables["TMPDIR"]} {
		if _, err := os.Stat(filepath.Join("/proc", fmt.Sprint(p.runner.Process.Pid), "root", folder)); !os.IsNotExist(err) {
			t.Errorf("%s is still there after a kill: %v", folder, err)
		}
	}
}

// TestGateOutputIsBounded: the runner keeps the beginning and the end of it, whatever a gate prints, and passes all of it on to the container's log.
func TestGateOutputIsBounded(t *testing.T) {
	p := newPod(t, nil)
	e := p.gate(`printf 'the beginning'; i=0; while [ $i -lt 20 ]; do head -c 110000 /dev/zero | tr '\0' 'x'; i=$((i+1)); done; printf 'the end'`)
	if len(e.Head) != protocol.MaxGateHead || len(e.Tail) != protocol.MaxGateTail || e.OutputSize != 20*110000+20 ||
		!bytes.HasPrefix(e.Head, []byte("the beginningx")) || !bytes.HasSuffix(e.Tail, []byte("xthe end")) {
		t.Errorf("%d and %d bytes of %d are kept, ending with %q", len(e.Head), len(e.Tail), e.OutputSize, e.Tail[max(0, len(e.Tail)-20):])
	}
	if log := p.log.String(); strings.Count(log, "x") < 20*110000 {
		t.Errorf("the container's log has %d bytes", len(log))
	}
}

// TestKeptOutput: however a gate's output is cut into pieces, what is kept is its beginning and its end.
func TestKeptOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, whole := &kept{}, []byte{}
		for i, size := range rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 300<<10)), 0, 12).Draw(t, "pieces") {
			piece := bytes.Repeat([]byte{byte(i), byte(i >> 1), 7}, size/3+1)[:size]
			if n, err := k.Write(piece); n != size || err != nil {
				t.Fatalf("wrote %d of %d: %v", n, size, err)
			}
			whole = append(whole, piece...)
		}
		head, tail, size := k.take()
		rest := whole[min(protocol.MaxGateHead, len(whole)):]
		if size != int64(len(whole)) || !bytes.Equal(head, whole[:min(protocol.MaxGateHead, len(whole))]) || !bytes.Equal(tail, rest[max(0, len(rest)-protocol.MaxGateTail):]) {
			t.Fatalf("of %d bytes, %d and %d are kept, and not those", len(whole), len(head), len(tail))
		}
		if n := cap(k.head) + cap(k.tail); n > 512<<10 {
			t.Fatalf("%d bytes of memory", n)
		}
		if _, _ = k.Write([]byte("late")); len(k.tail) != len(tail) || k.size != size {
			t.Fatal("what comes after the end is kept")
		}
	})
}

// TestGateThatPrintsMuch: 100 MB without a line end, with control characters, in the memory that any other gate takes.
func TestGateThatPrintsMuch(t *testing.T) {
	p := newPod(t, nil)
	p.log.mu.Lock()
	p.log.discard = true
	p.log.mu.Unlock()
	p.gate("true")
	before := p.peak()
	e := p.gate(`yes "$(printf '\033[2J\007\377')" | tr -d '\n' | head -c 100000000`)
	if e.OutputSize != 100_000_000 || len(e.Head)+len(e.Tail) != protocol.MaxGateHead+protocol.MaxGateTail {
		t.Errorf("%d bytes, %d and %d kept", e.OutputSize, len(e.Head), len(e.Tail))
	}
	if grown := p.peak() - before; grown > 8<<20 { // what is kept, as text of a message, and what the garbage collector lets lie
		t.Errorf("the runner grew by %d KiB", grown>>10)
	}
}

// peak is the most memory that the runner has had, in bytes.
func (p *pod) peak() int64 {
	p.t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(p.runner.Process.Pid), "status"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return kib << 10
		}
	}
	p.t.Fatal("no VmHWM")
	return 0
}

// TestGateThatLeavesAProcess: the exit is told although a process that the gate left still has its output.
func TestGateThatLeavesAProcess(t *testing.T) {
	p := newPod(t, nil)
	began := time.Now()
	e := p.gate(`(while :; do echo more; done) & exit 7`)
	if e.Code != 7 || time.Since(began) > 2*time.Minute {
		t.Errorf("code %d after %s", e.Code, time.Since(began))
	}
	if err := p.watchdog.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if e := p.gate(`echo fine`); e.Code != 0 || string(e.Head) != "fine\n" {
		t.Errorf("the gate after it: %+v", e)
	}
}

// TestStartAfterAKilledGate: when a kill is answered, the next start is taken, even if the container's log takes nothing.
func TestStartAfterAKilledGate(t *testing.T) {
	p := newPod(t, nil)
	nothing := ""
	p.log.mu.Lock() // the log takes nothing
	defer p.log.mu.Unlock()
	for i := range 3 {
		start := protocol.RunnerStart{Argv: []string{"/bin/sh", "-c", "while :; do echo more; done"}, Dir: p.dir, Gate: true, Input: &nothing}
		if _, _, err := p.watchdog.Start(t.Context(), start); err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		time.Sleep(300 * time.Millisecond) // it fills the pipe of the log; nothing is proved by it
		if err := p.watchdog.Kill(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGateThatCannotStart: the answer says whether another command is needed, or another try.
func TestGateThatCannotStart(t *testing.T) {
	p := newPod(t, nil)
	try := func(argv ...string) *runnerlink.RefusedError {
		t.Helper()
		_, _, err := p.watchdog.Start(t.Context(), protocol.RunnerStart{Argv: argv, Dir: p.dir, Gate: true})
		refused, is := errors.AsType[*runnerlink.RefusedError](err)
		if !is {
			t.Fatalf("%q: %v", argv, err)
		}
		return refused
	}
	if err := os.WriteFile(filepath.Join(p.dir, "text"), []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"no-such-program", "./none", "./text", p.dir} {
		if refused := try(program); !refused.BadCommand {
			t.Errorf("%s: %+v", program, refused)
		}
	}
	p.shell("sleep 1000")
	if refused := try("true"); refused.BadCommand {
		t.Errorf("while an agent runs: %+v", refused)
	}
}
