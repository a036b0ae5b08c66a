// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// told says whether the newest status names a problem.
func (w *world) told(problem string) bool {
	return slices.ContainsFunc(w.intake.Status().Problems, func(p string) bool { return strings.Contains(p, problem) })
}

// A trusted volume that fills is told while there is room for checkpoints; they are judged and promoted as ever, and their
// figures say how full it is.
func TestAVolumeThatFillsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo one > web/one.html`, seldom)
	if err := unix.Mount("tmpfs", w.paths.Trusted, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.paths.Trusted, unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(w.paths.Trusted, "something-else"), make([]byte, 34<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if want := "disk: the trusted volume is more than 80 % full"; !w.told(want) {
		t.Errorf("problems %q, want one about %q", w.intake.Status().Problems, want)
	}
	v := w.intake.Checkpoints()[0].Vitals
	if v.Trusted.Size != 40<<20 || v.Trusted.Used < 34<<20 || v.Workspace.Size == 0 || v.Memory < 1<<20 || v.Descriptors < 3 || v.EventDelay < 1 || v.Read < 1 || v.Files < 5 {
		t.Errorf("vitals %+v", v)
	}
}

// File events that cannot be written are told, and no checkpoint is the worse for it.
func TestFileEventsThatCannotBeWrittenAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo one > web/one.html`, seldom)
	w.write("trusted/logs", "a file where the folder should be")
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if !w.told("file events: the log lacks the events of the last checkpoint") {
		t.Errorf("problems %q", w.intake.Status().Problems)
	}
	w.wantVerdicts("Final Valid Promoted")
}
