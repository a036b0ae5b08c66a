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

// Kill ends every process, frozen or not: SIGTERM, and SIGKILL for what is left after grace. It returns when none is left, or
// with an error when the context ends first, which takes a process that hangs inside the kernel.
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
		left, err := c.left()
		if err != nil || len(left) == 0 {
			return err
		}
		if err := pause(ctx, killLook); err != nil {
			return fmt.Errorf("%d processes (first: %d) do not end on SIGKILL: %w", len(left), left[0].pid, err)
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
		left, err := c.left()
		if err != nil || len(left) == 0 {
			return err == nil, err
		}
		if pause(within, killLook) != nil {
			return false, ctx.Err()
		}
	}
}

// left lists the processes that are more than zombies, and collects those that are.
func (c *Container) left() (snapshot, error) {
	c.reaper.collect()
	all, err := c.scan.scan()
	if err != nil {
		return nil, err
	}
	left := all[:0]
	for _, p := range all {
		if !p.dead() {
			left = append(left, p)
		}
	}
	if len(left) == 0 {
		c.reaper.collect() // what the last look saw as a zombie
	}
	return left, nil
}
