// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "golang.org/x/sys/unix"

// LoseEvents makes the watcher forget what it saw so far, and has the kernel's queue run over as it would under a flood of
// changes.
func (e *Engine) LoseEvents() {
	e.watcher.take()
	e.watcher.mu.Lock()
	defer e.watcher.mu.Unlock()
	e.watcher.event(-1, unix.IN_Q_OVERFLOW, nil)
}
