// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"testing"
	"time"
)

// TestDelay: a change waits for as long as nobody reads its event, and what was measured is forgotten with a recorded checkpoint alone.
func TestDelay(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	b.engine.Recorded()
	if d := b.engine.Delay(); d != 0 {
		t.Errorf("nothing has changed, and took %s", d)
	}
	const wait = 300 * time.Millisecond
	began := time.Now()
	b.engine.Unread(func() {
		put(t, b.root, "new", "x")
		time.Sleep(wait)
	})
	for b.engine.Delay() == 0 { // a capture of ours would take the event away
		time.Sleep(time.Millisecond)
	}
	const tick = 10 * time.Millisecond // of the slowest kernel
	if d, passed := b.engine.Delay(), time.Since(began); d < wait-tick || d > passed+tick {
		t.Errorf("%s of %s, and %s have passed", d, wait, passed)
	}
	b.capture()
	if b.engine.Delay() == 0 {
		t.Error("a capture that is not recorded forgot it")
	}
	b.engine.Recorded()
	if d := b.engine.Delay(); d != 0 {
		t.Errorf("%s after it was recorded", d)
	}
}
