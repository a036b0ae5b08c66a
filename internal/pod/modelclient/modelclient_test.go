// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelclient

import (
	"context"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 90 ": 90 * time.Second, "-1": 0, "soon": 0, "99999999999": 0,
		"Sun, 22 Nov 2026 12:00:30 GMT": 30 * time.Second, "Sun, 22 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
	for status, want := range map[int]bool{400: false, 401: false, 404: false, 408: true, 409: true, 413: false, 422: false, 429: true, 500: true, 503: true, 529: true} {
		if passes(status) != want {
			t.Errorf("status %d passes: %v", status, !want)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if Sleep(ctx, time.Hour) || !Sleep(t.Context(), 0) {
		t.Error("the pause knows no context")
	}
}
