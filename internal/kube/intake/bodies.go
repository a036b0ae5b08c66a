// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxBodies bounds the encoded orders that are remembered, in bytes: a few of the largest, or thousands of usual ones.
	maxBodies = 8 * protocol.MaxOrdersBytes
	// maxEncodings bounds how many orders are encoded at a time. Encoding takes about three times the memory of the result.
	maxEncodings = 4
)

// bodies are encoded orders. All polls that are to be told the same share one.
type bodies struct {
	flights singleflight.Group
	slots   chan struct{}
	// encode is sight.encode.
	encode func(sight) ([]byte, error)

	mu     sync.Mutex
	memory *simplelru.LRU[string, []byte]
	size   int
}

func newBodies() (*bodies, error) {
	b := &bodies{slots: make(chan struct{}, maxEncodings), encode: sight.encode}
	memory, err := simplelru.NewLRU(maxPolls, func(_ string, body []byte) { b.size -= len(body) })
	if err != nil {
		return nil, fmt.Errorf("cache of orders: %w", err)
	}
	b.memory = memory
	return b, nil
}

// of gives the encoded orders of a sight.
func (b *bodies) of(ctx context.Context, now sight) ([]byte, error) {
	if known, ok := b.known(now.tag); ok {
		return known, nil
	}
	answer := b.flights.DoChan(now.tag, func() (any, error) {
		if known, ok := b.known(now.tag); ok {
			return known, nil // since this poll looked, another one has ended the same
		}
		b.slots <- struct{}{} // encoding ends by itself
		defer func() { <-b.slots }()
		body, err := b.encode(now)
		if err == nil {
			b.keep(now.tag, body)
		}
		return body, err
	})
	select {
	case result := <-answer:
		body, _ := result.Val.([]byte)
		return body, result.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *bodies) known(tag string) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.memory.Get(tag)
}

func (b *bodies) keep(tag string, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory.Contains(tag) {
		return
	}
	b.memory.Add(tag, body)
	b.size += len(body)
	for b.size > maxBodies {
		b.memory.RemoveOldest()
	}
}
