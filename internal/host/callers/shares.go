// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"sync"
)

// Shares divide an amount among Features, such as bytes of memory or calls at once. No Feature holds more than a share. Who holds
// least comes first where several wait, and who waits longest among those.
type Shares struct {
	total, share int64

	mu      sync.Mutex
	used    int64
	held    map[string]int64
	waiting []*waiting
}

type waiting struct {
	feature string
	amount  int64
	ready   chan struct{}
}

// NewShares of a total, of which each Feature has a share at the most.
func NewShares(total, share int64) *Shares {
	return &Shares{total: total, share: share, held: map[string]int64{}}
}

// Try takes an amount if there is so much.
func (s *Shares) Try(feature string, amount int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(feature, amount)
}

func (s *Shares) take(feature string, amount int64) bool {
	if s.used+amount > s.total || s.held[feature]+amount > s.share {
		return false
	}
	s.used += amount
	s.held[feature] += amount
	return true
}

// Take an amount, and wait for it until the context ends. Those who may wait are few: calls of a Feature are bounded.
func (s *Shares) Take(ctx context.Context, feature string, amount int64) error {
	s.mu.Lock()
	if s.take(feature, amount) {
		s.mu.Unlock()
		return nil
	}
	w := &waiting{feature: feature, amount: amount, ready: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	return nil // it was given just now
}

// Give an amount back.
func (s *Shares) Give(feature string, amount int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= amount
	if s.held[feature] -= amount; s.held[feature] == 0 {
		delete(s.held, feature)
	}
	for s.serve() {
	}
}

// serve who holds least of those whose amount there is.
func (s *Shares) serve() bool {
	next := -1
	for i, w := range s.waiting {
		fits := s.used+w.amount <= s.total && s.held[w.feature]+w.amount <= s.share
		if fits && (next < 0 || s.held[w.feature] < s.held[s.waiting[next].feature]) {
			next = i
		}
	}
	if next < 0 {
		return false
	}
	w := s.waiting[next]
	s.waiting = append(s.waiting[:next], s.waiting[next+1:]...)
	s.take(w.feature, w.amount)
	close(w.ready)
	return true
}
