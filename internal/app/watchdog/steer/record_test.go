// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// TestManyNotes: a long conversation loses its oldest notes now and then, and not one with each that is new: each loss changes the request, so that the
// provider has not cached it.
func TestManyNotes(t *testing.T) {
	var r record
	losses, first := 0, 0
	for i := range 1000 {
		notes := append(slices.Clone(r.Notes[1]), dialect.Note{After: i, Text: fmt.Sprint(i)})
		r.note(1, i, dialect.Steering{Notes: notes})
		have := r.Notes[1]
		if n := len(have); n > maxNotes || have[n-1].After != i {
			t.Fatalf("%d notes, the newest %+v", n, have[n-1])
		}
		if have[0].After != first {
			losses, first = losses+1, have[0].After
		}
	}
	if most := 1000 / (maxNotes / 2); losses == 0 || losses > most {
		t.Errorf("the oldest note changed %d times, more than %d", losses, most)
	}
}
