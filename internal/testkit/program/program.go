// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program lets a test run one of our programs as a process of its own: a second run of the test's executable, which is the program
// if a variable says so. Replicas are then what they are in a cluster, signals and exit codes included.
package program

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// variable makes the test's executable the program.
	variable = "TIDEWAITER_TEST_PROGRAM"
	// endTime is what a kubelet gives a pod by default.
	endTime = 30 * time.Second
)

// Main is for TestMain: in a process that Start started it runs the program and does not return.
func Main(run func(ctx context.Context, args []string, out io.Writer) error) {
	if os.Getenv(variable) == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Program is a running process.
type Program struct {
	cmd   *exec.Cmd
	log   output
	ended bool
}

// Start runs the program with arguments and additional environment; it ends with the test, and a failed test shows its log.
func Start(t testing.TB, environment []string, args ...string) *Program {
	t.Helper()
	return run(t, environment, nil, args)
}

// StartIdle starts the program as Start does, but it gets only processor time that others leave: programs that represent other machines
// take none from the tested one.
func StartIdle(t testing.TB, environment []string, args ...string) *Program {
	t.Helper()
	return run(t, environment, []string{"chrt", "--idle", "0"}, args)
}

// run the program by another one; nil for none.
func run(t testing.TB, environment, by, args []string) *Program {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := slices.Concat(by, []string{executable}, args)
	p := &Program{cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Env = append(append(os.Environ(), variable+"=1"), environment...)
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.End(t)
		if t.Failed() {
			t.Logf("log of the program:\n%s", p.Log())
		}
	})
	return p
}

// End asks the process to end, as a kubelet does, and fails the test unless it ends cleanly and in time.
func (p *Program) End(t testing.TB) {
	t.Helper()
	if p.ended {
		return
	}
	p.ended = true
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("ask the program to end: %v", err)
	}
	kill := time.AfterFunc(endTime, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the program does not end in order: %v", err)
	}
}

// Kill ends the process at once, as the loss of its machine does.
func (p *Program) Kill(t testing.TB) {
	t.Helper()
	p.ended = true
	if err := p.cmd.Process.Kill(); err != nil {
		t.Errorf("kill the program: %v", err)
	}
	_ = p.cmd.Wait() // it was killed
}

// Peak is the most memory that the process has occupied, in bytes.
func (p *Program) Peak(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("the program is gone: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
		t.Fatalf("its peak: %v", err)
	}
	return kib << 10
}

// ticks of processor time in a second, as /proc counts them on every architecture of Linux that Go has.
const ticks = 100

// CPU is the processor time that the process has had.
func (p *Program) CPU(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("the program is gone: %v", err)
	}
	// Fields 14 and 15; the name, which may have anything in it, is the second, in parentheses.
	rest := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var sum time.Duration
	for _, field := range rest[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatalf("its processor time: %v", err)
		}
		sum += time.Duration(n) * time.Second / ticks
	}
	return sum
}

// Log is its output.
func (p *Program) Log() string { return p.log.String() }

// Passes says whether a probe passes.
func Passes(address, path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// output collects what a process says.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to what was said.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all that was said.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
