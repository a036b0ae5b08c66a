// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/testkit/engine"
)

// Programs that are measured as processes of their own. They have what ours have, so that their pages in memory are alike; those of
// a test are more.
var (
	// programs is the directory that they are built in.
	programs string

	engineProgram  = programOf("engine")
	gatewayProgram = programOf("gateway")
	proxyProgram   = programOf("reverseproxy")
)

// programOf builds a program of test/ once, and gives its path.
func programOf(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(programs, name)
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "github.com/tidewaiter/tidewaiter/test/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", errors.Join(err, errors.New(string(out)))
		}
		return path, nil
	})
}

// process is a running engine process.
type process struct {
	p     *place
	pid   int
	in    io.Writer
	lines *bufio.Scanner
}

// process starts an engine on this place, and waits until it knows the workspace.
func (p *place) process() *process {
	program, err := engineProgram()
	p.do(err)
	cmd := exec.CommandContext(p.t.Context(), program, p.dir, p.base.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	p.do(err)
	out, err := cmd.StdoutPipe()
	p.do(err)
	p.do(cmd.Start())
	p.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	e := &process{p: p, pid: cmd.Process.Pid, in: in, lines: bufio.NewScanner(out)}
	e.capture()
	return e
}

func (e *process) ask(what string) engine.Sight {
	_, err := io.WriteString(e.in, what+"\n")
	e.p.do(err)
	var s engine.Sight
	if !e.lines.Scan() {
		e.p.t.Fatalf("engine process: %v", e.lines.Err())
	}
	e.p.do(json.Unmarshal(e.lines.Bytes(), &s))
	return s
}

func (e *process) look() engine.Sight { return e.ask("look") }

func (e *process) capture() engine.Sight { return e.snapshot("capture") }

// judge captures, and judges what was captured.
func (e *process) judge() engine.Sight { return e.snapshot("judge") }

func (e *process) snapshot(what string) engine.Sight {
	s := e.ask(what)
	if !s.Settled {
		e.p.t.Fatalf("%s: %s", what, s.Reason)
	}
	return s
}

// resident size now, or with VmHWM the largest so far, in MiB.
func (e *process) resident(field string) float64 {
	kib, err := occupied(e.pid, field)
	e.p.do(err)
	return kib / 1024
}

// occupied is a size of a process's memory by its field, in KiB.
func occupied(pid int, field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(statusField(string(text), field), 64)
}

// descriptors that are open.
func (e *process) descriptors() int {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", e.pid))
	e.p.do(err)
	return len(open)
}

// peak of the engine and of git beside it, in MiB: at most what they had at once.
func (e *process) peak() float64 {
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	e.p.do(err)
	sum := e.resident("VmHWM")
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil || statusField(string(text), "PPid") != strconv.Itoa(e.pid) {
			continue
		}
		if kib, err := strconv.ParseFloat(statusField(string(text), "VmHWM"), 64); err == nil {
			sum += kib / 1024
		}
	}
	return sum
}

// statusField is the first word of a field of a process's status; empty where there is none.
func statusField(status, field string) string {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.Fields(value)[0]
		}
	}
	return ""
}
