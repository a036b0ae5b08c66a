// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func TestSlowCheckpointsInARowAreCounted(t *testing.T) {
	var w recorder
	var got []int64
	for _, took := range []time.Duration{2100 * time.Millisecond, time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second, protocol.SlowCheckpoint} {
		r := protocol.CheckpointReport{CaptureTime: took / 4, SyncTime: took / 4, JudgeTime: took / 4, ActTime: took / 4}
		w.checkPace(&r)
		got = append(got, r.Vitals.SlowInARow)
	}
	if diff := cmp.Diff([]int64{1, 0, 1, 2, 3, 0}, got); diff != "" {
		t.Errorf("slow in a row (-want +got):\n%s", diff)
	}
}
