// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBatch: what has come is recorded together, up to a number and a size, and in order.
func TestBatch(t *testing.T) {
	small, large := &settlement{}, &settlement{raw: make([]byte, maxBatchBytes/2)}
	for name, tc := range map[string]struct {
		waiting []*settlement
		want    []int
	}{
		"alone":      {[]*settlement{small}, []int{1}},
		"together":   {[]*settlement{small, large, small}, []int{3}},
		"too large":  {[]*settlement{large, large, large}, []int{2, 1}},
		"very large": {[]*settlement{small, {raw: make([]byte, 2*maxBatchBytes)}, small}, []int{2, 1}},
		"too many":   {make([]*settlement, maxBatch+5), []int{maxBatch, 5}},
	} {
		l := &Ledger{queue: make(chan *settlement, 2*maxBatch)}
		for _, s := range tc.waiting {
			if s == nil {
				s = small
			}
			l.queue <- s
		}
		var got []int
		for len(l.queue) > 0 {
			got = append(got, len(l.batch(<-l.queue)))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
