// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

// optionsEnv makes the test binary a runner with these options.
const optionsEnv = "TIDEWAITER_TEST_RUNNER"

func TestMain(m *testing.M) {
	proc.Launch()
	container.Main()
	if text := os.Getenv(optionsEnv); text != "" {
		var o Options
		if err := errors.Join(container.Enter(), json.Unmarshal([]byte(text), &o), os.Unsetenv(optionsEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(Run(o, os.Stderr))
	}
	os.Exit(m.Run())
}

// pod is a runner in a container of its own, and this test as its watchdog.
type pod struct {
	t        *testing.T
	dir      string
	socket   string
	memory   memory
	watchdog *runnerlink.Runner
	runner   *exec.Cmd
	view     container.View
	ended    chan struct{}
	log      lockedBuffer
}

// memory of a watchdog, for as long as a test lasts.
type memory struct{ nonce string }

func (m *memory) Nonce() (string, error) { return m.nonce, nil }

func (m *memory) Keep(nonce string) error {
	m.nonce = nonce
	return nil
}

// lockedBuffer is a buffer that is written and read at a time.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
	// discard has what comes from now on thrown away.
	discard bool
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.discard {
		return len(p), nil
	}
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startRunner makes a container; no watchdog is there yet.
func startRunner(t *testing.T, change func(*Options)) *pod {
	t.Helper()
	dir := container.TempDir(t)
	p := &pod{t: t, dir: dir, socket: filepath.Join(dir, "socket"), ended: make(chan struct{})}
	o := DefaultOptions()
	o.Socket, o.Retry = p.socket, time.Millisecond
	if change != nil {
		change(&o)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p.runner = container.Command(context.WithoutCancel(t.Context()), t)
	p.runner.Env = append(p.runner.Env, optionsEnv+"="+string(text), "INHERITED=yes", "REPLACED=no")
	p.runner.Stdout, p.runner.Stderr = &p.log, &p.log
	if err := p.runner.Start(); err != nil {
		t.Fatal(err)
	}
	p.view = container.Outside(t, p.runner.Process.Pid)
	go func() {
		_ = p.runner.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.runner.Process.Kill() // and with it its whole pid namespace
		<-p.ended
		if t.Failed() {
			t.Logf("container log:\n%s", p.log.String())
		}
	})
	return p
}

// newPod makes a container with a watchdog that it has connected to.
func newPod(t *testing.T, change func(*Options)) *pod {
	t.Helper()
	p := startRunner(t, change)
	if diff := cmp.Diff(protocol.RunnerHello{Version: 1}, p.watch()); diff != "" {
		t.Errorf("first hello (-want +got)\n%s", diff)
	}
	return p
}

// watch begins to be the watchdog and returns the runner's hello.
func (p *pod) watch() protocol.RunnerHello {
	p.t.Helper()
	watchdog, err := runnerlink.Listen(p.socket, &p.memory)
	if err != nil {
		p.t.Fatal(err)
	}
	p.watchdog = watchdog
	p.t.Cleanup(func() { _ = watchdog.Close() })
	e := p.event()
	if e.Connected == nil {
		p.t.Fatalf("event = %+v, want Connected", e)
	}
	return *e.Connected
}

func (p *pod) event() runnerlink.Event {
	p.t.Helper()
	select {
	case e := <-p.watchdog.Events():
		return e
	case <-time.After(time.Minute):
		p.t.Fatal("no event comes")
		return runnerlink.Event{}
	}
}

func (p *pod) exited() protocol.RunnerExited {
	p.t.Helper()
	e := p.event()
	if e.Exited == nil {
		p.t.Fatalf("event = %+v, want Exited", e)
	}
	return *e.Exited
}

// code waits for the container's end.
func (p *pod) code() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.t.Fatal("the runner does not end")
	}
	return p.runner.ProcessState.ExitCode()
}

func (p *pod) start(env []string, argv ...string) int64 {
	p.t.Helper()
	id, _, err := p.watchdog.Start(p.t.Context(), protocol.RunnerStart{Argv: argv, Env: env, Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *pod) shell(script string) int64 {
	p.t.Helper()
	return p.start(nil, "/bin/sh", "-c", script)
}

func (p *pod) freeze(limit time.Duration) {
	p.t.Helper()
	frozen, err := p.watchdog.Freeze(p.t.Context(), protocol.RunnerFreeze{Timeout: 10 * time.Second, Limit: limit})
	if err != nil || !frozen.Settled {
		p.t.Fatalf("freeze = %+v, %v", frozen, err)
	}
}

func (p *pod) thaw() {
	p.t.Helper()
	if _, err := p.watchdog.Thaw(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// herd starts processes that count and returns their counters.
func (p *pod) herd(n int) container.Counters {
	p.t.Helper()
	path := filepath.Join(p.dir, "counters")
	counters := container.NewCounters(p.t, path, n)
	p.start(container.Herd(path, n), p.runner.Path)
	counters.AwaitProgress(p.t)
	return counters
}

// checkStill fails when a process of the container is neither stopped nor dead, or counts while the test looks at them.
func (p *pod) checkStill(counters container.Counters) {
	p.t.Helper()
	before := counters.Now()
	if moving := p.view.Moving(p.t); len(moving) > 0 {
		p.t.Errorf("something runs that should be frozen: %q", moving)
	}
	if !slices.Equal(before, counters.Now()) {
		p.t.Error("a process counts that should be frozen")
	}
}

// eventually waits for something that no channel tells.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func (p *pod) has(name string) func() bool {
	return func() bool { _, err := os.Stat(filepath.Join(p.dir, name)); return err == nil }
}

// acceptRaw is a watchdog that speaks no protocol.
func acceptRaw(t *testing.T, path string) net.Conn {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
