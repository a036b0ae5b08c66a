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
	// kind of what it finds.
	kind Kind
	// doc says for people what it finds, in one sentence.
	doc string
	// advice is the text for the agent: one thing to do about it.
	advice func(Finding) string
	// off says that what it finds is a way that does not lead anywhere: it counts where nothing says better what is wrong.
	off  bool
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
		onlyFailures,
		trials,
		refusals,
	}
}

// patience is how many times more often than other calls a call may check the progress of something.
const patience = 12

// look at one thread.
type look struct {
	s   *State
	t   *Thread
	r   Thresholds
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
	// succeeds says that what repeats has succeeded, and worked that calls have brought something since the newest valid checkpoint.
	succeeds, worked bool
	tool             string
	count            int
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
func (s *State) company(t *Thread) bool {
	for _, o := range s.Threads {
		if o != t && o.Kind != conversation.KindSide && t.Heard.Sub(o.Heard) < 10*time.Minute {
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
func (t *Thread) turns(mean func(o step) counting) (count int) {
	count, _ = t.count(false, mean)
	return count
}

// count as turns does; all of them where through says that a wait changes nothing. Slept says that there was one.
func (t *Thread) count(through bool, mean func(o step) counting) (count int, slept bool) {
	seen, waited := int64(-1), false
	for i, o := range slices.Backward(t.Steps) {
		if i+1 < len(t.Steps) {
			if next := t.Steps[i+1]; next.After && o.Turn != next.Turn {
				if !through {
					return count, slept
				}
				waited = true
			}
		}
		switch mean(o) {
		case ends:
			return count, slept
		case counts:
			if o.Turn != seen {
				count++
			}
			seen, slept = o.Turn, slept || waited || o.Waits
		case passes:
		}
	}
	return count, slept
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

// like says whether two commands have the same form.
func (x step) like(o step) bool { return x.Form != 0 && x.Form == o.Form && x.Tool == o.Tool }

// again counts a call, or with forms one that is like it, with what like says is the same result. A change of files ends the count where it may be the
// reason for trying again: the thread has made it itself with another call, and it is the file that the call is about. What a call itself
// writes, such as a log of a test, does not count. Through says that waiting changes nothing about what the call gives. Varied says that
// not all of the calls were the same.
func (l look) again(x step, forms, through bool, like func(o step) bool) (count int, slept, varied bool) {
	changed := false
	count, slept = l.t.count(through || x.Waits, func(o step) counting {
		same := o.Call == x.Call || forms && o.like(x)
		switch {
		case !same:
			changed = changed || o.Wrote && (x.Path == 0 || o.Path == 0 || o.Path == x.Path)
			return passes
		case o.Call != x.Call && o.Failure == x.Failure && !like(o):
			return passes
		case !like(o), changed:
			return ends
		}
		if o.Waits != x.Waits && !through {
			return passes
		}
		varied = varied || o.Call != x.Call
		return counts
	})
	return count, slept, varied
}
