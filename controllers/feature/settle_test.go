// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
)

// TestEachNeedHasAGatherer, and no gatherer is for something that no decision can need.
func TestEachNeedHasAGatherer(t *testing.T) {
	all := (&Reconciler{}).gatherers()
	for _, need := range lifecycle.Needs() {
		if all[need] == nil {
			t.Errorf("nothing gathers %s", need)
		}
		delete(all, need)
	}
	if len(all) > 0 {
		t.Errorf("gathered without need: %v", all)
	}
}
