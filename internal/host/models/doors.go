// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// doors let calls through to backends: as many at once as each takes, and none to one that fails. They outlive configurations.
type doors struct {
	now  func() time.Time
	told func(backend string, avoided bool)

	mu   sync.Mutex
	each map[string]*door
}

// door to one backend.
type door struct {
	breaker models.Breaker
	// limit of calls at once that slots are for; nil slots are no limit.
	limit int
	slots *semaphore.Weighted
}

func newDoors(now func() time.Time, told func(string, bool)) *doors {
	return &doors{now: now, told: told, each: map[string]*door{}}
}

// enter waits for a slot. Leave has to be called with what came of the call.
func (d *doors) enter(ctx context.Context, b models.Backend, patience time.Duration) (leave func(models.Outcome), f *failure) {
	slots, f := d.begin(b)
	if f != nil {
		return nil, f
	}
	if slots != nil {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if slots.Acquire(waiting, 1) != nil {
			d.end(b.Name, models.Unknown)
			f = fail(http.StatusServiceUnavailable, reasonTooMany, nil, "the backend %q has as many calls as it takes at once (%d); try again", b.Name, b.Concurrency)
			f.elsewhere = true
			return nil, f
		}
	}
	return func(o models.Outcome) {
		if slots != nil {
			slots.Release(1)
		}
		d.end(b.Name, o)
	}, nil
}

// begin a call.
func (d *doors) begin(b models.Backend) (*semaphore.Weighted, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.each[b.Name]
	if at == nil {
		at = &door{}
		d.each[b.Name] = at
	}
	if at.limit != b.Concurrency { // calls under way give back what they have taken before
		at.limit, at.slots = b.Concurrency, nil
		if b.Concurrency > 0 {
			at.slots = semaphore.NewWeighted(int64(b.Concurrency))
		}
	}
	var allowed bool
	now := d.now()
	if at.breaker, allowed = at.breaker.Begin(now); !allowed {
		wait := max(at.breaker.Until.Sub(now), time.Second)
		f := fail(http.StatusServiceUnavailable, reasonAvoided, nil, "the backend %q has failed %d times in a row and gets no calls for %s; try again then", b.Name, at.breaker.Failures, wait.Round(time.Second))
		f.elsewhere, f.wait = true, int(wait.Seconds())
		return nil, f
	}
	return at.slots, nil
}

// end a call.
func (d *doors) end(backend string, o models.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.each[backend]
	was := at.breaker.Open()
	at.breaker = at.breaker.End(d.now(), o)
	if is := at.breaker.Open(); is != was {
		d.told(backend, is)
	}
}
