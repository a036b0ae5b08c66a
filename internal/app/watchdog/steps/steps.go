// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steps marks the places between two effects: a test ends the process there, and nothing may happen after it.
package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// Probe is called after each step that a crash may follow; its error ends the process at once. A nil Probe never does.
type Probe func(step string) error

// After calls the probe.
func (p Probe) After(step string) error {
	if p == nil {
		return nil
	}
	if err := p(step); err != nil {
		return &crash{step: step, cause: err}
	}
	return nil
}

// crash is what a probe ends the process with.
type crash struct {
	step  string
	cause error
}

// Error names the step.
func (c *crash) Error() string { return fmt.Sprintf("crash after %q: %v", c.step, c.cause) }

// Unwrap gives the probe's own error.
func (c *crash) Unwrap() error { return c.cause }

// Fatal says that an error must end the process: it crashed, or does not own the volume any more.
func Fatal(err error) bool {
	var c *crash
	return errors.As(err, &c) || errors.Is(err, trusted.ErrFenced)
}

// Pause waits, and says false when the context ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
