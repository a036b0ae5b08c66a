// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

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
