// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// killLook is the pause between two looks at processes that are to end.
const killLook = 5 * time.Millisecond

// Kill ends every process, frozen or not: SIGTERM, and SIGKILL for the rest after grace. It returns when none is left, or with an error if
// the context ends first, which only happens if a process hangs inside the kernel. It needs no file descriptor: a process of the same uid
// may have lowered the limit for them.
func (c *Container) Kill(ctx context.Context, grace time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		c.frozen.unwatch()
		c.frozen = nil
	}
	if grace > 0 {
		done, err := c.terminate(ctx, grace)
		if done || err != nil {
			return err
		}
	}
	for {
		if err := signalAll(unix.SIGKILL); err != nil {
			return err
		}
		left := c.left()
		if left == "" {
			return nil
		}
		if err := pause(ctx, killLook); err != nil {
			return fmt.Errorf("%s on SIGKILL: %w", left, err)
		}
	}
}

// terminate asks the processes to end; true when they did within grace. SIGCONT comes second, so that a stopped process has
// SIGTERM waiting when it wakes.
func (c *Container) terminate(ctx context.Context, grace time.Duration) (bool, error) {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
		if err := signalAll(signal); err != nil {
			return false, err
		}
	}
	within, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for {
		if c.left() == "" {
			return true, nil
		}
		if pause(within, killLook) != nil {
			return false, ctx.Err()
		}
	}
}

// left says which processes are more than zombies, and collects the zombies; "" for none.
func (c *Container) left() string {
	c.reaper.collect()
	all, err := c.scan.scan()
	if err != nil {
		return c.unseen(err)
	}
	n, first := 0, 0
	for _, p := range all {
		if p.dead() {
			continue
		}
		if n++; n == 1 {
			first = p.pid
		}
	}
	c.reaper.collect() // what the last look saw as a zombie
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d processes (first: %d) do not end", n, first)
}

// unseen stands in for a look at the processes: the kernel says whether there is anybody to send a signal to. Zombies count,
// as long as their parents have not ended.
func (c *Container) unseen(why error) string {
	if unix.Kill(-1, 0) == unix.ESRCH {
		return ""
	}
	return fmt.Sprintf("processes do not end (which ones cannot be seen: %v)", why)
}
