// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

const (
	// mutated files are rewritten one after the other, generation by generation, without end.
	mutated = 16
	// Every badEvery-th generation is larger than the policy allows.
	badEvery, goodSize, badSize = 4, 1000, 5000
	// patience is how many captures may be held before the first is promoted.
	patience = 1000
)

func mutatedPath(i int) string { return fmt.Sprintf("src/w%02d", i) }

// generation of a file is what it consists of, so that a mixture shows.
func generation(n int) []byte {
	size := goodSize
	if n%badEvery == 0 {
		size = badSize
	}
	word := fmt.Sprintf("%08d", n)
	return bytes.Repeat([]byte(word), size/len(word))
}

// mutate rewrites every file again and again until ctx ends. A frozen mutator is between two files.
func mutate(ctx context.Context, g *gate, root string) error {
	for n := 1; ctx.Err() == nil; n++ {
		for i := 0; i < mutated && ctx.Err() == nil; i++ {
			g.RLock()
			err := os.WriteFile(filepath.Join(root, mutatedPath(i)), generation(n), 0o644)
			g.RUnlock()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// TestOnlyWhatWasJudgedIsPromoted promotes while every file is rewritten all the time. What is promoted is read back from
// the repository: it is what was judged, it is whole, and it is one moment of the workspace. `make test-long` promotes
// 10,000 times.
func TestOnlyWhatWasJudgedIsPromoted(t *testing.T) {
	promotions := 100
	if os.Getenv(longEnv) != "" {
		promotions = 10_000
	}
	b := newBench(t, shop())
	for i := range mutated {
		put(t, b.root, mutatedPath(i), string(generation(1)))
	}
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.capture()
	ctx, stop := context.WithCancel(t.Context())
	var g gate
	var mutator sync.WaitGroup
	mutator.Go(func() {
		if err := mutate(ctx, &g, b.root); err != nil {
			t.Error(err)
		}
	})
	defer mutator.Wait()
	defer stop()
	rules := policy.Merge(policy.Sources{})
	rules.Changes.MaxFileSize = goodSize
	promoted, held, unsettled := 0, 0, 0
	objection := ""
	var last objects.ID
	for promoted < promotions && !t.Failed() {
		if promoted == 0 && held > patience {
			t.Fatalf("nothing is promoted, %d are held, the last because: %s", held, objection)
		}
		s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: &g})
		if err != nil {
			t.Fatal(err)
		}
		j, err := judge.Judge(t.Context(), judge.Input{
			Changes: s.Changes, Found: s.Found, Workspace: s.Workspace, Policy: rules,
			Names: b.names(s.Tree), BaseNames: b.names(b.base), Contents: b.contents,
		})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !s.Settled:
			unsettled++
		case j.Verdict != protocol.Valid:
			held++
			objection = judge.Summary(j)
		case s.Tree != last:
			promoted, last = promoted+1, s.Tree
			b.checkPromoted(s)
			// As the watchdog does, beside its captures; else looking for an object would take longer and longer.
			if _, err := b.repo.Packs().Tidy(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d promoted, %d held, %d unsettled", promoted, held, unsettled)
	if held == 0 {
		t.Error("nothing was held: the mutator shows nothing")
	}
}

// checkPromoted reads a promoted tree from the repository, where stock git finds it.
func (b *bench) checkPromoted(s workspace.Snapshot) {
	b.t.Helper()
	tree, err := b.repo.Tree(b.ctx, s.Tree)
	if err != nil {
		b.t.Fatal(err)
	}
	changes, err := b.repo.Diff(b.ctx, b.base, s.Tree)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(s.Changes, changes); diff != "" {
		b.t.Fatalf("promoted is not what was judged (-judged +promoted):\n%s", diff)
	}
	var have [mutated]int
	for i := range mutated {
		e := tree.Lookup(mutatedPath(i))
		if e == nil {
			b.t.Fatalf("%s is not in the tree", mutatedPath(i))
		}
		_, text, err := b.repo.Objects().Read(b.ctx, e.ID, badSize)
		if err != nil {
			b.t.Fatal(err)
		}
		if have[i], err = strconv.Atoi(string(text[:min(8, len(text))])); err != nil || !bytes.Equal(text, generation(have[i])) {
			b.t.Fatalf("%s is no whole generation: %.40q", mutatedPath(i), text)
		}
		if have[i]%badEvery == 0 {
			b.t.Fatalf("%s was promoted with %d bytes", mutatedPath(i), len(text))
		}
		if i > 0 && (have[i] > have[i-1] || have[i] < have[0]-1) {
			b.t.Fatalf("generations %v are not of one moment", have[:i+1])
		}
	}
}

// contents reads blobs for the judge.
func (b *bench) contents(ids []string, limit int64, visit func(i int, content []byte, ok bool)) {
	b.t.Helper()
	for i, id := range ids {
		_, text, err := b.repo.Objects().Read(b.ctx, parse(b.t, id), limit)
		visit(i, text, err == nil)
	}
}

// names lists the directories of a tree for the judge.
func (b *bench) names(id objects.ID) judge.Lookup {
	b.t.Helper()
	tree, err := b.repo.Tree(b.ctx, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return func(dirs []string) map[string][]string {
		listed := map[string][]string{}
		for _, dir := range dirs {
			at := tree
			if e := tree.Lookup(dir); dir != "" && e != nil {
				at = e.Tree
			} else if dir != "" {
				at = nil
			}
			listed[dir] = nil
			for i := 0; at != nil && i < len(at.Entries); i++ {
				listed[dir] = append(listed[dir], at.Entries[i].Name)
			}
		}
		return listed
	}
}
