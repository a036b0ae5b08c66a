// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import "testing"

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
}
