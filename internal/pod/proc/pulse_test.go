// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"testing"
	"time"
)

// TestStartedAt: a name may have anything in it, and what has ended is no command.
func TestStartedAt(t *testing.T) {
	const rest = " 1 7 7 0 -1 4194560 100 200 0 0 150 50 300 1 20 0 1 0 500 1000 10\n"
	for text, want := range map[string]string{
		"7 (make) S" + rest: "make", "7 (a) b (c) R" + rest: "a) b (c", "7 () S" + rest: "", "7 (make) Z" + rest: "gone", "7 (make) S 1 2": "gone", "": "gone", "7 (x": "gone",
	} {
		name, since, lives := startedAt([]byte(text))
		if lives != (want != "gone") || lives && (name != want || since != 5*time.Second) {
			t.Errorf("%q: %q, %s, %t", text, name, since, lives)
		}
	}
}

func TestCPUTime(t *testing.T) {
	const good = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 200 0 0 150 50 300 1 20 0 1 0 5 1000 10\n"
	for text, want := range map[string]time.Duration{
		good: 2 * time.Second, "7 (x) R 1 7 7 0 -1 0 1 2 0 0 1 0 0 0 20\n": 10 * time.Millisecond,
		"": -1, "7 (x": -1, "7 (x) R 1 2": -1, "7 (x) R 1 7 7 0 -1 0 1 2 0 0 a 0 0 0 20": -1, "7 (x) R 1 7 7 0 -1 0 1 2 0 0 -1 0 0 0 20": -1,
	} {
		own, ended, ok := cpuTime([]byte(text))
		if ok != (want >= 0) || ok && own != want {
			t.Errorf("%q: %s, %s, %t", text, own, ended, ok)
		}
		if text == good && ended != 3010*time.Millisecond {
			t.Errorf("those that have ended: %s", ended)
		}
	}
}
