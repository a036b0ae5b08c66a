// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"net/http"
	"runtime"

	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// heavy is the size of a body, in bytes, from which on it is worked on at a desk: less takes a processor for less than 10 ms, after which the runtime
// preempts it, and 32 MiB for 70. If more wait, they hold their memory for longer, and the process comes over its limit.
const heavy = 4 << 20

// newDesks has half of the processors for work on large bodies, and Features take turns. The other half is for everything small: a model call wakes a
// dozen goroutines, one after the other, and each of them would wait until a goroutine that computes is preempted (after 10 ms), including
// the ones that poll the network.
func newDesks() *callers.Shares {
	desks := int64(max(1, runtime.GOMAXPROCS(0)/2))
	return callers.NewShares(desks, desks)
}

// work on a body of the given size, at a desk if that is heavy. It waits for nothing else meanwhile. The failure is that nobody waits for it any more.
func (c *call) work(ctx context.Context, size int, do func()) *failure {
	if size >= heavy {
		desks, feature := c.server.desks, c.caller.Feature
		if err := desks.Take(ctx, feature, 1); err != nil {
			return fail(http.StatusServiceUnavailable, reasonGone, ctx.Err(), "the call was given up")
		}
		defer desks.Give(feature, 1)
	}
	do()
	return nil
}
