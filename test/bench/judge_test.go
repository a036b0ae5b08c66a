// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/checks"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/internal/testkit/engine"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// judging compares a judgement, which looks at both sides of every change, with what `git diff-tree -p` takes to show the
// same changes, and with only reading the side that is not in memory; and shows what is left of it once the contents are known.
func judging(t *testing.T, s scale, b *board.Board) {
	sizes := []int{1_000, 10_000}
	if !s.full {
		sizes = []int{50}
	}
	for _, files := range sizes {
		p := newPlace(t, 2*files, filesInDir)
		p.round++
		p.spread(files, p.write)
		// By the engine, whose objects are in packs: loose ones, as git add leaves them, are another measurement.
		e := p.open(p.base)
		now, err := e.Capture(t.Context(), workspace.Still{})
		p.do(err)
		p.do(e.Close())
		in := p.input(now.Tree)
		if j := p.judge(in); len(in.Changes) != files || j.Verdict != protocol.Valid {
			t.Fatalf("%d changes, verdict %s: %s", len(in.Changes), j.Verdict, judge.Summary(j))
		}
		// As in a watchdog: what was captured a moment ago is in memory, as far as it is kept, and the expressions that find
		// secrets are compiled once in a process. What contents are is not known.
		var process judge.Cache
		known := in
		known.Cache = process.Beside()
		p.judge(known)
		ids := oldSides(in.Changes)
		others := p.repo.MoreObjects() // which has nothing in memory
		var judged, again, stock, read []time.Duration
		for range s.runs {
			began := time.Now()
			p.git("diff-tree", "-p", "-r", p.base.String(), now.Tree.String())
			stock = append(stock, time.Since(began))
			began = time.Now()
			p.contentsFrom(others, ids, 1<<20, func(int, []byte, bool) {})
			read = append(read, time.Since(began))
			in.Cache = process.Beside()
			began = time.Now()
			p.judge(in)
			judged = append(judged, time.Since(began))
			began = time.Now()
			p.judge(known)
			again = append(again, time.Since(began))
		}
		p.do(others.Close())
		name := fmt.Sprintf("files=%s", short(files))
		limit, against, names := board.Bound{}, board.Bound{}, board.Bound{}
		if files == 1_000 {
			limit, against, names = board.AtMost(100), board.AtMost(1.0/3), board.AtMost(10)
		}
		b.Figure("judge-time/"+name, float64(board.Median(judged).Microseconds())/1000, "ms", limit)
		b.Figure("judge-names-and-modes/"+name, float64(board.Median(again).Microseconds())/1000, "ms", names)
		b.Ratio("judge-vs-diff-tree/"+name, board.Median(judged), board.Median(stock), against)
		// What it takes at the least to have git read the side that is not in memory.
		b.Ratio("judge-reading-vs-diff-tree/"+name, board.Median(read), board.Median(stock), board.Bound{})
	}
}

// judge judges to the end.
func (p *place) judge(in judge.Input) judge.Judgement {
	j, err := judge.Judge(context.Background(), in)
	p.do(err)
	return j
}

// oldSides of changed files, in the order that the judge asks for them.
func oldSides(changes []judge.Change) []string {
	var ids []string
	for _, c := range changes {
		ids = append(ids, c.Old.ID)
	}
	return ids
}

// input is what the watchdog gives the judge: every change, under rules of every kind.
func (p *place) input(after objects.ID) judge.Input {
	ctx := context.Background()
	changes, err := p.repo.Diff(ctx, p.base, after)
	p.do(err)
	tree, err := p.repo.Tree(ctx, after)
	p.do(err)
	in := judge.Input{
		Changes: changes, Workspace: judge.Workspace{Files: int64(p.files), Bytes: int64(p.files) * 4096}, Policy: policy.Merge(policy.Sources{}),
	}
	in.Plan.Allowed = []string{"d*/**", "docs/"}
	in.Plan.Forbidden = []string{"legacy/**", "*.secret", "services/*/config/*.yaml"}
	in.Policy.Paths.Protected = append(in.Policy.Paths.Protected, "**/fixtures/[a-z]*.json")
	in.Names = engine.Lookup(tree)
	in.BaseNames = in.Names
	in.Contents, in.Compile = p.contents, checks.Compile
	in.Policy.Checks = []policy.Check{{Name: "no-big-sql", CEL: "file.path.endsWith('.sql') && file.linesAdded > 500", Message: "too much SQL"}}
	return in
}

// contents reads blobs as the watchdog does.
func (p *place) contents(hexIDs []string, limit int64, visit func(int, []byte, bool)) {
	p.contentsFrom(p.repo.Objects(), hexIDs, limit, visit)
}

func (p *place) contentsFrom(from *git.Objects, hexIDs []string, limit int64, visit func(int, []byte, bool)) {
	ids := make([]objects.ID, len(hexIDs))
	for i, hexID := range hexIDs {
		var err error
		ids[i], err = objects.ParseID(hexID)
		p.do(err)
	}
	p.do(from.ReadAll(context.Background(), ids, limit, func(i int, content []byte, err error) { visit(i, content, err == nil) }))
}
