// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

func TestFatal(t *testing.T) {
	pulled := errors.New("pulled")
	probe := steps.Probe(func(step string) error {
		if step == "spooled" {
			return pulled
		}
		return nil
	})
	if err := steps.Probe(nil).After("spooled"); err != nil {
		t.Errorf("without a probe: %v", err)
	}
	if err := probe.After("restored"); err != nil {
		t.Errorf("another step: %v", err)
	}
	crash := probe.After("spooled")
	for err, want := range map[error]bool{
		fmt.Errorf("act: %w", crash): true, fmt.Errorf("guard: %w", trusted.ErrFenced): true, pulled: false, trusted.ErrCorrupt: false,
	} {
		if got := steps.Fatal(err); got != want {
			t.Errorf("Fatal(%v) = %v, want %v", err, got, want)
		}
	}
	if !errors.Is(crash, pulled) || steps.Fatal(nil) {
		t.Errorf("crash %v, and no error is fatal: %v", crash, steps.Fatal(nil))
	}
}

func TestPause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if !steps.Pause(ctx, time.Nanosecond) {
		t.Error("a pause that passed was cut off")
	}
	cancel()
	if steps.Pause(ctx, time.Hour) {
		t.Error("a pause that was cut off has passed")
	}
}
