// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// newLink is a patch that adds a symbolic link. Git stores its target without a newline at the end.
func newLink(path, target string) string {
	hunk := ""
	if target != "" {
		hunk = fmt.Sprintf("--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n\\ No newline at end of file\n", path, target)
	}
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 120000\n%[2]s", path, hunk)
}

// Patches that no file system holds are refused, and nothing of them is left: later patches, the final checkpoint and the
// next attempt work.
func TestPatchesThatNoFileSystemHolds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ patch, rule string }{
		"a name of 300 bytes":           {newFile("web/"+strings.Repeat("n", 300), "x"), "malformed-entry"},
		"a directory of 256 bytes":      {newFile("web/"+strings.Repeat("d", 256)+"/x", "x"), "malformed-entry"},
		"a target with NUL":             {newLink("web/link", "a\x00b"), "symlinks"},
		"a target of 4,096 bytes":       {newLink("web/link", strings.Repeat("t", 4096)), "symlinks"},
		"a target of 40,000 bytes":      {newLink("web/link", strings.Repeat("t", 40_000)), "symlinks"},
		"a target that is empty":        {newLink("web/link", ""), "symlinks"},
		"a file beneath a new file":     {newFile("web/f", "x") + newFile("web/f/g", "y"), ""},
		"a file beneath a file of base": {newFile("web/index.html/g", "y"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := agentByHand(t)
			p := w.start(1, nil)
			c := w.connect()
			bad := c.patch("bad", tc.patch)
			if bad.Status != "refused" || tc.rule != "" && (len(bad.Violations) == 0 || bad.Violations[0].Rule != tc.rule) {
				t.Errorf("the patch: %+v", bad)
			}
			if good := c.patch("good", newFile("web/good.html", "good")); good.Status != "applied" {
				t.Errorf("the next patch: %+v", good)
			}
			p.kill()
			_ = p.wait()
			p = w.start(2, nil)
			c = w.connect()
			if good := c.patch("more", newFile("web/more.html", "more")); good.Status != "applied" {
				t.Errorf("a patch of the next attempt: %+v", good)
			}
			c.complete()
			w.signal("exit")
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if got := w.git("-C", w.origin, "diff", "--name-only", "main", "tidewaiter/login"); got != "web/good.html\nweb/more.html" {
				t.Errorf("delivered %q", got)
			}
		})
	}
}

// fillWorkspace takes the space of a small workspace and leaves so many bytes. What takes it has no name, so that nothing
// that clears a workspace finds it.
func (w *world) fillWorkspace(leave int64) (release func()) {
	w.t.Helper()
	path := filepath.Join(w.paths.Workspace, "filler.log")
	f, err := os.Create(path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = f.Close() })
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		err = f.Truncate(max(size-leave, 0))
	}
	if err = errors.Join(err, os.Remove(path)); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := f.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// smallWorkspace puts the workspace on a file system of its own, of so many bytes.
func (w *world) smallWorkspace(size int) {
	w.t.Helper()
	if err := unix.Mount("tmpfs", w.paths.Workspace, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		w.t.Fatalf("mount: %v", err)
	}
	w.t.Cleanup(func() { _ = unix.Unmount(w.paths.Workspace, unix.MNT_DETACH) })
}

// A valid patch that the workspace cannot take is refused: nothing of it is promoted, and what was there is there again.
func TestAPatchThatTheWorkspaceCannotTake(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{"undisturbed": nil,
		"crashes": after("intent journaled", "withheld journaled", "restored", "refs moved", "spooled", "done journaled")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patchAFullWorkspace(t, list)
		})
	}
}

func patchAFullWorkspace(t *testing.T, list []plug) {
	w := agentByHand(t)
	w.smallWorkspace(2 << 20)
	w.tools = addresses.Free()
	plugs := newPlugs(t, list)
	p := w.start(1, plugs.probe())
	c := w.connect()
	head := w.trusted("rev-parse", protocol.RefDelivery)
	release := w.fillWorkspace(32 << 10)
	big := newFile("web/small.html", "small") + newFile("web/big.html", strings.Repeat("0123456789abcdef", 4096))
	if len(list) > 0 {
		_, _ = c.try("repo_apply_patch", map[string]any{"operation_id": "bad", "patch": big})
		p = plugs.processes(p)
		w.eventually("the tools are back", func() bool { return c.dial() == nil })
		w.eventually("the task goes on", func() bool {
			_, ok := c.try("repo_apply_patch", map[string]any{"operation_id": "bad", "patch": big})
			return ok
		})
	}
	bad := c.patch("bad", big)
	if bad.Status != "refused" || !strings.Contains(bad.Message, "the patch changed nothing") || !strings.Contains(bad.Message, "no space left") {
		t.Errorf("the patch: %+v", bad)
	}
	if now := w.trusted("rev-parse", protocol.RefDelivery); now != head {
		t.Errorf("promoted %s", now)
	}
	if got := w.inWorkspace("web/small.html"); got != "(nothing)" {
		t.Errorf("the workspace has %q", got)
	}
	if again := c.patch("bad", big); again.Status != "refused" {
		t.Errorf("the same operation again: %+v", again)
	}
	release()
	if good := c.patch("good", big); good.Status != "applied" {
		t.Errorf("with space: %+v", good)
	}
	c.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantVerdicts("Patch Valid Held unsettled", "Patch Valid Promoted", "Final Skipped None")
}

// A workspace that cannot go back is a failed checkpoint, whose state is kept, and not the end of the Feature.
func TestARestoreThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom, shadow)
	// Large in the workspace and small in a pack, so that no clearing of the workspace gives enough room.
	seed := w.seed()
	w.write("seed/web/large.html", strings.Repeat("0123456789abcdef", 64<<10))
	w.git("-C", seed, "add", "-A")
	w.git("-C", seed, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "Grow")
	w.git("-C", seed, "push", "-q", w.origin, "main")
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo evil > web/legacy/evil.html; rm web/index.html web/large.html; ` + w.signalled("written") + w.waitFor("end")
	})
	w.smallWorkspace(2 << 20)
	p := w.start(1, nil)
	w.waitSignal("written")
	release := w.fillWorkspace(0)
	if r := w.request(protocol.Request{ID: "full", Kind: protocol.RequestCheckpoint}); r.OK || !strings.Contains(r.Message, "no space left") {
		t.Errorf("answer of a full workspace: %+v", r)
	}
	if c := w.intake.Checkpoints()[0]; c.Action != protocol.ActionHeld || c.Settled || !strings.Contains(c.UnsettledReason, "no space left") {
		t.Errorf("checkpoint of a full workspace: %+v", c)
	}
	release()
	w.checkpointNow("free")
	if index, evil := w.inWorkspace("web/index.html"), w.inWorkspace("web/legacy/evil.html"); index != "<h1>Shop</h1>\n" || evil != "(nothing)" {
		t.Errorf("the workspace has %q and %q", index, evil)
	}
	w.signal("end")
	// What went back of the workspace is judged like anything else: without the file that breaks a rule it is valid.
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("evil\n", false)
}
