// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "golang.org/x/sys/unix"

// Unread keeps the watcher from reading the kernel's queue while something happens.
func (e *Engine) Unread(while func()) {
	e.watcher.mu.Lock()
	defer e.watcher.mu.Unlock()
	while()
}

// Overflow is what the watcher finds when the kernel has dropped all events until now.
func (e *Engine) Overflow() {
	e.watcher.take()
	e.watcher.mu.Lock()
	defer e.watcher.mu.Unlock()
	e.watcher.lose()
}

// Pass gives the watcher the events of so many names at the root that come and go.
func (e *Engine) Pass(n int, name func(int) string) {
	w := e.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range n {
		w.event(w.watched[""], unix.IN_CREATE, []byte(name(i)))
		w.event(w.watched[""], unix.IN_DELETE, []byte(name(i)))
	}
}

// Busy keeps the engine at work while something happens, as a capture does, or a watch on a new directory.
func (e *Engine) Busy(while func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	while()
}
