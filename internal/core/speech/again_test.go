// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package speech

import (
	"testing"
	"time"
)

func TestAgain(t *testing.T) {
	for _, tc := range []struct {
		failures    int
		asked, want time.Duration
		again       bool
	}{
		{1, 0, time.Second, true}, {2, 0, 2 * time.Second, true}, {6, 0, 32 * time.Second, true}, {7, 0, time.Minute, true}, {11, 0, time.Minute, true}, {12, 0, 0, false},
		{1, 30 * time.Second, 30 * time.Second, true}, {1, 10 * time.Minute, 10 * time.Minute, true}, {1, 11 * time.Minute, 0, false},
	} {
		if pause, again := Again(tc.failures, tc.asked); pause != tc.want || again != tc.again {
			t.Errorf("%+v: %s, %v", tc, pause, again)
		}
	}
}
