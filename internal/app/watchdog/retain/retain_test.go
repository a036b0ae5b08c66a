// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package retain_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/retain"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/testkit/workroom"
)

func service(r *workroom.Room, probe steps.Probe) *retain.Service {
	return retain.New(retain.Options{
		Journal: r.Journal, Repository: r.Repository, Workspace: r.Workspace, MaxPacks: 1, Log: slog.New(slog.DiscardHandler), Probe: probe,
	})
}

// hoard is a room that has promoted one file, and rejected six that nothing compresses.
func hoard(t *testing.T) *workroom.Room {
	r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
	take := func() {
		if _, err := r.Checkpoint.Take(t.Context(), r.Occasion()); err != nil {
			t.Fatal(err)
		}
	}
	r.Write("web/good.html", "good")
	take()
	random := rand.NewChaCha8([32]byte{})
	for range 6 {
		content := make([]byte, 10_000)
		_, _ = random.Read(content)
		r.Write("lib/hoard", string(content))
		take()
	}
	r.Remove("lib/hoard")
	take()
	r.Orders.Policy.KeepCheckpoints, r.Orders.Policy.UnpromotedBytes = 1, 32<<10
	return r
}

// there says whether the repository holds a tree with everything in it.
func there(t *testing.T, r *workroom.Room, tree string) bool {
	t.Helper()
	id, err := objects.ParseID(tree)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Repository.Tree(t.Context(), id)
	return err == nil
}

// trees are those of the checkpoints, by number.
func trees(t *testing.T, r *workroom.Room) map[int64]string {
	t.Helper()
	records, err := r.Journal.Records()
	if err != nil {
		t.Fatal(err)
	}
	list := map[int64]string{}
	for _, record := range records {
		if record.Intent != nil {
			list[record.Intent.Sequence] = record.Intent.Tree
		}
	}
	return list
}

// What was never promoted is dropped from the oldest on, until it fits the budget; the journal says so first, and a process
// that ends in the middle is followed by one that completes it.
func TestShed(t *testing.T) {
	pulled := errors.New("the plug was pulled")
	for _, step := range []string{"nothing", "drop journaled", "content dropped"} {
		t.Run(step, func(t *testing.T) {
			r := hoard(t)
			err := service(r, func(reached string) error { return map[string]error{step: pulled}[reached] }).Shed(t.Context(), r.Orders)
			if crashed := step != "nothing"; crashed != errors.Is(err, pulled) || !crashed && err != nil {
				t.Fatal(err)
			}
			r.Open(nil)
			if err := r.Workspace.Open(t.Context(), r.Journal.State()); err != nil {
				t.Fatal(err)
			}
			if err := service(r, nil).Shed(t.Context(), r.Orders); err != nil {
				t.Fatal(err)
			}
			dropped := r.Journal.State().Dropped
			if len(dropped) < 2 || !dropped[2] || dropped[1] || dropped[7] || dropped[8] {
				t.Errorf("dropped %v, want the oldest of 2 to 7", dropped)
			}
			for sequence, tree := range trees(t, r) {
				if there(t, r, tree) == dropped[sequence] {
					t.Errorf("checkpoint %d: dropped %v, and whether its content is there: %v", sequence, dropped[sequence], !dropped[sequence])
				}
			}
			if got := r.Promoted("web/good.html"); got != "good" {
				t.Errorf("promoted %q", got)
			}
			r.WantRefs()
		})
	}
}

// A checkpoint that a request names is not dropped, and nothing is without a budget.
func TestShedKeepsWhatIsNeeded(t *testing.T) {
	r := hoard(t)
	free := r.Orders
	free.Policy.UnpromotedBytes = 0
	if err := service(r, nil).Shed(t.Context(), free); err != nil || len(r.Journal.State().Dropped) != 0 {
		t.Errorf("without a budget: %v, dropped %v", err, r.Journal.State().Dropped)
	}
	r.Orders.Requests = []protocol.Request{{ID: "r1", Kind: protocol.RequestRollback, Rollback: &protocol.Rollback{Checkpoint: 2}}}
	if err := service(r, nil).Shed(t.Context(), r.Orders); err != nil {
		t.Fatal(err)
	}
	if dropped := r.Journal.State().Dropped; dropped[2] || !dropped[3] {
		t.Errorf("dropped %v, want 3 and not 2, which a request names", dropped)
	}
}

// Pruning drops what nothing reaches, and nothing that the journal speaks of.
func TestPrune(t *testing.T) {
	r := hoard(t)
	if err := r.Workspace.Close(); err != nil {
		t.Fatal(err)
	}
	r.Open(nil) // the workspace is not open when a new attempt prunes
	stray, err := r.Repository.Store().Write(objects.KindBlob, []byte(strings.Repeat("stray", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if err := service(r, nil).Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Repository.Objects().Stat(t.Context(), stray); err == nil {
		t.Error("what nothing reaches is still there")
	}
	for sequence, tree := range trees(t, r) {
		if !there(t, r, tree) {
			t.Errorf("the content of checkpoint %d is gone", sequence)
		}
	}
}

// Packs are put together beside everything else, and shedding waits for nothing but the end of that.
func TestTidy(t *testing.T) {
	r := hoard(t)
	s := service(r, nil)
	s.Tidy(t.Context())
	if err := s.Shed(t.Context(), r.Orders); err != nil {
		t.Fatal(err)
	}
	s.Tidy(t.Context())
	s.Wait()
	if len(r.Journal.State().Dropped) == 0 {
		t.Error("nothing was dropped")
	}
	for sequence, tree := range trees(t, r) {
		if !r.Journal.State().Dropped[sequence] && !there(t, r, tree) {
			t.Errorf("the content of checkpoint %d is gone", sequence)
		}
	}
}
