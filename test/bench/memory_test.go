// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// memory is what an engine process occupies after captures, and what it occupied at most.
func memory(t *testing.T, s scale, b *board.Board) {
	for _, size := range []struct {
		name          string
		files, perDir int
		limit         float64 // of its own memory, in MiB
	}{
		{"directories=10k", 10_000, 1, 18},
		{"files=100k", 100_000, filesInDir, 32},
	} {
		if !s.full {
			size.files /= 1000
		}
		p := newPlace(t, size.files, size.perDir)
		e := p.process()
		for range s.runs {
			p.round++
			p.spread(min(100, size.files), p.write)
			e.capture()
		}
		b.Figure("memory-own/"+size.name, e.resident("RssAnon"), "MiB", board.AtMost(size.limit))
		b.Figure("memory-resident/"+size.name, e.resident("VmRSS"), "MiB", board.Bound{})
		b.Figure("memory-peak/"+size.name, e.resident("VmHWM"), "MiB", board.Bound{})
	}
	flood(t, s, b)
	rewrite(t, s, b)
}

// most is what an engine process and git beside it occupy at most, with what their container may take beside it: the half of
// it is for git that packs a large history.
func most(b *board.Board, name string, peak float64) {
	const limit = protocol.WatchdogMemoryLimit >> 20
	b.Add("memory-peak/"+name, board.Number(peak)+"MiB", board.Number(limit)+"MiB", peak, board.AtMost(limit/2))
}

// flood is what an engine process occupies at most when an agent makes very many files at once, and they are judged. More
// files than the built-in policy allows are counted and not read.
func flood(t *testing.T, s scale, b *board.Board) {
	for _, files := range []int{100_000, 400_000} {
		name := "new-files=" + short(files)
		if !s.full {
			files /= 1000
		}
		p := newPlace(t, 1000, filesInDir)
		e := p.process()
		for i := range files {
			path := filepath.Join(p.root(), fmt.Sprintf("new/d%d/file%d.txt", i/500, i))
			if i%500 == 0 {
				p.do(os.MkdirAll(filepath.Dir(path), 0o755))
			}
			p.do(os.WriteFile(path, fmt.Appendf(nil, "new %d\n", i), 0o644))
		}
		e.judge()
		most(b, name, e.peak())
	}
}

// rewrite is what an engine process occupies at most when one file becomes as large as the built-in policy allows, and when
// all of its lines become others.
func rewrite(t *testing.T, s scale, b *board.Board) {
	size := policy.Merge(policy.Sources{}).Changes.MaxFileSize
	name := fmt.Sprintf("file=%dMiB-of-lines", size>>20)
	if !s.full {
		size >>= 10
	}
	p := newPlace(t, 1000, filesInDir)
	e := p.process()
	for round, kind := range []string{"from-small", "from-as-large"} {
		var text []byte
		for i := 0; int64(len(text)) < size-100; i++ {
			text = fmt.Appendf(text, "line %d of round %d\n", i, round)
		}
		if round == 1 {
			// The base has it, too: what is judged is the change from the one to the other.
			p.base = p.commit(p.base)
			e = p.process()
		}
		p.do(os.WriteFile(p.path(0), text, 0o644))
		e.judge()
		most(b, name+"/"+kind, e.peak())
	}
}
