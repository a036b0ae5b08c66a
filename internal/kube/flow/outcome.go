// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"fmt"
	"time"
)

// Kind of an ending.
type Kind int

// Kinds of endings.
const (
	// Retry: something unexpected; it is tried again, later each time.
	Retry Kind = iota
	// Wait: something expected must happen elsewhere first.
	Wait
	// Stall: only the user can help.
	Stall
	// Quiet: normal concurrency; the next event brings a fresh look.
	Quiet
)

// Ending is an error that says how a step ended.
type Ending struct {
	// Kind of the ending.
	Kind Kind
	// Reason in CamelCase, as it appears in conditions; empty for Quiet.
	Reason string
	// After is when to try again without an event; 0 is never (or with backoff, for Retry).
	After time.Duration

	err error
}

// Error is the message, for users.
func (e *Ending) Error() string { return e.err.Error() }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *Ending) Unwrap() error { return e.err }

// Waitf is something expected that has yet to happen; after is when to look again without an event.
func Waitf(reason string, after time.Duration, format string, args ...any) error {
	return &Ending{Kind: Wait, Reason: reason, After: after, err: fmt.Errorf(format, args...)}
}

// Stallf is something that only the user can fix.
func Stallf(reason, format string, args ...any) error {
	return &Ending{Kind: Stall, Reason: reason, err: fmt.Errorf(format, args...)}
}

// Quietf is normal concurrency: nobody needs to know. The argument after is when to look again without an event.
func Quietf(after time.Duration, format string, args ...any) error {
	return &Ending{Kind: Quiet, After: after, err: fmt.Errorf(format, args...)}
}

// Of says how err ended a step; any error that does not say so itself is a Retry. It is nil for nil.
func Of(err error) *Ending {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Ending](err); ok {
		return e
	}
	return &Ending{Kind: Retry, Reason: "InternalError", err: err}
}
