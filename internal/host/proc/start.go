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
	// Argv of which the first is looked up in the PATH of Env unless it holds a slash.
	Argv []string
	// Env as NAME=value, complete.
	Env []string
	// Dir is absolute.
	Dir string
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

	done chan struct{}
	exit Exit
}

// Done is closed when the process has ended; children of its own may still run.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how it ended, once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

func (p *Process) end(e Exit) {
	p.exit = e
	p.Input.close()
	_ = p.Replies.Close()
	close(p.done)
}

// Start runs a command in a session of its own, so that a signal to "its process group" cannot mean this process. Its output
// is this process's own, untouched; its input is a pipe that stays open until it ends: what reads to the end of its input
// waits for as long. Somebody has to read its replies: a pipe that is full makes it wait.
func (c *Container) Start(command Command) (*Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		return nil, ErrFrozen
	}
	path, err := command.resolve()
	if err != nil {
		return nil, err
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
	replies, answer, err := newReplies()
	if err != nil {
		input.close()
		return nil, err
	}
	defer unix.Close(answer)
	p := &Process{Input: input, Replies: replies, done: make(chan struct{})}
	p.PID, err = c.reaper.start(path, command, [2]int{ends[0], answer}, p)
	if err != nil {
		input.close()
		_ = replies.Close()
		return nil, explain(path, err)
	}
	return p, nil
}

// newReplies makes the pipe of replies: this process's end, and the descriptor of the other, which blocks its writer.
func newReplies() (*os.File, int, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("make reply pipe: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		_, _ = unix.Close(ends[0]), unix.Close(ends[1])
		return nil, 0, fmt.Errorf("make replies non-blocking: %w", err)
	}
	return os.NewFile(uintptr(ends[0]), "replies"), ends[1], nil
}

// start forks and registers in one step. The pipes are standard input and replies.
func (r *reaper) start(path string, command Command, pipes [2]int, p *Process) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, command.Argv, &syscall.ProcAttr{
		Dir:   command.Dir,
		Env:   command.Env,
		Files: []uintptr{uintptr(pipes[0]), os.Stdout.Fd(), os.Stderr.Fd(), RepliesFD: uintptr(pipes[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, err
	}
	r.children[pid] = p
	return pid, nil
}
