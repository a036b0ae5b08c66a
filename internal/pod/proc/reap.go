// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, or 128 plus the signal's number.
	Code int
	// Signal is the name of the signal that ended it, such as SIGKILL; "" when it exited by itself.
	Signal string
}

// reaper collects every child: started ones and ones that were orphaned to PID 1. It is the only one to wait,
// so that no exit is lost to another's wait.
type reaper struct {
	signals chan os.Signal
	stop    chan struct{}
	stopped chan struct{}

	// mu guards fork and registration, so that a child that ends at once is known when it is collected.
	mu       sync.Mutex
	children map[int]*Process
}

func newReaper() *reaper {
	r := &reaper{
		signals:  make(chan os.Signal, 1), // one is enough: a signal stands for any number of children
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
		children: map[int]*Process{},
	}
	signal.Notify(r.signals, unix.SIGCHLD)
	go r.run()
	return r
}

func (r *reaper) run() {
	defer close(r.stopped)
	for {
		r.collect() // first of all what ended before the signal was listened for
		select {
		case <-r.signals:
		case <-r.stop:
			return
		}
	}
}

func (r *reaper) close() {
	signal.Stop(r.signals)
	close(r.stop)
	<-r.stopped
}

// collect reaps what has ended.
func (r *reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || pid == 0: // ECHILD, or none has ended
			return
		}
		if child, ok := r.children[pid]; ok {
			delete(r.children, pid)
			child.end(exitOf(status))
		}
	}
}

func exitOf(status unix.WaitStatus) Exit {
	if !status.Signaled() {
		return Exit{Code: status.ExitStatus()}
	}
	name := unix.SignalName(status.Signal())
	if name == "" {
		name = fmt.Sprintf("signal %d", int(status.Signal())) // real-time signals have no name
	}
	return Exit{Code: 128 + int(status.Signal()), Signal: name}
}
