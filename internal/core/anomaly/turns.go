// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
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
	if t.Served { // a model has made this turn: calls that failed since do not explain why the agent does what it does
		t.Served, t.Failing = false, failures.Streak{}
	}
	t.Asks, t.Turn = 0, int64(c.Number)
	if c.Compacted {
		t.compacted(s.Changes)
	}
	s.hear(t, c, took)
}

// took is how long tools have worked since the last answer. Without an answer, the time of the model is in it.
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
	t.Steps, t.Turns, t.Fill, t.Left, t.Words, t.Same = nil, nil, nil, 0, 0, 0
}

// hear a turn that says something new.
func (s *State) hear(t *Thread, c conversation.Turn, took time.Duration) {
	slept := len(t.Turns) > 0 && t.Turns[len(t.Turns)-1].Slept
	r := turn{Slept: len(c.Steps) == 0 && took >= pause && len(c.Told) > 0, Waits: len(c.Steps) > 0}
	unserved := t.cause(t.Heard) != "" // some clients make a turn of each error, and no model has read the one before
	// Who wakes an agent that gets on with nothing, or does so all the time, gives it no other task.
	if told := said(c.Told); len(c.Steps) == 0 && told != 0 {
		if told != t.Told && t.Idle <= 1 && t.Turn-t.Task >= maxTurns {
			t.Task = t.Turn
		}
		if told != t.Told {
			t.Spoken = t.Turn
		}
		t.Told = told // the same words once more are no other task either
	}
	changed, company := s.Changes > t.Changes, s.company(t)
	works, fails := false, len(c.Steps) > 0 && (!changed || company)
	r.New = len(t.Turns) == 0 || changed && !company // what others change while they are at work brings this one nothing
	var signs, calls []sum
	var steps []step
	for _, x := range c.Steps[:min(len(c.Steps), maxTurnSteps)] {
		n, useless := s.remember(t, x, took, slept)
		n.Wrote = n.Edits && n.Fresh || n.May && n.Fresh && changed && (!company || n.Failure == conversation.FailureNone)
		works, fails = works || !useless, fails && n.Failure != conversation.FailureNone
		r.add(n, n.Waits)
		signs, calls, steps = append(signs, n.Call, n.Result), append(calls, n.Call), append(steps, n)
	}
	r.Waits = r.Waits || r.Slept || slept || unserved
	if changed && !company {
		t.late()
	}
	if slices.ContainsFunc(steps, func(n step) bool { return n.Wrote }) {
		t.Own++
	}
	words := said(c.Said)
	if len(signs) == 0 && words != 0 {
		signs = append(signs, words)
	}
	t.Steps = capped(append(t.Steps, steps...), maxSteps)
	t.Changes, r.Changes, r.Said, r.Calls = s.Changes, t.Own, mix(signs...), mix(calls...)
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

// tally the turns in which everything fails, and the turns that bring nothing. One that waits counts for neither.
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

// late takes it that a change that is seen late was made by what was called a short time before.
func (t *Thread) late() {
	const fresh = 3 // turns
	turn := int64(0)
	for i := len(t.Steps) - 1; i >= 0 && t.Turn-t.Steps[i].Turn <= fresh; i-- {
		n := &t.Steps[i]
		if turn != 0 && n.Turn != turn {
			return
		}
		if n.May && n.Fresh {
			n.Wrote, turn = true, n.Turn
		}
	}
}

// remember a step. An edit that was not made before changes the workspace, whether or not that was seen yet.
// Useless says that no such call brings anything.
func (s *State) remember(t *Thread, x conversation.Step, took time.Duration, after bool) (n step, useless bool) {
	a := argumentsOf(x.Call)
	done, slept := x.Failure == conversation.FailureNone, took >= shortPause && sleeps(x.Call.Arguments.Text) >= shortPause
	call := a.sum()
	waits := slept || done && t.waits(call, took)
	o := outcomeOf(x.Result, x.Failure, waits || after)
	n = step{
		Turn: t.Turn, Tool: Name(x.Call.Name), Program: a.program(), Call: call, Result: o.sum, Failure: x.Failure, Failing: o.failing, Fails: o.all,
		Long: took >= pause, Until: gaveUp(x, took), After: after, Bare: x.Result.Size < longestBare && bare.MatchString(x.Result.Text), Waits: waits, Path: a.path(), Form: a.form(),
	}
	if file := a.file(); file != "" {
		t.File = file
	}
	n.Polls = polls(x) && !ended(x.Result) || done && o.pending && (waits || after || !a.reads()) && !a.useless() && !a.writes()
	n.Over = done && !n.Polls && !n.Bare && x.Result.Size > 0
	switch x.Failure {
	case conversation.FailureDenied, conversation.FailureFormat, conversation.FailureEdit:
		n.Hard = true
	case conversation.FailureExit, conversation.FailureTool:
		n.Hard = !n.Bare && !o.passing
	case conversation.FailureNone, conversation.FailureTime, conversation.FailureMissing:
	}
	writes, again, known := a.writes(), false, false
	for _, o := range t.Steps {
		known = known || o.Result == n.Result && o.Turn >= t.Task // for another task the same may be looked at once more
		if o.Call == n.Call {
			again, n.Varies = true, o.Result != n.Result
		}
	}
	n.Edits, n.May, n.Fresh = done && writes, writes || !a.reads() && !a.useless(), !again || n.Varies
	// What succeeds and was never called before is news, whatever it says: the work may be to do much of the same. So is what was called before
	// and gives something else. The output of a command before it fails counts as much; one without output may have looked for something that
	// does not exist.
	switch {
	case a.useless():
	case done:
		n.New = !again || !known
	case x.Failure == conversation.FailureExit:
		n.New = !again && (n.Bare || !known)
	}
	n.Whole, n.Lines = a.written(n.Edits)
	if n.Edits && !again {
		s.Changes++
	}
	if done && n.New {
		s.Succeeded++
	}
	if e, is := a.edit(call); is && n.Edits {
		e.Turn = t.Turn
		t.Edits = capped(append(t.Edits, e), maxEdits)
	}
	t.recognise(n)
	return n, a.useless()
}

// waits says whether a call of this duration was there to wait. If the same call came before, a shorter one counts, too.
func (t *Thread) waits(call sum, took time.Duration) bool {
	return took >= pause || took >= pause/2 && slices.ContainsFunc(t.Steps, func(o step) bool { return o.Waits && o.Call == call })
}

// gaveUp says whether a step has waited for something itself until its own time was over.
func gaveUp(x conversation.Step, took time.Duration) bool {
	return x.Failure == conversation.FailureTime && took >= pause && awaits(x.Call.Arguments.Text)
}

// recognise what was looked at before the newest compaction.
func (t *Thread) recognise(n step) {
	if slices.Contains(t.Before, mix(n.Call, n.Result)) {
		t.Known++
	} else {
		t.News++
	}
}

// capped keeps the newest entries of a list, in the same memory.
func capped[E any](list []E, limit int) []E {
	return slices.Delete(list, 0, max(len(list)-limit, 0))
}
