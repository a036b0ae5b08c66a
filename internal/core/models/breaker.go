// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "time"

const (
	// breakAfter is how many calls in a row have to fail before a backend is left alone.
	breakAfter = 5
	// shortestBreak is how long it is left alone at first; each failed trial doubles it, up to longestBreak.
	shortestBreak, longestBreak = 15 * time.Second, 5 * time.Minute
	// longestTrial is when a trial is taken for lost whose end nobody has told.
	longestTrial = 10 * time.Minute
)

// Breaker keeps calls away from a backend that fails. After a while one call at a time tries whether it works again. The zero
// value lets everything through.
type Breaker struct {
	// Failures in a row.
	Failures int
	// Until is when the next trial may be made.
	Until time.Time
	// Trial since when one is under way; zero where none is.
	Trial time.Time
}

// Open says whether calls are kept away.
func (b Breaker) Open() bool { return b.Failures >= breakAfter }

// Begin a call at a time; allowed is false where it is kept away, and the backend may be tried again at the time that Until says.
func (b Breaker) Begin(now time.Time) (next Breaker, allowed bool) {
	switch {
	case !b.Open():
		return b, true
	case now.Before(b.Until), !b.Trial.IsZero() && now.Before(b.Trial.Add(longestTrial)):
		return b, false
	}
	b.Trial = now
	return b, true
}

// Outcome of a call.
type Outcome int

// Outcomes. Unknown is that of a call that was given up before the backend could have answered.
const (
	Unknown Outcome = iota
	Answered
	Failed
)

// End of a call that was allowed.
func (b Breaker) End(now time.Time, o Outcome) Breaker {
	switch o {
	case Answered:
		return Breaker{}
	case Failed:
		b.Failures++
		if b.Open() {
			pause := shortestBreak
			for range min(b.Failures-breakAfter, 10) {
				pause = min(2*pause, longestBreak)
			}
			b.Until = now.Add(pause)
		}
	case Unknown:
	}
	b.Trial = time.Time{}
	return b
}
