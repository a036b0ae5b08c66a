// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"fmt"
	"sync"
)

// slots count open tunnels, in all and by Feature.
type slots struct {
	total, perFeature int

	mu    sync.Mutex
	open  map[string]int
	count int
	// idle is closed when the last tunnel has ended and drain waits for it.
	idle chan struct{}
}

func newSlots(total, perFeature int) *slots {
	return &slots{total: total, perFeature: perFeature, open: map[string]int{}}
}

// take counts one more tunnel of a Feature, or says that there are too many. The returned function gives it back.
func (s *slots) take(feature string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= s.total || s.open[feature] >= s.perFeature {
		return nil, false
	}
	s.count++
	s.open[feature]++
	return func() { s.release(feature) }, true
}

func (s *slots) release(feature string) {
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

// drain waits until no tunnel is open.
func (s *slots) drain(ctx context.Context) error {
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
		return fmt.Errorf("%d tunnels were cut off: %w", s.count, ctx.Err())
	}
}
