// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"fmt"
	"sync"
)

// Slots limit how many calls or tunnels are open, in all and by Feature.
type Slots struct {
	total, perFeature int

	mu    sync.Mutex
	open  map[string]int
	count int
	// idle is closed when the last one has ended and Drain waits for it.
	idle chan struct{}
}

// NewSlots with the number of slots in all, and the number for each Feature.
func NewSlots(total, perFeature int) *Slots {
	return &Slots{total: total, perFeature: perFeature, open: map[string]int{}}
}

// Take takes a slot for a Feature. The returned function releases it. The error is ErrShare or ErrFull.
func (s *Slots) Take(feature string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[feature] >= s.perFeature:
		return nil, ErrShare
	case s.count >= s.total:
		return nil, ErrFull
	}
	s.count++
	s.open[feature]++
	return func() { s.release(feature) }, nil
}

func (s *Slots) release(feature string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	if s.open[feature]--; s.open[feature] == 0 {
		delete(s.open, feature)
	}
	if s.count == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Drain waits until nothing is open.
func (s *Slots) Drain(ctx context.Context) error {
	s.mu.Lock()
	if s.count == 0 {
		s.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	s.idle = idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("%d were cut off: %w", s.count, ctx.Err())
	}
}
