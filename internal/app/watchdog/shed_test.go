// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// hoarder writes rejected content again and again, each time other bytes, whenever it is told to.
func hoarder(w *world, rounds int) string {
	script := `echo good > web/good.html; `
	for n := range rounds {
		script += fmt.Sprintf("head -c 400000 /dev/urandom > web/legacy/hoard; %s%s", w.signalled(fmt.Sprintf("wrote-%d", n)), w.waitFor(fmt.Sprintf("go-%d", n)))
	}
	return script + "rm web/legacy/hoard; echo end > web/end.html"
}

func smallBudget(o *protocol.Orders) {
	o.Policy.KeepCheckpoints, o.Policy.UnpromotedBytes = 2, 1<<20
}

// hoarded is what the trusted repository takes on disk, in bytes.
func (w *world) hoarded() (sum int64) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.paths.Trusted, "repo.git", "objects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return sum
}

// Rejected content does not fill the trusted volume: the oldest checkpoints lose theirs, and the record says so. What the
// record still says is whole, in the next attempt too, and where the watchdog ends in the middle of it.
func TestRejectedContentHasABudget(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{"undisturbed": nil, "crashes": after("drop journaled", "content dropped")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hoard(t, list)
		})
	}
}

func hoard(t *testing.T, list []plug) {
	const rounds = 10
	w := newWorld(t, "", seldom, smallBudget)
	w.tidy = true
	w.intake.Order(func(o *protocol.Orders) { o.Agent.Command[2] = hoarder(w, rounds) })
	plugs := newPlugs(t, list)
	p := w.start(1, plugs.probe())
	alive := func() { // the watchdog is started again after the crash
		select {
		case err := <-p.ended:
			plugs.ended(w, err)
			p.watch(plugs.probe())
		default:
		}
	}
	for n := range rounds {
		w.eventually("the agent has written", func() bool {
			alive()
			_, err := os.Stat(filepath.Join(w.dir, "signals", fmt.Sprintf("wrote-%d", n)))
			return err == nil
		})
		id := fmt.Sprintf("round-%d", n)
		w.intake.Order(func(o *protocol.Orders) { o.Requests = []protocol.Request{{ID: id, Kind: protocol.RequestCheckpoint}} })
		w.eventually("the checkpoint is answered", func() bool {
			alive()
			return w.result(id) != nil
		})
		w.signal(fmt.Sprintf("go-%d", n))
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	code, out := verify(t, w.paths.Trusted, "--history")
	if code != 0 || !strings.Contains(out, "have lost their content to retention.maxUnpromotedSize") {
		t.Errorf("verify: code %d\n%s", code, out)
	}
	if got := w.delivered("web/good.html"); got != "good" {
		t.Errorf("delivered %q", got)
	}
	// The budget, and the last states of the workspace that are kept by name.
	if got := w.wantRollbackOfDropped(); got > 1<<20+3*400_000 {
		t.Errorf("%d bytes of objects are left of %d that were written", got, rounds*400_000)
	}
}

// wantRollbackOfDropped asks for a checkpoint without content, and for the next attempt. It gives what the trusted repository takes while the agent of
// that works: an attempt that ends may leave packs that were replaced, and the next one begins without them.
func (w *world) wantRollbackOfDropped() (bytes int64) {
	w.t.Helper()
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{back("gone", protocol.RollbackFull, 1)}
	})
	w.seal(2)
	if r := w.result("gone"); r == nil || r.OK || !strings.Contains(r.Message, "retention.maxUnpromotedSize") {
		w.t.Errorf("rollback to a checkpoint without content: %+v", r)
	}
	if err := os.RemoveAll(filepath.Join(w.paths.Workspace, "web")); err != nil {
		w.t.Fatal(err)
	}
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = nil
		o.Tasks = append(o.Tasks, protocol.Task{Name: "more"})
		o.Agent.Command[2] = w.signalled("at-work") + w.waitFor("measured") + "echo more > web/more.html"
	})
	p := w.start(3, nil)
	w.waitSignal("at-work")
	bytes = w.hoarded()
	w.signal("measured")
	wantFinal(w.t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if code, out := verify(w.t, w.paths.Trusted, "--history"); code != 0 {
		w.t.Errorf("verify after the next attempt: code %d\n%s", code, out)
	}
	return bytes
}
