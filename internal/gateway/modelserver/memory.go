// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"errors"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// callMemory is what a call takes in addition to its bodies, in bytes: buffers of two connections of 64 KiB each, of TLS and of the copy.
const callMemory = 256 << 10

// holding is the memory of a call, out of the share of its Feature. All buffers of all calls are in one account.
type holding struct {
	server  *Server
	feature string
	amount  int64
	// ahead is memory for the request to the backend, taken before there is one.
	ahead int64
}

// largeBody is how much of a request has come, in bytes, when all is taken at once that it needs to its end. Of calls that hold parts and wait for more
// none would come to its end.
const largeBody = 512 << 10

// take more bytes, and wait for them for a while.
func (h *holding) take(ctx context.Context, n int64) *failure {
	if h.try(n) == nil {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, h.server.options.Limits.Wait)
	defer cancel()
	err := h.server.memory.Take(waiting, h.feature, n)
	if err == nil {
		h.amount += n
		return nil
	}
	if gone := ctx.Err(); gone != nil {
		return fail(http.StatusServiceUnavailable, reasonGone, gone, "the call was given up")
	}
	return noMemory(err)
}

// try takes more bytes if they are free. The error is that of callers.Shares.
func (h *holding) try(n int64) error {
	err := h.server.memory.Try(h.feature, n)
	if err == nil {
		h.amount += n
	}
	return err
}

// noMemory says whose calls hold it.
func noMemory(err error) *failure {
	f := fail(http.StatusServiceUnavailable, reasonMemoryFull, nil, "calls of all Features hold the memory that the gateway may use for them; try again")
	if errors.Is(err, callers.ErrShare) {
		f = fail(http.StatusServiceUnavailable, reasonMemoryShare, nil, "calls of this Feature hold all memory that it may use for them; try again, with fewer or smaller calls at once")
	}
	f.wait = 5
	return f
}

// give bytes back.
func (h *holding) give(n int64) {
	if n > 0 {
		h.amount -= n
		h.server.memory.Give(h.feature, n)
	}
}

// end gives all back.
func (h *holding) end() { h.give(h.amount) }

// firstRoom of a buffer, in bytes: most requests fit, and it is a fraction of callMemory.
const firstRoom = 64 << 10

// grown is a buffer with room for one byte more at least. It doubles, up to most, so that it holds no more than twice what has arrived, or firstRoom.
func (h *holding) grown(ctx context.Context, b []byte, most int, known bool) ([]byte, *failure) {
	if len(b) < cap(b) {
		return b, nil
	}
	size := roomSize(min(max(2*cap(b), firstRoom), max(most, len(b)+1)))
	ahead := int64(0)
	if known && size > largeBody {
		size, ahead = roomSize(max(most, len(b)+1)), int64(most)
	}
	if f := h.take(ctx, int64(size)+ahead); f != nil {
		return b, f
	}
	h.ahead += ahead
	bigger := append(room(size), b...)
	h.give(int64(cap(b)))
	free(b)
	return bigger, nil
}

// garbage is how much of it may be on top of the memory in use before a collection, in percent. A call leaves some hundred KiB of it and little in
// use, so that a gateway of the runtime's 100 would collect it some hundred times a second.
const garbage = 400

// KeepBelow tunes the Go runtime to stay below a container's memory limit in bytes; 0 means unlimited, and changes nothing. It leaves a
// quarter for memory outside the heap (the program itself has 60 MiB) and for allocations during a garbage collection. GOMEMLIMIT and GOGC
// of the environment have precedence.
func KeepBelow(limit int64) {
	if limit <= 0 {
		return
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 4 * 3)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// newMemory has an account of the given bytes. Half of it is one Feature's at the most: its largest call, and some more.
func newMemory(total int64) *callers.Shares { return callers.NewShares(total, total/2) }
