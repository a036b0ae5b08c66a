// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/workspace"
)

// engineEnv makes the test binary an engine of its own: the directory of a place, and its base.
const engineEnv = "TIDEWAITER_BENCH_ENGINE"

// glance is how often a watchdog looks at most at what has changed.
const glance = 100 * time.Millisecond

// sight is what an engine process tells of itself.
type sight struct {
	// Changed paths since the last capture, Lost the times that changes could not be followed.
	Changed int
	Lost    int64
	// CPU that the process has used so far.
	CPU     time.Duration
	Settled bool
	Reason  string
}

// engineMain is the life of an engine process: a watchdog without the rest of the world. It is false in other processes.
func engineMain() bool {
	dir, base, ok := strings.Cut(os.Getenv(engineEnv), "@")
	if !ok {
		return false
	}
	watchdog.LimitMemory()
	if err := serve(context.Background(), dir, base, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// serve follows the workspace and answers each line of in with a sight: "look", or "capture" first, or "judge" what was
// captured.
func serve(ctx context.Context, dir, base string, in io.Reader, out io.Writer) error {
	repo, err := git.Open(ctx, filepath.Join(dir, "repo.git"), git.Options{})
	if err != nil {
		return err
	}
	defer repo.Close()
	id, err := objects.ParseID(base)
	if err != nil {
		return err
	}
	e, err := openEngine(ctx, dir, repo, id)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Watch(ctx); err != nil {
		return err
	}
	if ok, why := e.Watching(); !ok {
		return fmt.Errorf("not watched: %s", why)
	}
	asked := make(chan string)
	go func() {
		defer close(asked)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			asked <- lines.Text()
		}
	}()
	var quiet <-chan time.Time
	for {
		wake := e.Wake()
		if quiet != nil {
			wake = nil
		}
		select {
		case <-wake:
			quiet = time.After(glance)
			e.Changed()
		case <-quiet:
			quiet = nil
		case line, open := <-asked:
			if !open {
				return nil
			}
			if err := answer(ctx, repo, e, line, out); err != nil {
				return err
			}
		}
	}
}

func answer(ctx context.Context, repo *git.Repository, e *workspace.Engine, line string, out io.Writer) error {
	s := sight{Changed: e.Changed()}
	if line != "look" {
		limits := policy.Merge(policy.Sources{}).Changes
		snapshot, err := e.Capture(ctx, workspace.Still{Limits: workspace.Limits{
			MaxFileSize: limits.MaxFileSize, MaxBytes: limits.MaxWorkspaceSize, MaxFiles: limits.MaxWorkspaceFiles,
		}})
		if err != nil {
			return err
		}
		s.Settled, s.Reason = snapshot.Settled, snapshot.Reason
		if line == "judge" {
			if err := judgeSnapshot(ctx, repo, e, snapshot); err != nil {
				return err
			}
		}
		repo.Store().Recent().Clear()
		debug.FreeOSMemory() // as retain.Service.Tidy does
	}
	s.Lost = e.Lost()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	s.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return json.NewEncoder(out).Encode(s)
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
	executable, err := os.Executable()
	p.do(err)
	cmd := exec.CommandContext(p.t.Context(), executable)
	cmd.Env = append(os.Environ(), engineEnv+"="+p.dir+"@"+p.base.String())
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

func (e *process) ask(what string) sight {
	_, err := io.WriteString(e.in, what+"\n")
	e.p.do(err)
	var s sight
	if !e.lines.Scan() {
		e.p.t.Fatalf("engine process: %v", e.lines.Err())
	}
	e.p.do(json.Unmarshal(e.lines.Bytes(), &s))
	return s
}

func (e *process) look() sight { return e.ask("look") }

func (e *process) capture() sight { return e.snapshot("capture") }

// judge captures, and judges what was captured.
func (e *process) judge() sight { return e.snapshot("judge") }

func (e *process) snapshot(what string) sight {
	s := e.ask(what)
	if !s.Settled {
		e.p.t.Fatalf("%s: %s", what, s.Reason)
	}
	return s
}

// resident size now, or with VmHWM the largest so far, in MiB.
func (e *process) resident(field string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.pid))
	e.p.do(err)
	kib, err := strconv.ParseFloat(statusField(string(text), field), 64)
	e.p.do(err)
	return kib / 1024
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
