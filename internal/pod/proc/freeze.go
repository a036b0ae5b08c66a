// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// minLook and maxLook are the first and the longest pause between two looks at processes that do not stand still yet:
	// a process needs a scheduler's turn to stop, a system call a disk's.
	minLook = 200 * time.Microsecond
	maxLook = 5 * time.Millisecond
	// watchInterval is how long something that enters a frozen container (kubectl exec) runs at most before it is stopped.
	watchInterval = 5 * time.Millisecond
	// fullWatch is the number of intervals after which a frozen container is looked at even if no process has started: some
	// kernels do not count.
	fullWatch = 20
)

// Frozen is how a freeze came out.
type Frozen struct {
	// Processes that were stopped, zombies left out.
	Processes int
	// Settled is true when no process can run user code any more, nor is inside a system call that may still write.
	Settled bool
	// Reason says what did not settle.
	Reason string
}

// freeze is a freeze that lasts.
type freeze struct {
	// before are the processes that the agent itself had stopped; they stay so after the thaw.
	before stoppedBefore
	// disturbed counts what ran meanwhile.
	disturbed atomic.Int64

	cancel  context.CancelFunc
	watched chan struct{}
}

// Freeze stops every process and waits until all stand still. If the context ends first, the result is not settled; the processes are still
// stopped, as far as possible. Until Thaw or Kill, Freeze also stops new processes. A second Freeze checks again.
func (c *Container) Freeze(ctx context.Context) (Frozen, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.frozen
	if f != nil {
		f.unwatch()
	} else {
		f = &freeze{}
	}
	c.frozen = f
	held, err := c.scan.settle(ctx, &f.before)
	f.watch(held)
	switch {
	case err == nil:
		return Frozen{Processes: held.alive(), Settled: true}, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return Frozen{Processes: held.alive(), Reason: reason(held)}, nil
	}
	return Frozen{}, fmt.Errorf("freeze: %w", err)
}

func reason(held snapshot) string {
	if text := held.unsettled(); text != "" {
		return text
	}
	return "processes kept waking each other"
}

// settle stops all processes until it has proof that they stand still: two looks at each process, at both of which it does,
// and between which it has not run; the second look at all of them begins when the first is over. It returns the last look,
// also with an error. Unless before is nil, it learns which were stopped before.
func (s *scanner) settle(ctx context.Context, before *stoppedBefore) (snapshot, error) {
	var last snapshot
	for stop := true; ; {
		if stop {
			if err := signalAll(unix.SIGSTOP); err != nil {
				return last, err
			}
			before.sent()
		}
		now, err := s.scan()
		if err != nil {
			return last, err
		}
		before.look(now, last)
		settled := now.worst() == still
		if settled && last != nil && last.worst() == still && now.disturbed(last) == 0 {
			return now, nil
		}
		stop = now.escaped() // woken, or come from outside; the others only need time
		if last, err = s.awaitStill(ctx, now); err != nil {
			return last, err
		}
	}
}

// awaitStill waits for the processes of a snapshot that do not stand still yet, one by one: to look at all of them again and
// again would take the CPU that they need to stop. It gives up on what has escaped. The result has the last look at each.
func (s *scanner) awaitStill(ctx context.Context, all snapshot) (snapshot, error) {
	last := slices.Clone(all)
	for i := range last {
		for look := minLook; last[i].freezeState() != still && !last[i].escaped(); look = min(2*look, maxLook) {
			again, err := s.process(last[i].pid)
			if gone(err) {
				break
			}
			if err != nil {
				return last, fmt.Errorf("look at process %d: %w", last[i].pid, err)
			}
			last[i] = again
			if last[i].inFork = s.inFork(again, all); last[i].freezeState() == still {
				break
			}
			if err := pause(ctx, look); err != nil {
				return last, err
			}
		}
	}
	return last, ctx.Err()
}

// stoppedBefore learns which processes had been stopped before a freeze, by job control or by each other: a first SIGSTOP
// stays pending at a process that is stopped already, while one that it stops has taken it. Both facts come from one thread:
// threads are read one after the other, and between two reads one of them may take the signal for the process. No look at
// all processes before the freeze is needed, which would take long among many that all want the CPU.
type stoppedBefore struct {
	signals int
	pids    map[int]bool
}

// sent counts a SIGSTOP to all.
func (b *stoppedBefore) sent() {
	if b != nil {
		b.signals++
	}
}

// look learns from a snapshot. What was woken after all is taken back: to leave that stopped would lose its wake-up.
func (b *stoppedBefore) look(now, last snapshot) {
	if b == nil {
		return
	}
	for _, p := range now {
		earlier, seen := last.find(p.pid)
		switch jobStopped := p.count(func(t task) bool { return t.state == 'T' }) > 0; {
		case !jobStopped || seen && b.pids[p.pid] && p.ranSince(earlier):
			delete(b.pids, p.pid)
		case b.signals == 1 && !seen && p.count(func(t task) bool { return t.state == 'T' && t.stopPending }) > 0:
			if b.pids == nil {
				b.pids = map[int]bool{}
			}
			b.pids[p.pid] = true
		}
	}
}

// watch begins to stop what enters the frozen container.
func (f *freeze) watch(held snapshot) {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.watched = cancel, make(chan struct{})
	go func() {
		defer close(f.watched)
		f.guard(ctx, held)
	}()
}

func (f *freeze) unwatch() {
	f.cancel()
	<-f.watched
}

func (f *freeze) guard(ctx context.Context, held snapshot) {
	s := newScanner()
	lastPID := s.lastPID()
	for n := 1; pause(ctx, watchInterval) == nil; n++ {
		newest := s.lastPID()
		if newest == lastPID && n%fullWatch != 0 {
			continue
		}
		lastPID = newest
		now, err := s.scan()
		if err == nil && now.worst() == still && now.disturbed(held) == 0 {
			continue
		}
		if err == nil {
			f.disturbed.Add(int64(max(1, now.disturbed(held))))
		}
		if again, err := s.settle(ctx, nil); err == nil {
			held = again
		}
	}
}

// lastPID is the number that the pid namespace gave out last, from proc_loadavg(5); a change means a new process or thread.
func (s *scanner) lastPID() string {
	text, err := s.read(procRoot + "/loadavg")
	if err != nil {
		return ""
	}
	return string(text[bytes.LastIndexByte(text, ' ')+1:])
}

// Thaw lets the processes continue, except for the ones that were stopped before the freeze. It returns how many processes ran
// during the freeze. Thawing what is not frozen does nothing.
func (c *Container) Thaw() (disturbed int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.frozen
	if f == nil {
		return 0, nil
	}
	f.unwatch()
	c.frozen = nil
	disturbed = int(f.disturbed.Load())
	if len(f.before.pids) == 0 {
		return disturbed, signalAll(unix.SIGCONT)
	}
	all, err := c.scan.scan()
	if err != nil {
		return disturbed, errors.Join(err, signalAll(unix.SIGCONT))
	}
	for _, p := range all {
		if f.before.pids[p.pid] {
			continue
		}
		if err := unix.Kill(p.pid, unix.SIGCONT); err != nil && err != unix.ESRCH {
			return disturbed, errors.Join(fmt.Errorf("let process %d continue: %w", p.pid, err), signalAll(unix.SIGCONT))
		}
	}
	return disturbed, nil
}
