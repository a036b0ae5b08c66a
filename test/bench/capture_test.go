// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// capture compares captures with `git add -A && git write-tree`, and the time that an agent is frozen with hashing the same
// blobs and trees in process.
func capture(t *testing.T, s scale, b *board.Board) {
	var smallest time.Duration
	for _, files := range s.files {
		p := newPlace(t, files, filesInDir)
		p.watch()
		for _, dirty := range s.dirty {
			if dirty >= files {
				continue
			}
			c := p.captures(s.runs, dirty)
			name := fmt.Sprintf("files=%s/dirty=%s", short(files), short(dirty))
			b.Ratio("capture-frozen-vs-hash/"+name, board.Median(c.frozen), board.Median(c.hashed), board.AtMost(1.5))
			b.Speedup("capture-frozen-vs-git/"+name, board.Median(c.frozen), board.Median(c.stock), againstGit(files, dirty))
			b.Speedup("capture-whole-vs-git/"+name, board.Median(c.whole), board.Median(c.stock), board.Bound{})
			b.Ratio("capture-quiet-vs-git/"+name, board.Median(c.quiet), board.Median(c.stock), quietBudget(files, dirty))
			if dirty != s.dirty[0] {
				continue
			}
			if smallest == 0 {
				smallest = board.Median(c.frozen)
			}
			b.Ratio(fmt.Sprintf("capture-frozen-growth/%s-of-%s", name, short(s.files[0])), board.Median(c.frozen), smallest, board.Bound{})
		}
		_ = os.RemoveAll(p.dir)
	}
}

// againstGit is the budget at two sizes; at the others nothing is promised.
func againstGit(files, dirty int) board.Bound {
	switch {
	case files == 100_000 && dirty == 10:
		return board.AtLeast(150)
	case files == 100_000 && dirty == 1_000:
		return board.AtLeast(8)
	default:
		return board.Bound{}
	}
}

// quietBudget is for a capture that need not freeze the agent.
func quietBudget(files, dirty int) board.Bound {
	if files == 100_000 && dirty == 10 {
		return board.AtMost(1)
	}
	return board.Bound{}
}

// series are the durations of one measurement, run by run.
type series struct {
	frozen, whole, quiet, stock, hashed []time.Duration
}

func (p *place) captures(runs, dirty int) series {
	var c series
	for run := range runs + 1 {
		p.round++
		p.spread(dirty, p.write)
		began := time.Now()
		p.git("add", "-A", "-f")
		p.git("write-tree")
		stock := time.Since(began)
		hashed := p.hash(dirty)
		quiet := p.quiet(dirty)
		p.spread(dirty, p.write) // as they are, which nobody can know
		release := p.hold(dirty)
		began = time.Now()
		s, err := p.engine.Capture(p.t.Context(), workspace.Still{Freezer: still{}})
		whole := time.Since(began)
		release()
		if err != nil || !s.Settled || !s.Frozen || s.Dirty < dirty {
			p.t.Fatalf("capture of %d files: %v, settled %v, frozen %v: %s", s.Dirty, err, s.Settled, s.Frozen, s.Reason)
		}
		if run == 0 { // for warmth
			continue
		}
		c.quiet = append(c.quiet, quiet)
		c.stock, c.hashed = append(c.stock, stock), append(c.hashed, hashed)
		c.frozen, c.whole = append(c.frozen, s.FrozenFor), append(c.whole, whole)
	}
	return c
}

// quiet is the time of a whole capture of this round, with an agent that need not be frozen for it.
func (p *place) quiet(dirty int) time.Duration {
	began := time.Now()
	s, err := p.engine.Capture(p.t.Context(), workspace.Still{Freezer: still{}})
	took := time.Since(began)
	if err != nil || !s.Settled || s.Frozen || s.Dirty < dirty {
		p.t.Fatalf("capture of %d files: %v, settled %v, frozen %v: %s", s.Dirty, err, s.Settled, s.Frozen, s.Reason)
	}
	return took
}

// hash is the least that any capture has to do: read and hash the files of this round, and hash the trees above them.
func (p *place) hash(dirty int) time.Duration {
	trees := p.treesOf(dirty)
	var paths []string
	p.spread(dirty, func(i int) { paths = append(paths, p.path(i)) })
	began := time.Now()
	for _, path := range paths {
		content, err := os.ReadFile(path)
		p.do(err)
		objects.Hash(objects.KindBlob, content)
	}
	for _, tree := range trees {
		objects.Hash(objects.KindTree, tree)
	}
	return time.Since(began)
}

// treesOf gives tree objects of the sizes that change with the files of this round.
func (p *place) treesOf(dirty int) [][]byte {
	dirs := make(map[string]int)
	p.spread(dirty, func(i int) {
		for dir := filepath.Dir(p.relative(i)); dir != "."; dir = filepath.Dir(dir) {
			dirs[dir] = min(filesInDir, dirsInDir)
		}
		dirs["."] = 1 + p.files/filesInDir/dirsInDir
	})
	var trees [][]byte
	for _, n := range dirs {
		var entries []objects.Entry
		for i := range n {
			entries = append(entries, objects.Entry{Name: fmt.Sprintf("file%d.txt", i), Mode: objects.ModeFile, ID: sha1.Sum(nil)})
		}
		_, content := objects.NewTree(entries)
		trees = append(trees, content)
	}
	return trees
}

// hold keeps the files of this round open for writing, so that all of them have to be read again under a freeze: the worst
// that an agent can do.
func (p *place) hold(dirty int) (release func()) {
	var open []*os.File
	p.spread(dirty, func(i int) {
		f, err := os.OpenFile(p.path(i), os.O_WRONLY, 0)
		p.do(err)
		open = append(open, f)
	})
	return func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
}

// still is an agent that stops at once: what is measured is the capture.
type still struct{}

// Freeze does nothing.
func (still) Freeze(context.Context) (workspace.Frozen, error) {
	return workspace.Frozen{Settled: true}, nil
}

// Thaw does nothing.
func (still) Thaw(context.Context) error { return nil }
