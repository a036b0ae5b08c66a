// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// unseen is a workspace in which a file can be changed without any sign but an event.
func unseen(t *testing.T) (b *bench, change func() bool) {
	t.Helper()
	b = newBench(t, map[string]string{"victim": strings.Repeat("victim", 2000), "other": "x\n"})
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	evil, victim := filepath.Join(filepath.Dir(b.root), "evil"), filepath.Join(b.root, "victim")
	if err := os.WriteFile(evil, []byte(strings.Repeat("EVIL!!", 2000)), 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // what was written just now is read again in any case
	b.capture()
	b.capture()
	return b, func() bool { return moveExtents(t, evil, victim) }
}

// TestEverythingIsReadAfterLostEvents: where the kernel has dropped events, no signature is believed.
func TestEverythingIsReadAfterLostEvents(t *testing.T) {
	b, change := unseen(t)
	moved := change()
	b.engine.Overflow()
	if s := b.capture(); (len(s.Changes) == 1) != moved {
		t.Errorf("changes %v, moved %v", s.Changes, moved)
	}
}

// mover changes a file while everything is being frozen.
type mover struct{ change func() }

// Freeze implements workspace.Freezer.
func (m mover) Freeze(context.Context) (workspace.Frozen, error) {
	m.change()
	return workspace.Frozen{Settled: true}, nil
}

// Thaw implements workspace.Freezer.
func (mover) Thaw(context.Context) error { return nil }

// TestEventsOfTheFreezeAreRead: a file with an event that came while the agent was being frozen is read under the freeze, and so is every file where the
// kernel has dropped events meanwhile.
func TestEventsOfTheFreezeAreRead(t *testing.T) {
	for name, lost := range map[string]bool{"events": false, "lost events": true} {
		t.Run(name, func(t *testing.T) {
			b, change := unseen(t)
			open, err := os.OpenFile(filepath.Join(b.root, "other"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close() // a writer calls for a freeze
			if _, err := open.WriteString("more\n"); err != nil {
				t.Fatal(err)
			}
			moved := false
			s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: mover{func() {
				if moved = change(); lost {
					b.engine.Overflow()
				}
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if (len(s.Changes) == 2) != moved {
				t.Errorf("changes %v, moved %v", s.Changes, moved)
			}
		})
	}
}

// TestAFailedCaptureLosesNoEvent: what a capture took from the watcher is left to the next one when it fails.
func TestAFailedCaptureLosesNoEvent(t *testing.T) {
	for name, lost := range map[string]bool{"events": false, "lost events": true} {
		t.Run(name, func(t *testing.T) {
			b, change := unseen(t)
			moved := change()
			if lost {
				b.engine.Overflow()
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := b.engine.Capture(gone, workspace.Still{}); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if s := b.capture(); (len(s.Changes) == 1) != moved {
				t.Errorf("changes %v, moved %v", s.Changes, moved)
			}
		})
	}
}
