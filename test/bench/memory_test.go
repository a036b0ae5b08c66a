// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
)

// memory is what an engine process occupies after captures, and what it occupied at most.
func memory(t *testing.T, s scale, b *board) {
	for _, size := range []struct {
		name          string
		files, perDir int
		limit         float64
	}{
		{"directories=10k", 10_000, 1, 24},
		{"files=100k", 100_000, filesInDir, 48},
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
		b.figure("memory-resident/"+size.name, e.resident("VmRSS"), "MiB", atMost(size.limit))
		t.Logf("%s: anonymous %.1f, of files %.1f MiB", size.name, e.resident("RssAnon"), e.resident("RssFile"))
		b.figure("memory-peak/"+size.name, e.resident("VmHWM"), "MiB", bound{})
	}
	flood(t, s, b)
}

// flood is what an engine process occupies at most when an agent makes very many files at once, against what its container
// may take. More files than the built-in policy allows are counted and not read.
func flood(t *testing.T, s scale, b *board) {
	for _, files := range []int{100_000, 400_000} {
		name := short(files)
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
		e.capture()
		b.figure("memory-peak/new-files="+name, e.resident("VmHWM"), "MiB", atMost(contract.WatchdogMemoryLimit>>20/2))
	}
}
