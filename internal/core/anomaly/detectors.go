// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// detector recognises one thing that goes wrong. Each has a file, a line in detectors, and two transcripts in testdata: one in which it
// must find something, and <name>-not.txt, in which it must not.
type detector struct {
	name string
	// kind of what it finds. PaceEscalated is for a way that does not lead anywhere: it is held against the plan of the role, and is AgentStalled where
	// there is no plan.
	kind Kind
	look func(look) sight
}

// detectors in their order: of several that find the same kind in a thread at the same tier, the first counts.
func detectors() []detector {
	return []detector{
		cascade,
		pressure,
		thrash,
		silence,
		provider,
		stall,
		sameFailure,
		failingTool,
		badArguments,
		sameResult,
		oscillation,
		reversal,
		sameWords,
		failures,
		trials,
		refusals,
	}
}

// patience is how many times more often than anything else somebody may look how far something is.
const patience = 12

// look at one thread.
type look struct {
	s   *State
	t   *Thread
	r   Rules
	now time.Time
}

// sight is what a detector sees.
type sight struct {
	// tier is 0 where it sees nothing.
	tier Tier
	// lasts says that what it has seen earlier is not over, though it would not begin now.
	lasts bool
	mute  bool
	// fails says that count counts failures of a tool.
	fails bool
	tool  string
	count int
	// evidence as in Finding.
	evidence string
}

// says what was seen. Most looks see nothing, and there are no words for that.
func (s sight) says(format string, values ...any) sight {
	if s.tier > 0 {
		s.evidence = fmt.Sprintf(format, values...)
	}
	return s
}

// tier of a count that began to matter at first.
func (l look) tier(count, first int) Tier {
	switch {
	case count < first:
		return 0
	case count >= first+2*l.r.Loop:
		return Breaker
	case count >= first+l.r.Loop:
		return Surgery
	}
	return Warn
}

// latest are the steps of the newest turn.
func (t *Thread) latest() []step {
	i := len(t.Steps)
	for i > 0 && t.Steps[i-1].Turn == t.Turn {
		i--
	}
	return t.Steps[i:]
}

// company says that another thread was at work a short time ago, whose calls change files too.
func (l look) company() bool {
	for _, o := range l.s.Threads {
		if o != l.t && o.Kind != conversation.KindSide && l.t.Heard.Sub(o.Heard) < 10*time.Minute {
			return true
		}
	}
	return false
}

// counting says what one step before the newest one means to a count of repetitions.
type counting int

const (
	counts counting = iota
	passes
	ends
)

// turns counts in how many turns something was there, the newest first. What is repeated in one turn is there once: the model has not seen the
// first result when it asks for the second. What was before a wait does not count: the agent polls.
func (t *Thread) turns(mean func(o step) counting) (count int) { return t.count(false, mean) }

// count as turns does; all of them where waits says that waiting is what is counted.
func (t *Thread) count(waits bool, mean func(o step) counting) (count int) {
	seen := int64(-1)
	for i, o := range slices.Backward(t.Steps) {
		if i+1 < len(t.Steps) {
			if next := t.Steps[i+1]; next.After && !waits && o.Turn != next.Turn {
				return count
			}
		}
		switch mean(o) {
		case ends:
			return count
		case counts:
			if o.Turn != seen {
				count++
			}
			seen = o.Turn
		case passes:
		}
	}
	return count
}

// most is the sight of the step of the newest turn that has the highest count.
func (t *Thread) most(see func(x step) sight) (best sight) {
	for _, x := range t.latest() {
		if s := see(x); s.tier > best.tier || s.tier == best.tier && s.count > best.count {
			best = s
		}
	}
	return best
}

// again counts a call with what like says is the same result. A file that changed ends the count where it may be the reason for trying
// again: after another call, or where another thread works. What a call itself writes, such as a log of a test, is no reason.
func (l look) again(x step, like func(o step) bool) int {
	changes, other := x.Changes, l.company()
	return l.t.count(x.Waits, func(o step) counting {
		switch {
		case o.Call != x.Call:
			other = true
			return passes
		case !like(o), o.Changes != changes && other:
			return ends
		}
		changes, other = o.Changes, l.company()
		if o.Waits != x.Waits {
			return passes
		}
		return counts
	})
}
