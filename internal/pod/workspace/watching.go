// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"time"
)

// Watch opens the watcher and watches every captured directory. Call it after Reset and before the agent starts: placing watches on a tree
// that has seen millions of files is slow. If inotify is not available, or its limits are used up, the engine scans instead and Watching
// says why; that is not an error.
func (e *Engine) Watch(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	if e.base == nil {
		return errNoBase
	}
	if e.watcher.open() {
		// What is only believed may be what an agent has been at work on, unwatched.
		e.transient.Incomplete = e.transient.Incomplete || !e.captured
		go e.armCreated(e.watcher.done)
	}
	c, err := e.begin(ctx)
	if err != nil {
		return err
	}
	if _, err := c.scanner().scan(c.known, e.base); err != nil {
		return fmt.Errorf("watch workspace: %w", err)
	}
	return nil
}

// Watching says whether every directory is watched, and if not, why.
func (e *Engine) Watching() (bool, string) {
	return e.watcher.state()
}

// Changed counts the paths that changed since the last capture began, as far as the watcher saw.
func (e *Engine) Changed() int {
	return e.watcher.count()
}

// Delay is the longest time since the last Recorded from a change until its path counted among the Changed. The watcher measures it at most
// once for each read of events, to within a tick of the kernel's clock, and never by a capture. It is 0 without a measurement.
func (e *Engine) Delay() time.Duration {
	return e.watcher.longest(false)
}

// Lost counts how often since Open the watcher could not follow changes one by one. The kernel's queue ran over, or more changed between
// two captures than the watcher remembers. They were found by scanning.
func (e *Engine) Lost() int64 {
	return e.watcher.losses()
}

// Wake has a token when something changed since the token was last taken.
func (e *Engine) Wake() <-chan struct{} {
	return e.watcher.wake
}

// armCreated watches directories that appear, and notes what is in them already.
func (e *Engine) armCreated(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-e.watcher.fresh:
		}
		if !e.arm(e.watcher.takeCreated()) {
			return
		}
	}
}

// arm takes its turn with captures; it gives false when the engine is closed.
func (e *Engine) arm(created []string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	c, err := e.begin(context.Background())
	if err != nil {
		return true
	}
	for _, path := range created {
		s := c.scanner()
		// A directory that cannot be looked at now is found by the next scan.
		_ = c.relookParent(s, path)
		e.watcher.note(s.dirty)
	}
	return true
}
