// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// Turn takes what a request says.
func (s *State) Turn(c conversation.Turn, now time.Time) {
	s.move(now)
	t := s.thread(c.Thread, c.Kind)
	took := t.took(now)
	t.Asked, t.Calls, t.Sleeps, t.Heard = now, false, 0, now
	if c.Again {
		t.Asks++
		t.trouble(now)
		return
	}
	t.Asks, t.Turn = 0, int64(c.Number)
	if c.Compacted {
		t.compacted(s.Changes)
	}
	s.hear(t, c, took)
}

// took is how long tools have worked since the last answer. Where no answer was seen, the time of the model is in it.
func (t *Thread) took(now time.Time) time.Duration {
	switch {
	case t.Answered.After(t.Heard), t.Answered.Equal(t.Heard) && !t.Answered.IsZero():
		return now.Sub(t.Answered)
	case !t.Heard.IsZero():
		return now.Sub(t.Heard)
	}
	return 0
}

// compacted forgets what the agent forgets too, so that it may look at everything again.
func (t *Thread) compacted(changes int64) {
	if t.Known > t.News && changes == t.Began {
		t.Rounds++
	} else {
		t.Rounds, t.Before = 0, nil
	}
	for _, x := range t.Steps {
		if r := mix(x.Call, x.Result); !slices.Contains(t.Before, r) {
			t.Before = append(t.Before, r)
		}
	}
	t.Before = capped(t.Before, maxSteps)
	t.Known, t.News, t.Began = 0, 0, changes

	if n := len(t.Fill); n > 0 && (t.Compacts == 0 || t.Fill[n-1] < t.Compacts) {
		t.Compacts = t.Fill[n-1]
	}
	t.Steps, t.Turns, t.Fill, t.Words, t.Same = nil, nil, nil, 0, 0
}

// hear a turn that says something new.
func (s *State) hear(t *Thread, c conversation.Turn, took time.Duration) {
	slept := len(t.Turns) > 0 && t.Turns[len(t.Turns)-1].Slept
	r := turn{New: len(t.Turns) == 0 || s.Changes > t.Changes, Slept: len(c.Steps) == 0 && took >= pause && len(c.Told) > 0, Waits: len(c.Steps) > 0}
	// Who wakes an agent that gets on with nothing, or does so all the time, gives it no other task.
	if told := said(c.Told); len(c.Steps) == 0 && told != 0 {
		if told != t.Told && t.Idle <= 1 && t.Turn-t.Task >= maxTurns {
			t.Task = t.Turn
		}
		t.Told = told // the same words once more are no other task either
	}
	works, fails := false, len(c.Steps) > 0 && s.Changes == t.Changes
	var signs, calls []sum
	var steps []step
	for _, x := range c.Steps[:min(len(c.Steps), maxTurnSteps)] {
		n, useless := s.remember(t, x, took)
		n.After = slept
		works, fails = works || !useless, fails && n.Failure != conversation.FailureNone
		r.add(n, took >= shortPause && sleeps(x.Call.Arguments.Text) >= shortPause)
		signs, calls, steps = append(signs, n.Call, n.Result), append(calls, n.Call), append(steps, n)
	}
	r.Waits = r.Waits || r.Slept || slept
	words := said(c.Said)
	if len(signs) == 0 && words != 0 {
		signs = append(signs, words)
	}
	t.Steps = capped(append(t.Steps, steps...), maxSteps)
	t.Changes, r.Changes, r.Said, r.Calls = s.Changes, s.Changes, mix(signs...), mix(calls...)
	t.Turns = capped(append(t.Turns, r), maxTurns)
	t.tally(r, steps, fails)
	t.listen(r, words, works)
}

// add what a step says of its turn.
func (r *turn) add(n step, sleeps bool) {
	r.New, r.Varies, r.Slept = r.New || n.New, r.Varies || n.Varies, r.Slept || sleeps
	r.Fails = r.Fails || n.Failure != conversation.FailureNone
	r.Waits = r.Waits && (n.Waits || n.Polls)
}

// tally the turns in which all fails, and those that bring nothing. One that waits counts for neither.
func (t *Thread) tally(r turn, steps []step, fails bool) {
	switch {
	case r.Waits, len(steps) == 0:
	case !fails:
		t.Fails = 0
	case slices.ContainsFunc(steps, func(n step) bool { return !n.Bare }):
		t.Fails++
	}
	switch {
	case r.New:
		t.Idle = 0
	case !r.Waits:
		t.Idle++
	}
}

// listen to words that are the same again.
func (t *Thread) listen(r turn, words sum, works bool) {
	switch {
	case r.New, works: // what it does says more than what it says
		t.Words, t.Same = 0, 0
	case words == 0, r.Waits:
	case words == t.Words:
		t.Same++
	default:
		t.Words, t.Same = words, 1
	}
}

// remember a step. An edit that was not made before changes the workspace, whether or not that was seen yet.
// Useless says that no such call brings anything.
func (s *State) remember(t *Thread, x conversation.Step, took time.Duration) (n step, useless bool) {
	a := argumentsOf(x.Call)
	n = step{
		Turn: t.Turn, Tool: Name(x.Call.Name), Program: a.program(), Call: a.sum(), Result: resultSum(x.Result), Size: x.Result.Size, Failure: x.Failure,
		Long: took >= pause, Polls: polls(x), Bare: x.Result.Size < longestBare && bare.MatchString(x.Result.Text),
	}
	done := x.Failure == conversation.FailureNone
	n.Waits = done && took >= pause || took >= shortPause && sleeps(x.Call.Arguments.Text) >= shortPause
	writes, again, known := a.writes(), false, false
	for _, o := range t.Steps {
		known = known || o.Result == n.Result && o.Turn >= t.Task // for another task the same may be looked at once more
		if o.Call == n.Call {
			again, n.Varies = true, o.Result != n.Result
		}
	}
	n.Edits = done && writes
	// What a command prints before it fails is worth as much as what another prints. One that prints nothing may have done something.
	// A call that was made before brings something if it succeeds with another result.
	told := done || x.Failure == conversation.FailureExit && !n.Bare && !again
	n.New = told && !a.useless() && (!known || !again && (writes || n.Bare))
	if n.Edits && !again {
		s.Changes++
	}
	if e := x.Call.Edit; n.Edits && e.Edits() {
		from, to := digestSum(e.Removed), digestSum(e.Added)
		t.Edits = capped(append(t.Edits, edit{Pair: mix(textSum(e.Path), min(from, to), max(from, to)), Back: from > to, Turn: t.Turn}), maxEdits)
	}
	t.recognise(n)
	n.Changes = s.Changes
	return n, a.useless()
}

// recognise what was looked at before the newest compaction.
func (t *Thread) recognise(n step) {
	if slices.Contains(t.Before, mix(n.Call, n.Result)) {
		t.Known++
	} else {
		t.News++
	}
}

// capped keeps the newest entries of a list, in its place.
func capped[E any](list []E, limit int) []E {
	return slices.Delete(list, 0, max(len(list)-limit, 0))
}
