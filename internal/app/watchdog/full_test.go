// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestFullWorkspaceIsPrepared: a volume that an agent has filled keeps no attempt from starting, and what was removed for
// that is told.
func TestFullWorkspaceIsPrepared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "true")
	if err := unix.Mount("tmpfs", w.paths.Workspace, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("a small volume is needed: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.paths.Workspace, unix.MNT_DETACH) })
	f, err := os.Create(filepath.Join(w.paths.Workspace, "filler.log"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(errors.Join(err, f.Close()), unix.ENOSPC) {
		t.Fatal(err)
	}
	p := w.start(1, nil)
	told := func(r protocol.Report) bool {
		return r.Status != nil && slices.ContainsFunc(r.Status.Problems, func(p string) bool { return strings.HasPrefix(p, "workspace: it was full") })
	}
	w.eventually("the removal is told", func() bool { return slices.ContainsFunc(w.intake.Reports(), told) })
	p.finish()
	if _, err := os.Lstat(filepath.Join(w.paths.Workspace, "filler.log")); err == nil {
		t.Error("the workspace is as full as it was")
	}
	if text, err := os.ReadFile(filepath.Join(w.paths.Workspace, "README.md")); err != nil || string(text) != "The shop.\n" {
		t.Errorf("README.md: %q, %v", text, err)
	}
}

// TestTooMuchIsHeldInAnAudit: what was never read is not promoted, whatever the enforcement.
func TestTooMuchIsHeldInAnAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", func(o *protocol.Orders) {
		o.Policy.Enforcement, o.Policy.Changes.MaxWorkspaceFiles = policy.Audit, 100
	})
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = "mkdir web/many; for i in $(seq 300); do echo $i > web/many/$i; done; " + w.waitFor("end") + "rm -r web/many; echo fine > web/fine.html"
	})
	p := w.start(1, nil)
	w.eventually("the workspace is too large", func() bool {
		return slices.ContainsFunc(w.intake.Checkpoints(), func(c protocol.CheckpointReport) bool {
			return c.Verdict == protocol.Invalid && c.Action == protocol.ActionHeld && c.Settled && c.DeliveryCommit == ""
		})
	})
	w.signal("end")
	if f := p.finish(); f.Outcome != protocol.OutcomeDelivered || w.delivered("web/fine.html") != "fine" {
		t.Errorf("final report %+v", f)
	}
}

// TestOrdersThatCannotBeJournaled: no task is done before the gates have passed that the newest orders list, although the journal has no room for these
// orders. Users read how large the orders are and what to do. When there is room, the work continues.
func TestOrdersThatCannotBeJournaled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	if err := unix.Mount("tmpfs", w.paths.Trusted, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatalf("a small volume is needed: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.paths.Trusted, unix.MNT_DETACH) })
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = "echo bad > web/page.html; " + w.waitFor("go")
		o.Policy.Supervision.MaxCorrections, o.Policy.MaxCheckpointFailures = 0, 1000
	})
	p := w.start(1, nil)
	w.eventually("the agent works", func() bool { return w.intake.Status().AgentRunning })
	filler := w.fill()
	w.intake.Order(func(o *protocol.Orders) {
		o.Prompt = strings.Repeat("Add a login page. ", 100_000)
		o.Gates = []protocol.Gate{{Name: "unit", Command: []string{"/bin/sh", "-c", good}, Timeout: time.Minute}}
		o.Tasks[0].Gates = []string{"unit"}
	})
	w.eventually("the orders came", func() bool { return strings.Contains(w.log.String(), "cannot journal them") })
	w.signal("go")
	w.eventually("the checkpoint fails", func() bool { return len(w.intake.Failures()) > 0 })
	if f := w.intake.Failures()[0]; f.Reason != protocol.ReasonVolumeFull || !strings.Contains(f.Message, "the newest orders (18") || !strings.Contains(f.Message, "make room on the trusted volume") {
		t.Errorf("failure %+v", f)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	wantFinal(t, p.finish(), protocol.OutcomeBlocked, protocol.ReasonGateFailed)
	if w.branch() != "" {
		t.Errorf("delivered %s", w.branch())
	}
}

// fill leaves room for small records of the journal, and for no large orders. It names the file that has to go.
func (w *world) fill() string {
	w.t.Helper()
	var volume unix.Statfs_t
	if err := unix.Statfs(w.paths.Trusted, &volume); err != nil {
		w.t.Fatal(err)
	}
	filler := filepath.Join(w.paths.Trusted, "something-else")
	if err := os.WriteFile(filler, make([]byte, int64(volume.Bavail)*volume.Bsize-1<<20), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return filler
}

// TestNoTaskBeginsByOrdersThatCannotBeJournaled: by the newest orders a task is done that has no gates any more. As long as the journal does not have
// them, the task still waits for its gate there, and no other task begins.
func TestNoTaskBeginsByOrdersThatCannotBeJournaled(t *testing.T) {
	t.Parallel()
	w := newGated(t, "echo page > web/$TIDEWAITER_TASK.html", "")
	if err := unix.Mount("tmpfs", w.paths.Trusted, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatalf("a small volume is needed: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.paths.Trusted, unix.MNT_DETACH) })
	w.marking("sleep 1000")
	w.intake.Order(func(o *protocol.Orders) {
		o.Tasks, o.Policy.MaxCheckpointFailures = []protocol.Task{{Name: "one", Gates: []string{"gate-0"}}, {Name: "two"}}, 1000
	})
	p := w.start(1, nil)
	w.eventually("the gate runs", func() bool { return w.runs() > 0 })
	filler := w.fill()
	w.intake.Order(func(o *protocol.Orders) {
		o.Tasks[0].Instructions, o.Tasks[0].Gates = strings.Repeat("Add a login page. ", 100_000), nil
	})
	w.eventually("the orders came", func() bool { return strings.Contains(w.log.String(), "cannot journal them") })
	w.eventually("the next task is about to begin", func() bool {
		s, err := journal.Replay(w.journaled())
		if err != nil {
			t.Fatal(err)
		}
		f := w.intake.Status().Fault
		return s.Tasks["two"].Begun || f != nil && f.Reason == protocol.ReasonVolumeFull
	})
	if _, s := w.recorded(); s.Tasks["two"].Begun && !s.Tasks["one"].Done {
		t.Errorf("two tasks have begun: %+v", s.Orders.Tasks)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.git("-C", w.origin, "diff", "--name-only", "main", "tidewaiter/login"); got != "web/one.html\nweb/two.html" {
		t.Errorf("the delivery changes %q", got)
	}
}
