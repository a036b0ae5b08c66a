// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// TestPatience: ten minutes or the profile, whichever is longer, before an answer that is no stream or begins with reasoning; else the profile.
func TestPatience(t *testing.T) {
	for _, tc := range []struct {
		profile                 time.Duration
		streams, reasons, begun bool
		want                    time.Duration
	}{
		{time.Minute, false, false, false, 10 * time.Minute},
		{time.Minute, true, true, false, 10 * time.Minute},
		{time.Hour, false, true, false, time.Hour},
		{time.Minute, true, false, false, time.Minute},
		{time.Minute, false, false, true, time.Minute},
		{time.Minute, true, true, true, time.Minute},
	} {
		if got := models.Patience(tc.profile, tc.streams, tc.reasons, tc.begun); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}
