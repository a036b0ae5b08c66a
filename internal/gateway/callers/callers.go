// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callers is what the servers of the gateway have in common: who asks, and how much of the gateway one Feature may
// have at once.
package callers

import (
	"context"
	"errors"
)

// Errors of an implementation that tells callers by their tokens. Unexpected ones count as ErrUnavailable.
var (
	// ErrUnauthenticated: the token is not that of a pod that may use the gateway.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrUnavailable: it cannot be told at the moment; the caller is to try again.
	ErrUnavailable = errors.New("not available at the moment")
)

// source is the key of a caller's address in a context.
type source struct{}

// WithSource notes the address and port that a request came from.
func WithSource(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, source{}, address)
}

// Source is the address and port that a request came from, so that what one address may ask can be bounded; empty if it
// is not known.
func Source(ctx context.Context) string {
	address, _ := ctx.Value(source{}).(string)
	return address
}
