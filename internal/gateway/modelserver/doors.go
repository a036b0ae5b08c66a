// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// doors let calls through to backends: as many at once as each takes, and none to one that fails. They outlive configurations.
type doors struct {
	now  func() time.Time
	told func(backend string, avoided bool)

	mu       sync.Mutex
	slots    map[string]*slots
	breakers map[account]*models.Breaker
	// reached has the state of the connections to backends with the platform's key, by name.
	reached map[string]models.Reach
}

// slots of a backend with a limit of calls at once.
type slots struct {
	limit int
	*callers.Shares
}

// account of calls to a backend: a project whose own key is refused or limited says nothing about the platform's.
type account struct {
	backend, project string
	key              policy.SecretKey
}

func newDoors(now func() time.Time, told func(string, bool)) *doors {
	return &doors{now: now, told: told, slots: map[string]*slots{}, breakers: map[account]*models.Breaker{}, reached: map[string]models.Reach{}}
}

// passage of a call to a backend.
type passage struct {
	doors   *doors
	account account
	call    models.Call
	slots   *slots
	told    bool
}

// enter waits for a slot. Leave has to be called.
func (d *doors) enter(c *call) (*passage, *failure) {
	b := c.route.Backend
	p := &passage{doors: d, account: account{backend: b.Name}}
	if c.route.Key != (policy.SecretKey{}) {
		p.account.project, _, _ = strings.Cut(c.caller.Feature, "/")
		p.account.key = c.route.Key
	}
	if f := p.begin(b, c.caller.Feature); f != nil {
		return nil, f
	}
	if p.slots != nil {
		waiting, cancel := context.WithTimeout(c.r.Context(), c.caller.Silence)
		defer cancel()
		if err := p.slots.Take(waiting, c.caller.Feature, 1); err != nil {
			p.tell(models.Unknown)
			f := fail(http.StatusServiceUnavailable, reasonBackendFull, nil, "the backend %q has as many calls as it takes at once (%d); try again", b.Name, b.Concurrency)
			if errors.Is(err, callers.ErrShare) {
				f = fail(http.StatusServiceUnavailable, reasonTooMany, nil, "this Feature has as many calls under way as one Feature may at the backend %q (%d of %d): wait for some of them", b.Name, ofOne(b.Concurrency), b.Concurrency)
			}
			f.elsewhere = true
			return nil, f
		}
	}
	return p, nil
}

// begin a call.
func (p *passage) begin(b models.Backend, feature string) *failure {
	d := p.doors
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.slots = d.slots[b.Name]; b.Concurrency == 0 {
		p.slots = nil
	} else if p.slots == nil || p.slots.limit != b.Concurrency { // calls under way give back what they have taken before
		p.slots = &slots{b.Concurrency, callers.NewShares(int64(b.Concurrency), ofOne(b.Concurrency))}
		d.slots[b.Name] = p.slots
	}
	breaker := d.breakers[p.account]
	if breaker == nil {
		breaker = &models.Breaker{}
		d.breakers[p.account] = breaker
	}
	var avoided *models.Avoided
	if p.call, avoided = breaker.Begin(d.now(), feature); avoided != nil {
		whose := "anybody"
		if avoided.Alone {
			whose = "this Feature"
		}
		wait := max(avoided.Wait, time.Second)
		f := fail(http.StatusServiceUnavailable, reasonAvoided, nil, "the backend %q has failed %d times in a row and gets no calls of %s for %s; try again then", b.Name, avoided.Failures, whose, wait.Round(time.Second))
		f.elsewhere, f.wait = true, int(wait.Seconds())
		return f
	}
	return nil
}

// tell what came of the call, once: when an answer begins, because it may take as long as a user's break.
func (p *passage) tell(o models.Outcome) {
	if p.told {
		return
	}
	p.told = true
	d := p.doors
	d.mu.Lock()
	defer d.mu.Unlock()
	breaker := d.breakers[p.account]
	if breaker == nil { // another call was answered, and nothing is known any more
		breaker = &models.Breaker{}
		d.breakers[p.account] = breaker
	}
	was := breaker.Open()
	breaker.End(d.now(), p.call, o)
	is := breaker.Open()
	if p.account.project == "" {
		d.fared(p.account.backend, o == models.Answered, !is, is != was)
	}
	if breaker.Idle() {
		delete(d.breakers, p.account)
	}
}

// fared records the state of a backend after a call with the platform's key: whether it has answered, and whether calls are kept away from it.
func (d *doors) fared(backend string, answered, avoided, changed bool) {
	r, now := d.reached[backend], d.now()
	r.Backend = backend
	if answered {
		r.Answered = now
	}
	if changed {
		r.Avoided = time.Time{}
	}
	if changed && avoided {
		r.Avoided = now
	}
	d.reached[backend] = r
	if changed {
		d.told(backend, avoided)
	}
}

// reach has the state of some backends, without the ones that got no call.
func (d *doors) reach(backends []models.Backend) (all []models.Reach) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range backends {
		if r, asked := d.reached[b.Name]; asked {
			all = append(all, r)
		}
	}
	return all
}

// leave gives the slot back, once.
func (p *passage) leave() {
	p.tell(models.Unknown)
	if p.slots != nil {
		p.slots.Give(p.call.Feature, 1)
		p.slots = nil
	}
}

// ofOne is how many calls a backend with the given limit gets from one Feature: a quarter is for others, so that long answers of one
// Feature keep nobody away.
func ofOne(concurrency int) int64 {
	if concurrency == 1 {
		return 1
	}
	return int64(concurrency - max(1, concurrency/4))
}
