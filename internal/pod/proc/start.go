// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrFrozen is returned by Start while the container is frozen.
var ErrFrozen = errors.New("the container is frozen")

// Command is what to start.
type Command struct {
	// Argv is the command. Start looks up its first element in the PATH of Env unless it contains a slash.
	Argv []string
	// Env as NAME=value, complete.
	Env []string
	// Dir is absolute.
	Dir string
	// Input is all of its standard input, which ends after it. Nil leaves the input open for lines.
	Input *string
	// Output: Process.Output gets what it writes to standard output and standard error, instead of this process's own output.
	Output bool
}

// RepliesFD is the descriptor of a started process that Process.Replies reads from.
const RepliesFD = 3

// Process is a child that was started.
type Process struct {
	// PID in the container's pid namespace.
	PID int
	// Input is its standard input.
	Input *Input
	// Replies is what it writes to descriptor RepliesFD; reading fails once the process has ended.
	Replies *os.File
	// Output is what it and its children write to standard output and standard error; nil if they are this process's own. The caller reads it
	// and closes it: a full pipe makes the command wait.
	Output *os.File

	done chan struct{}
	exit Exit
}

// Done is closed when the process has ended; children of its own may still run.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how it ended, after Done is closed.
func (p *Process) Exit() Exit { return p.exit }

func (p *Process) end(e Exit) {
	p.exit = e
	p.close()
	close(p.done)
}

func (p *Process) close() {
	p.Input.close()
	_ = p.Replies.Close()
}

// Start runs a command in a session of its own, so that a signal to "its process group" cannot mean this process, and under
// the filter of system calls. Its output is this process's own, unchanged; its input is a pipe that stays open until it ends, unless the
// command has all of it. The caller has to read its replies: a full pipe makes the command wait.
func (c *Container) Start(command Command) (*Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		return nil, ErrFrozen
	}
	path, err := command.resolve()
	if err != nil {
		return nil, &CommandError{err}
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make input pipe: %w", err)
	}
	defer unix.Close(ends[0])
	input, err := newInput(ends[1])
	if err != nil {
		_ = unix.Close(ends[1])
		return nil, err
	}
	replies, answer, err := newOutput("replies")
	if err != nil {
		input.close()
		return nil, err
	}
	defer unix.Close(answer)
	p := &Process{Input: input, Replies: replies, done: make(chan struct{})}
	std := [4]int{ends[0], int(os.Stdout.Fd()), int(os.Stderr.Fd()), answer}
	if command.Output {
		output, written, err := newOutput("output")
		if err != nil {
			p.close()
			return nil, err
		}
		defer unix.Close(written)
		p.Output, std[1], std[2] = output, written, written
	}
	if err := c.reaper.launch(path, command, std, p); err != nil {
		if p.Output != nil {
			_ = p.Output.Close()
		}
		return nil, err
	}
	if command.Input != nil {
		input.only(*command.Input)
	}
	return p, nil
}

// newOutput makes a pipe that a child writes to: this process's end, and the descriptor of the other, which blocks its
// writer.
func newOutput(name string) (*os.File, int, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("make %s pipe: %w", name, err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		_, _ = unix.Close(ends[0]), unix.Close(ends[1])
		return nil, 0, fmt.Errorf("make %s non-blocking: %w", name, err)
	}
	return os.NewFile(uintptr(ends[0]), name), ends[1], nil
}

// launch starts a process and returns when it executes its command. std are its standard descriptors and the one for replies.
func (r *reaper) launch(path string, command Command, std [4]int, p *Process) error {
	verdict, told, err := newOutput("verdict")
	if err != nil {
		p.close()
		return err
	}
	defer verdict.Close()
	err = r.fork(path, command, std, told, p)
	_ = unix.Close(told)
	if err != nil {
		p.close()
		return explain(path, err)
	}
	if err := awaitLaunch(verdict, path); err != nil {
		r.kill(p)
		return err
	}
	return nil
}

// fork starts the launcher and registers it in one step.
func (r *reaper) fork(path string, command Command, std [4]int, told int, p *Process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(ownProgram, append([]string{launcherName, path}, command.Argv...), &syscall.ProcAttr{
		Dir:   command.Dir,
		Env:   command.Env,
		Files: []uintptr{uintptr(std[0]), uintptr(std[1]), uintptr(std[2]), RepliesFD: uintptr(std[3]), verdictFD: uintptr(told)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	p.PID = pid
	r.children[pid] = p
	return nil
}

// kill ends a child and waits for its end. A child that was reaped is left alone: its number may be another's.
func (r *reaper) kill(p *Process) {
	r.mu.Lock()
	if r.children[p.PID] == p {
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
	r.mu.Unlock()
	<-p.Done()
}
