// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callers has the common parts of the gateway's servers: authentication of callers, and limits of what one Feature may use at once.
package callers

import (
	"context"
	"errors"
)

// Errors of an implementation that finds callers by their tokens. Unexpected errors count as ErrUnavailable.
var (
	// ErrUnauthenticated: the token is not that of a pod that may use the gateway.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrUnavailable: the answer is unknown at the moment; the caller should try again.
	ErrUnavailable = errors.New("not available at the moment")
)

// source is the key of a caller's address in a context.
type source struct{}

// WithSource notes the address and port that a request came from.
func WithSource(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, source{}, address)
}

// Source is the address and port from which a request came, for limits by address; empty if it is unknown.
func Source(ctx context.Context) string {
	address, _ := ctx.Value(source{}).(string)
	return address
}
