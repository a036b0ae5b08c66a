// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rounding is how much earlier a call may be made: the limiter counts with fractions.
const rounding = time.Microsecond

// Rates bound how many calls Features make in a minute. A Feature without calls for a minute may make the calls of a whole minute at once.
// Make it with NewRates.
type Rates struct {
	mu      sync.Mutex
	callers map[string]*pace
	swept   time.Time
}

// pace of one Feature.
type pace struct {
	limiter *rate.Limiter
	// refused says that its last call was.
	refused bool
}

// NewRates knows no Feature yet.
func NewRates() *Rates { return &Rates{callers: map[string]*pace{}} }

// Take counts a call of a Feature, given its limit of calls in a minute; 0 means unlimited. Take allows the call if wait is 0. A refused
// call does not count, and wait is the time until Take allows the next one. The result again says that Take also refused the Feature's previous call.
func (r *Rates) Take(feature string, perMinute int, now time.Time) (wait time.Duration, again bool) {
	if perMinute <= 0 {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	p := r.callers[feature]
	if p == nil {
		p = &pace{limiter: rate.NewLimiter(every(perMinute), perMinute)}
		r.callers[feature] = p
	}
	if p.limiter.Burst() != perMinute {
		p.limiter.SetLimitAt(now, every(perMinute))
		p.limiter.SetBurstAt(now, perMinute)
	}
	reservation := p.limiter.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > rounding {
		reservation.CancelAt(now)
	} else {
		wait = 0
	}
	again, p.refused = p.refused, wait > 0
	return wait, again && p.refused
}

// Known is the number of Features with calls in the last two minutes.
func (r *Rates) Known() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.callers)
}

// every is a number for each minute, as a rate by the second.
func every(perMinute int) rate.Limit { return rate.Limit(float64(perMinute) / time.Minute.Seconds()) }

// sweep forgets, once a minute, Features whose allowance of a minute is full again.
func (r *Rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for feature, p := range r.callers {
		if p.limiter.TokensAt(now) >= float64(p.limiter.Burst()) {
			delete(r.callers, feature)
		}
	}
}
