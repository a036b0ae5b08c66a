// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const chainRef = "refs/tidewaiter/chain"

// checkpoints makes commits as captures do: a pack each, and the commit as an object of its own. Each pack also holds a blob
// that nothing reaches.
type checkpoints struct {
	t     *testing.T
	r     *git.Repository
	chain []objects.ID
	stray []objects.ID
}

func (c *checkpoints) take() {
	c.t.Helper()
	n := len(c.chain)
	p := c.r.Store().NewPack(nil)
	add := func(kind objects.Kind, content string) objects.ID {
		id, err := p.Add(kind, []byte(content))
		if err != nil {
			c.t.Fatal(err)
		}
		return id
	}
	blob := add(objects.KindBlob, fmt.Sprintf("checkpoint %d\n%s", n, strings.Repeat("the same line\n", 50)))
	c.stray = append(c.stray, add(objects.KindBlob, fmt.Sprintf("read and read again %d\n", n)))
	_, text := objects.NewTree([]objects.Entry{{Name: "file", Mode: objects.ModeFile, ID: blob}})
	tree := add(objects.KindTree, string(text))
	if err := p.Commit(); err != nil {
		c.t.Fatal(err)
	}
	person := objects.Person{Name: "a", Email: "a@example.com", When: time.Unix(int64(n), 0)}
	o := objects.Commit{Tree: tree, Author: person, Committer: person, Message: fmt.Sprintf("Checkpoint %d\n", n)}
	var before objects.ID
	if n > 0 {
		before = c.chain[n-1]
		o.Parents = []objects.ID{before}
	}
	id, err := c.r.WriteCommit(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.chain = append(c.chain, id)
	if err := c.r.UpdateRefs(c.t.Context(), []git.RefUpdate{{Name: chainRef, Old: before, New: id}}); err != nil {
		c.t.Fatal(err)
	}
}

// missing lists the objects that a git that was not there before does not find.
func (c *checkpoints) missing(ids []objects.ID) int {
	c.t.Helper()
	fresh, err := git.Open(c.t.Context(), c.r.Dir(), git.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer fresh.Close()
	missing := 0
	for _, id := range ids {
		if _, _, err := fresh.Objects().Stat(c.t.Context(), id); err != nil {
			missing++
		}
	}
	return missing
}

func (c *checkpoints) packs(pattern string) int {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.r.Dir(), "objects", "pack", pattern))
	if err != nil {
		c.t.Fatal(err)
	}
	return len(found)
}

// TestTidyLosesNothing tidies again and again, is killed in the middle of most of it, and goes on taking checkpoints: what
// was written once is there at every moment, reachable or not, also for a reader that was there all the time.
func TestTidyLosesNothing(t *testing.T) {
	c := &checkpoints{t: t, r: newRepository(t)}
	const limit = 4
	killed, tidied := 0, 0
	for range 25 {
		for range 3 {
			c.take()
		}
		if _, _, err := c.r.Objects().Stat(t.Context(), c.chain[0]); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(12))*time.Millisecond)
		done, err := c.r.Packs().Tidy(ctx, limit)
		cancel()
		if err != nil {
			killed++
		}
		if done {
			tidied++
		}
		if n := c.missing(c.chain) + c.missing(c.stray); n > 0 {
			t.Fatalf("%d objects are lost after %d killed and %d finished runs (%v)", n, killed, tidied, err)
		}
	}
	for range 2 {
		if _, err := c.r.Packs().Tidy(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.packs("*.idx"); n > limit {
		t.Errorf("%d packs are left, want at most %d", n, limit)
	}
	for _, id := range append(c.chain, c.stray...) {
		if _, _, err := c.r.Objects().Stat(t.Context(), id); err != nil {
			t.Errorf("the reader that was there before: %v", err)
		}
	}
	plain(t, c.r.Dir(), "fsck", "--full", "--strict", "--no-dangling")
	if killed == 0 {
		t.Log("no run was killed this time")
	}
}

// TestPruneKeepsWhatRefsReach drops the rest, and leaves the packs of the base alone.
func TestPruneKeepsWhatRefsReach(t *testing.T) {
	c := &checkpoints{t: t, r: newRepository(t)}
	c.take()
	if err := c.r.Packs().Keep(); err != nil {
		t.Fatal(err)
	}
	base := c.stray
	c.stray = nil
	for range 10 {
		c.take()
	}
	kept, err := filepath.Glob(filepath.Join(c.r.Dir(), "objects", "pack", "*.keep"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if err := c.r.Packs().Prune(t.Context(), objects.ID{}); err != nil {
		t.Fatal(err)
	}
	if n := c.missing(c.chain); n > 0 {
		t.Errorf("%d commits are lost", n)
	}
	if n := c.missing(base); n > 0 {
		t.Errorf("an object of the base is lost")
	}
	if n := c.missing(c.stray); n != len(c.stray) {
		t.Errorf("%d of %d objects that nothing reaches are still there", len(c.stray)-n, len(c.stray))
	}
	if _, err := os.Stat(strings.TrimSuffix(kept[0], ".keep") + ".pack"); err != nil {
		t.Errorf("the pack of the base: %v", err)
	}
	plain(t, c.r.Dir(), "fsck", "--full", "--strict", "--no-dangling")
	if bytes, err := c.r.Packs().Added(); err != nil || bytes == 0 {
		t.Errorf("%d bytes added, %v", bytes, err)
	}
}
