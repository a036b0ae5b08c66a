// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

var errCause = errors.New("cause")

func TestOfSeesThroughWrapping(t *testing.T) {
	tests := map[string]struct {
		err        error
		wantKind   Kind
		wantReason string
		wantAfter  time.Duration
	}{
		"a plain error is tried again":    {err: errCause, wantKind: Retry, wantReason: "InternalError"},
		"a wait":                          {err: Waitf("Later", time.Minute, "x: %w", errCause), wantKind: Wait, wantReason: "Later", wantAfter: time.Minute},
		"a stall":                         {err: Stallf("Fix", "x: %w", errCause), wantKind: Stall, wantReason: "Fix"},
		"quiet":                           {err: Quietf(time.Second, "x: %w", errCause), wantKind: Quiet, wantAfter: time.Second},
		"a stall in a wrapped error":      {err: fmt.Errorf("step: %w", fmt.Errorf("again: %w", Stallf("Fix", "x: %w", errCause))), wantKind: Stall, wantReason: "Fix"},
		"an ending among joined errors":   {err: errors.Join(errors.New("other"), Waitf("Later", 0, "x: %w", errCause)), wantKind: Wait, wantReason: "Later"},
		"the outermost of several counts": {err: Waitf("Outer", 0, "y: %w", Stallf("Inner", "x: %w", errCause)), wantKind: Wait, wantReason: "Outer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.err)
			if got.Kind != tc.wantKind || got.Reason != tc.wantReason || got.After != tc.wantAfter {
				t.Errorf("Of(%v) = kind %d, reason %q, after %s; want kind %d, reason %q, after %s",
					tc.err, got.Kind, got.Reason, got.After, tc.wantKind, tc.wantReason, tc.wantAfter)
			}
			if !errors.Is(got, errCause) {
				t.Errorf("the cause is lost in %v", got)
			}
		})
	}
	if Of(nil) != nil {
		t.Error("no error is no ending")
	}
}
