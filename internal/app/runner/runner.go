// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner is PID 1 of the agent's container. It starts the agent and freezes, thaws and ends its processes when the watchdog says
// so. It holds no secret, because it shares a uid with the agent. It decides only one thing: without a watchdog nothing runs.
package runner

import (
	"context"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// exitBroken is the exit code when the runner itself cannot work (EX_SOFTWARE).
const exitBroken = 70

// exitTerminated is the exit code when the container received a signal to end and no watchdog said how (128 + SIGTERM).
const exitTerminated = 143

// Options of a runner; every field must be set, see DefaultOptions.
type Options struct {
	// Socket is the path at which the watchdog listens.
	Socket string
	// Retry is the pause between two attempts to reach it.
	Retry time.Duration
	// OrphanLimit is how long the agent stays frozen without a watchdog before the runner ends it.
	OrphanLimit time.Duration
	// TerminationLimit is how long the watchdog has to end the runner after the container received SIGTERM.
	TerminationLimit time.Duration
	// TerminationGrace is the grace period of the agent's processes if the watchdog does not end the runner in time.
	TerminationGrace time.Duration
}

// DefaultOptions fit a pod of Tidewaiter: both termination times together stay below its grace period of 60 s. The orphan limit is the
// longest pause of the kubelet between two starts of a container that crashes.
func DefaultOptions() Options {
	return Options{
		Socket:           protocol.SocketPath,
		Retry:            100 * time.Millisecond,
		OrphanLimit:      5 * time.Minute,
		TerminationLimit: 45 * time.Second,
		TerminationGrace: 5 * time.Second,
	}
}

// Run is the life of the runner. It returns the container's exit code.
func Run(o Options, stderr io.Writer) int {
	proc.Launch()
	log := slog.New(slog.NewJSONHandler(newLogWriter(stderr), nil)).With("process", "runner")
	stops, err := proc.Stops()
	if err != nil {
		log.Error("Cannot hear when the container is to end", "error", err)
		return exitBroken
	}
	if err := proc.Harden(); err != nil {
		log.Error("Cannot protect itself from the agent", "error", err)
		return exitBroken
	}
	processes, err := proc.NewContainer()
	if err != nil {
		log.Error("Cannot set up the container", "error", err)
		return exitBroken
	}
	defer processes.Close()

	r := &runner{
		options:   o,
		log:       log,
		processes: processes,
		dial:      runnerlink.Dial,
		inbox:     make(chan func()),
		jobs:      make(chan func(), maxJobs),
		done:      make(chan struct{}),
	}
	defer close(r.done)
	go work(r.jobs, r.done)
	log.Info("Waiting for the watchdog", "socket", o.Socket)
	r.connect()
	for r.code == nil {
		select {
		case act := <-r.inbox:
			act()
		case s := <-stops:
			r.terminate(s)
		}
	}
	return *r.code
}

// maxFailedSweeps is how many times in a row the processes may resist before the runner ends, and all of them with it. It
// is above what the watchdog waits for before it does the same.
const maxFailedSweeps = 10

// maxJobs bounds what waits for the processes; the watchdog asks for one thing at a time.
const maxJobs = 64

// runner is a loop that owns all fields; other goroutines hand it functions by post.
type runner struct {
	options   Options
	log       *slog.Logger
	processes *proc.Container
	// dial connects to the watchdog.
	dial func(ctx context.Context, path string) (*runnerlink.Conn, error)

	inbox chan func()
	// jobs act on the processes, one after the other, outside of the loop since they take their time.
	jobs chan func()
	done chan struct{}

	// link is nil while no watchdog is connected. Session ends with it.
	link       *runnerlink.Conn
	session    context.Context //nolint:containedctx // the lifetime of a connection, not of a call
	endSession context.CancelFunc
	// nonce is what the watchdog knows this runner by; empty before it has said so.
	nonce string
	// everConnected is false until the first watchdog came: nothing can have been started.
	everConnected bool
	// stopWaiting ends the countdown to orphanhood.
	stopWaiting func()

	// starting is true from the command to its answer.
	starting bool
	agent    *agent
	lastExit *protocol.RunnerExited

	// scratch are the folders of gates, which the next kill removes.
	scratch []string

	frozen bool
	// giveUpFreeze ends a freeze that has not settled; stopLimit its limit. Both are never nil after the first freeze.
	giveUpFreeze context.CancelFunc
	stopLimit    func()

	// failedSweeps counts freezes, thaws and kills in a row that failed.
	failedSweeps int

	// terminating is the signal with which the container must end.
	terminating string

	// code is set to end the loop.
	code *int
}

// agent is the process that a start command made.
type agent struct {
	start    int64
	process  *proc.Process
	dialogue *dialogue
	// ended is closed when the process has ended and its output was read. output is that of a gate; nil for an agent.
	ended  <-chan struct{}
	output *kept
}

// post has the loop run a function, unless it has ended.
func (r *runner) post(act func()) {
	select {
	case r.inbox <- act:
	case <-r.done:
	}
}

// after posts a function later. The returned function, called in the loop, prevents it for certain.
func (r *runner) after(d time.Duration, act func()) (cancel func()) {
	cancelled := false // the loop's own
	timer := time.AfterFunc(d, func() {
		r.post(func() {
			if !cancelled {
				act()
			}
		})
	})
	return func() {
		cancelled = true
		timer.Stop()
	}
}

func work(jobs <-chan func(), done <-chan struct{}) {
	for {
		select {
		case job := <-jobs:
			job()
		case <-done:
			return
		}
	}
}

// enqueue has a job done after the waiting ones; false if there are too many.
func (r *runner) enqueue(job func()) bool {
	select {
	case r.jobs <- job:
		return true
	default:
		return false
	}
}

// swept counts how often in a row the processes could not be reached. A process of the same uid may have made this one
// unable to see them, for good; its end needs no ability at all.
func (r *runner) swept(err error) {
	if err == nil {
		r.failedSweeps = 0
		return
	}
	if r.failedSweeps++; r.failedSweeps >= maxFailedSweeps {
		r.log.Error("Cannot stop the processes; ending with them", "attempts", r.failedSweeps, "error", err)
		r.exit(protocol.RunnerBlindCode)
	}
}

func (r *runner) exit(code int) { r.code = &code }

// terminate tells the watchdog that the container is to end. The agent is left alone: what it has done is captured first.
func (r *runner) terminate(s unix.Signal) {
	switch {
	case r.terminating != "":
		return // once is enough
	case !r.everConnected:
		r.exit(exitTerminated)
		return
	}
	r.terminating = unix.SignalName(s)
	r.log.Info("Asked to end", "signal", r.terminating)
	r.tellTermination()
	r.after(r.options.TerminationLimit, func() {
		r.log.Error("The watchdog did not end this container in time; ending it")
		r.endAll(r.options.TerminationGrace, exitTerminated)
	})
}

func (r *runner) tellTermination() {
	if r.terminating != "" && r.link != nil {
		r.send(protocol.RunnerEvent{Signal: &protocol.RunnerSignal{Name: r.terminating}})
	}
}

// endAll ends every process and then the runner, whatever is being done.
func (r *runner) endAll(grace time.Duration, code int) {
	if r.endSession != nil {
		r.endSession()
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace+killTimeout)
		defer cancel()
		err := r.processes.Kill(ctx, grace)
		r.post(func() {
			if err != nil {
				r.log.Error("Cannot end all processes; they end with this one", "error", err)
			}
			r.exit(code)
		})
	}()
}
