// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proc is what PID 1 of a container does to the other processes in it: start, reap, stop, continue and end them.
// Everything here acts on the whole pid namespace and refuses to work anywhere but in its PID 1.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotInit is returned outside PID 1, because a signal to all would reach the processes of the whole machine there.
var ErrNotInit = errors.New("this process is not PID 1 of a container")

// Container is every process of the container but this one, its PID 1.
//
// Its methods wait for each other. Processes end, and are reaped, at any time.
type Container struct {
	reaper *reaper

	mu     sync.Mutex
	scan   *scanner
	frozen *freeze // nil while the processes may run
}

// NewContainer takes charge of the container's processes: it reaps every child from now on until Close.
func NewContainer() (*Container, error) {
	if os.Getpid() != 1 {
		return nil, ErrNotInit
	}
	return &Container{reaper: newReaper(), scan: newScanner()}, nil
}

// Close stops reaping and watching over a freeze. The processes are left as they are.
func (c *Container) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		c.frozen.unwatch()
	}
	c.reaper.close()
}

// signalAll sends a signal to every process of the pid namespace but this one, in one step: the kernel lets no fork slip
// through. It is not an error if there is no process.
func signalAll(signal unix.Signal) error {
	if os.Getpid() != 1 {
		return ErrNotInit
	}
	if err := unix.Kill(-1, signal); err != nil && err != unix.ESRCH {
		return fmt.Errorf("send %s to all processes: %w", unix.SignalName(signal), err)
	}
	return nil
}

// pause waits for a while, or returns why it must not.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
