// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// features has several engines work at once, each on its own repository, and holds them to the budget of one: baseline and
// measurement suffer alike from the company.
func features(t *testing.T, s scale, b *board.Board) {
	const dirty = 20
	var mu sync.Mutex
	var all series
	places := make([]*place, s.features)
	for i := range places {
		places[i] = newPlace(t, s.featureFiles, filesInDir)
		places[i].watch()
	}
	t.Run("together", func(t *testing.T) {
		for i, p := range places {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				p.t = t
				c := p.captures(s.runs, dirty)
				mu.Lock()
				defer mu.Unlock()
				all.frozen, all.whole = append(all.frozen, c.frozen...), append(all.whole, c.whole...)
				all.hashed, all.stock = append(all.hashed, c.hashed...), append(all.stock, c.stock...)
			})
		}
	})
	name := fmt.Sprintf("features=%d/files=%s/dirty=%d", s.features, short(s.featureFiles), dirty)
	b.Ratio("features-frozen-vs-hash/"+name, board.Median(all.frozen), board.Median(all.hashed), board.AtMost(1.5))
	b.Speedup("features-whole-vs-git/"+name, board.Median(all.whole), board.Median(all.stock), board.Bound{})
}
