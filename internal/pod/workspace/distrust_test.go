// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// TestNoDirectoryHidesAnEvent: an event counts for its file wherever the directories above it are when it comes.
func TestNoDirectoryHidesAnEvent(t *testing.T) {
	rename := func(b *bench, from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(b.root, from), filepath.Join(b.root, to)); err != nil {
			t.Fatal(err)
		}
	}
	swap := func(b *bench) {
		rename(b, "x", "away")
		rename(b, "y", "x")
		rename(b, "away", "y")
	}
	tests := map[string]func(b *bench, change func(path string) bool) bool{
		"moved away and back": func(b *bench, change func(string) bool) bool {
			rename(b, "x", "away")
			time.Sleep(100 * time.Millisecond) // the watcher follows
			moved := change("away/d/victim")
			rename(b, "away", "x")
			return moved
		},
		"exchanged before": func(b *bench, change func(string) bool) bool {
			swap(b)
			b.capture()
			time.Sleep(100 * time.Millisecond)
			b.capture()
			return change("y/d/victim")
		},
		"exchanged and back": func(b *bench, change func(string) bool) bool {
			swap(b)
			time.Sleep(100 * time.Millisecond)
			moved := change("y/d/victim")
			swap(b)
			return moved
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]string{"x/d/victim": strings.Repeat("victim", 2000), "y/d/victim": strings.Repeat("VICTIM", 2000)})
			if err := b.engine.Watch(t.Context()); err != nil {
				t.Fatal(err)
			}
			evil := filepath.Join(filepath.Dir(b.root), "evil")
			if err := os.WriteFile(evil, []byte(strings.Repeat("EVIL!!", 2000)), 0o644); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // what was written just now is read again in any case
			b.capture()
			b.capture()
			moved := tc(b, func(path string) bool { return moveExtents(t, evil, filepath.Join(b.root, path)) })
			s := b.capture()
			if want := b.reference(); s.Tree != want {
				t.Errorf("changes %v, moved %v: not what git has", s.Changes, moved)
			}
		})
	}
}

// TestLostEventsAreOwed: where events were lost, what a capture or a restore does not read is read by the next capture.
func TestLostEventsAreOwed(t *testing.T) {
	few := workspace.Still{Limits: workspace.Limits{MaxFiles: 5}}
	for name, unread := range map[string]func(b *bench) error{
		"too many files": func(b *bench) error {
			for i := range 10 {
				put(t, b.root, fmt.Sprint("more", i), "")
			}
			s, err := b.engine.Capture(t.Context(), few)
			if !s.Incomplete {
				t.Error("the capture is complete")
			}
			for i := range 10 {
				err = errors.Join(err, os.Remove(filepath.Join(b.root, fmt.Sprint("more", i))))
			}
			return err
		},
		"a restore of one file": func(b *bench) error {
			_, err := b.engine.Restore(t.Context(), b.base, "other")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, change := unseen(t)
			moved := change()
			b.engine.Overflow()
			if err := unread(b); err != nil {
				t.Fatal(err)
			}
			s, err := b.engine.Capture(t.Context(), few)
			if err != nil {
				t.Fatal(err)
			}
			if (len(s.Changes) == 1) != moved {
				t.Errorf("changes %v, moved %v", s.Changes, moved)
			}
		})
	}
}
