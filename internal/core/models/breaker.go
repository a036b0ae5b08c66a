// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "time"

const (
	// breakAfter is how many failures in a row close a gate.
	breakAfter = 5
	// mostOfOne is how many of them one Feature can add to the gate that is everybody's: it takes two failures of others, too.
	mostOfOne = breakAfter - 2
	// shortestBreak is how long a gate is closed at first; each failed trial doubles it, up to longestBreak.
	shortestBreak, longestBreak = 15 * time.Second, 5 * time.Minute
	// longestOwn is that of a Feature's own gate: nobody else finds out that the backend works again.
	longestOwn = time.Minute
	// longestTrial is how long a trial keeps others from trying. A backend that accepts connections and says nothing would keep
	// them away for as long as calls may be silent.
	longestTrial = 30 * time.Second
	// forgotten is when failures of a Feature that has stopped asking do not count any more.
	forgotten = 2 * longestBreak
)

// Breaker keeps calls away from a backend that fails. It has a gate for everybody, and one for each Feature whose calls fail: the
// failures of one Feature keep that Feature away and nobody else. After a while one call at a time tries whether the backend
// works again. The zero value lets everything through. It is not safe for concurrent use.
type Breaker struct {
	all gate
	// failures of each Feature since the backend has answered anybody, and when the last one was counted.
	failures map[string]int
	counted  time.Time
	// own are the Features whose last call has failed.
	own map[string]*streak
}

// streak of failures of one Feature.
type streak struct {
	gate

	failures int
	counted  time.Time
}

// gate is open, or closed until a time. After that one call at a time is a trial.
type gate struct {
	closed bool
	// trials that have failed.
	trials int
	until  time.Time
	// trial that is under way, by when it began; zero where none is. By is the Feature that has made the last one.
	trial time.Time
	by    string
}

// Call that a breaker has let through.
type Call struct {
	Feature string
	Began   time.Time
}

// Avoided says that a call is kept away.
type Avoided struct {
	// Wait until the next trial.
	Wait time.Duration
	// Failures in a row that have closed the gate.
	Failures int
	// Alone: it is closed for this Feature, and open for others.
	Alone bool
}

// Outcome of a call.
type Outcome int

// Outcomes. Answered: the backend has answered, if only by saying that the request is wrong. Failed: it was not reached, or has
// answered with 429 or a status of 500 or more. Unknown is everything else: it is connected and silent, its answer broke off, the
// agent has hung up or does not read.
const (
	Unknown Outcome = iota
	Answered
	Failed
)

// Open says whether calls of everybody are let through.
func (b *Breaker) Open() bool { return !b.all.closed }

// Idle says that the breaker is in the state of a new one.
func (b *Breaker) Idle() bool { return !b.all.closed && len(b.failures)+len(b.own) == 0 }

// Begin a call of a Feature. Avoided is nil if the breaker lets it through.
func (b *Breaker) Begin(now time.Time, feature string) (Call, *Avoided) {
	own := b.own[feature]
	if own != nil {
		if wait := own.wait(now, ""); wait > 0 {
			return Call{}, &Avoided{Wait: wait, Failures: own.failures, Alone: !b.all.closed}
		}
	}
	if wait := b.all.wait(now, feature); wait > 0 {
		return Call{}, &Avoided{Wait: wait, Failures: breakAfter + b.all.trials}
	}
	if own != nil {
		own.try(now, "")
	}
	b.all.try(now, feature)
	return Call{Feature: feature, Began: now}, nil
}

// End a call that was let through, once.
func (b *Breaker) End(now time.Time, c Call, o Outcome) {
	own := b.own[c.Feature]
	was := b.all.ended(c) // a trial
	if own != nil {
		own.ended(c)
	}
	switch o {
	case Answered:
		if delete(b.own, c.Feature); b.all.closed { // it was down for everybody, and is no more
			b.own = nil
		}
		b.all, b.failures = gate{}, nil
	case Failed:
		b.failed(now, c, was)
	case Unknown:
	}
}

// failed counts a failure. Calls that were under way together have failed for one reason, and count once: a failure counts where
// its call began after the last one was counted.
func (b *Breaker) failed(now time.Time, c Call, trial bool) {
	own := b.own[c.Feature]
	if own == nil {
		own = b.remember(now, c.Feature)
	}
	if !c.Began.Before(own.counted) {
		own.counted = now
		if own.failures++; own.failures >= breakAfter {
			own.close(now, longestOwn)
		}
	}
	switch {
	case trial:
		b.all.close(now, longestBreak)
	case !b.all.closed && !c.Began.Before(b.counted) && b.failures[c.Feature] < mostOfOne:
		if b.failures == nil {
			b.failures = map[string]int{}
		}
		b.failures[c.Feature]++
		b.counted = now
		sum := 0
		for _, n := range b.failures {
			sum += n
		}
		if sum >= breakAfter {
			b.all.close(now, longestBreak)
			b.failures = nil
		}
	}
}

// remember a Feature that fails, and forget Features without calls for long.
func (b *Breaker) remember(now time.Time, feature string) *streak {
	if b.own == nil {
		b.own = map[string]*streak{}
	}
	for name, s := range b.own {
		if now.Sub(s.counted) > forgotten {
			delete(b.own, name)
		}
	}
	s := &streak{}
	b.own[feature] = s
	return s
}

// wait is how long a Feature's call is kept away; 0 where it passes. Who has made the last trial lets others try first, so that no
// Feature's own failures keep everybody away. With by empty, there are no others.
func (g *gate) wait(now time.Time, feature string) time.Duration {
	if !g.closed {
		return 0
	}
	from := g.until
	if lost := g.trial.Add(longestTrial); !g.trial.IsZero() && lost.After(from) {
		from = lost
	}
	if g.by != "" && g.by == feature {
		from = from.Add(shortestBreak)
	}
	return max(from.Sub(now), 0)
}

// try is a call that passes.
func (g *gate) try(now time.Time, feature string) {
	if g.closed {
		g.trial, g.by = now, feature
	}
}

// ended says whether a call was the trial that was under way.
func (g *gate) ended(c Call) (trial bool) {
	trial = g.closed && !g.trial.IsZero() && g.trial.Equal(c.Began) && (g.by == "" || g.by == c.Feature)
	if trial {
		g.trial = time.Time{}
	}
	return trial
}

// close for longer than before, and no longer than the longest pause.
func (g *gate) close(now time.Time, longest time.Duration) {
	pause := shortestBreak
	if g.closed {
		g.trials++
		for range min(g.trials, 10) {
			pause = min(2*pause, longest)
		}
	}
	g.closed, g.until = true, now.Add(pause)
}
