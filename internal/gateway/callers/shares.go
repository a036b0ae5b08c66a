// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Whose use of an amount keeps a Feature from more.
var (
	// ErrShare says that the Feature itself holds its share.
	ErrShare = errors.New("the Feature holds its share")
	// ErrFull says that the Feature would have a part of its share left, and that all Features together hold too much of the total.
	ErrFull = errors.New("all Features together hold the total")
)

// Shares divide an amount among Features, such as bytes of memory or calls at once. No Feature holds more than a share. Who holds
// least comes first where several wait, among those who has taken something longest ago, and then who waits longest.
type Shares struct {
	total, share int64

	mu      sync.Mutex
	used    int64
	held    map[string]int64
	waiting []*waiting
	// turns count what was taken; last is when a Feature that holds something, or waits for it, has taken something before. For a new Feature
	// it is when it came: as first of all, Features that come one call at a time would keep one waiting for good that has calls at once.
	turns int64
	last  map[string]int64
}

type waiting struct {
	feature string
	amount  int64
	ready   chan struct{}
}

// NewShares of a total, of which each Feature has a share at the most.
func NewShares(total, share int64) *Shares {
	return &Shares{total: total, share: share, held: map[string]int64{}, last: map[string]int64{}}
}

// Try takes an amount if there is so much. The error is ErrShare or ErrFull.
func (s *Shares) Try(feature string, amount int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(feature, amount)
}

func (s *Shares) take(feature string, amount int64) error {
	if err := s.lacks(feature, amount); err != nil {
		return err
	}
	s.used += amount
	s.held[feature] += amount
	s.turns++
	s.last[feature] = s.turns
	return nil
}

// lacks says why a Feature cannot have an amount now; nil if it can.
func (s *Shares) lacks(feature string, amount int64) error {
	switch {
	case s.held[feature]+amount > s.share:
		return ErrShare
	case s.used+amount > s.total:
		return ErrFull
	}
	return nil
}

// Take an amount, and wait for it until the context ends. The error is what it waited for at the end, ErrShare or ErrFull. Few callers wait
// at a time, because other limits bound the calls of a Feature.
func (s *Shares) Take(ctx context.Context, feature string, amount int64) error {
	s.mu.Lock()
	if s.take(feature, amount) == nil {
		s.mu.Unlock()
		return nil
	}
	if _, known := s.last[feature]; !known { // before who has just taken something, and behind all who have waited for longer
		s.last[feature] = s.turns - 1
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
			s.forget(feature)
			if err := s.lacks(feature, amount); err != nil {
				return err
			}
			return ErrFull // others came first
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
		s.forget(feature)
	}
	for s.serve() {
	}
}

// forget an idle Feature.
func (s *Shares) forget(feature string) {
	if s.held[feature] == 0 && !slices.ContainsFunc(s.waiting, func(w *waiting) bool { return w.feature == feature }) {
		delete(s.last, feature)
	}
}

// serve who comes first of those whose amount there is.
func (s *Shares) serve() bool {
	next := -1
	for i, w := range s.waiting {
		if s.lacks(w.feature, w.amount) == nil && (next < 0 || s.before(w.feature, s.waiting[next].feature)) {
			next = i
		}
	}
	if next < 0 {
		return false
	}
	w := s.waiting[next]
	s.waiting = append(s.waiting[:next], s.waiting[next+1:]...)
	_ = s.take(w.feature, w.amount) // it fits
	close(w.ready)
	return true
}

// before says that a Feature comes before another one that has waited longer.
func (s *Shares) before(feature, other string) bool {
	return cmp.Or(cmp.Compare(s.held[feature], s.held[other]), cmp.Compare(s.last[feature], s.last[other])) < 0
}
