// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
)

// Decide what to do about everything that is wrong now. Each call returns at most one step; the caller calls it at each request until there
// is no step left. A step of Observe changes nothing. Decide records the step in state and episodes as done.
func (s *State) Decide(episodes []anomaly.Episode, turn TurnContext, r Rules) (Step, bool) {
	if turn.Reach.Alone {
		return s.tell(episodes, turn, r)
	}
	if turn.Clock {
		return s.unheard(episodes, turn, r)
	}
	if step, ok := s.note(episodes, turn); ok {
		return step, true
	}
	excused := slices.ContainsFunc(episodes, func(e anomaly.Episode) bool { return e.Finding.Thread == turn.Thread && e.Finding.Cause != "" })
	if excused || !s.due(turn, r) { // the next turn that a model has made is looked at instead
		return Step{}, false
	}
	for i := range episodes {
		e := &episodes[i]
		if f := e.Finding; f.Thread != turn.Thread || f.Calm || f.Mute || planned(f, episodes) {
			continue
		}
		if step, ok := s.act(e, episodes, turn, r); ok {
			return step, true
		}
	}
	return Step{}, false
}

// planned says that the plan of the role says what is to be done about a finding.
func planned(f anomaly.Finding, episodes []anomaly.Episode) bool {
	return f.Kind == anomaly.AgentStalled && anomaly.Off(f) && slices.ContainsFunc(episodes, func(e anomaly.Episode) bool {
		return e.Finding.Kind == anomaly.PaceEscalated && e.Finding.Thread == f.Thread
	})
}

// Over is the end of an episode.
func (s *State) Over(e anomaly.Episode) Step {
	f := e.Finding
	if t := (Tool{f.Thread, f.Tool}); slices.Contains(e.Tried, Surgery) && t.Name != "" && !slices.Contains(s.Recovered, t) {
		s.Recovered = append(s.Recovered, t)
		s.Recovered = s.Recovered[max(0, len(s.Recovered)-maxRecovers):]
	}
	return Step{Rung: e.Highest(), Kind: f.Kind, Thread: f.Thread, Over: true, Finding: f}
}

// note what telling the agent would not change, once.
func (s *State) note(episodes []anomaly.Episode, turn TurnContext) (Step, bool) {
	for i := range episodes {
		if e := &episodes[i]; e.Finding.Mute && len(e.Tried) == 0 {
			return done(e, e.Finding, Observe, "", turn), true
		}
	}
	return Step{}, false
}

// unheard is the measure for an agent that makes no call: without a request, only a restart is possible. The thread of the
// task stands for all of it.
func (s *State) unheard(episodes []anomaly.Episode, turn TurnContext, r Rules) (Step, bool) {
	for i := range episodes {
		e := &episodes[i]
		f := e.Finding
		if !f.Mute || !f.Main || f.Cause != "" || f.Detector != anomaly.Silence {
			continue
		}
		for _, rung := range []Rung{Restart, Block} {
			if slices.Contains(e.Tried, rung) || slices.Contains(s.Spent, rung) || !r.allows(rung) || rung == Block && turn.Now.Sub(e.At) < r.Silence {
				continue
			}
			return done(e, f, rung, message(f, rung, 0, turn, r), turn), true
		}
	}
	return s.note(episodes, turn)
}

// due says whether the conversation is to be looked at, and that it is then. It is looked at again with the next request where this one has no
// place for words, unless something is done.
func (s *State) due(turn TurnContext, r Rules) bool {
	t := s.thread(turn)
	if turn.Turn < t.Looked { // the count starts again
		*t = Thread{ID: t.ID, Main: t.Main}
	}
	if turn.Turn-t.Looked < int64(max(r.CheckEvery, 1)) {
		return false
	}
	if !turn.Closed {
		t.Looked = turn.Turn
	}
	return true
}

// act on what is wrong in one of the episodes, if it is time.
func (s *State) act(e *anomaly.Episode, episodes []anomaly.Episode, turn TurnContext, r Rules) (Step, bool) {
	f, t := e.Finding, s.thread(turn)
	emergency := f.Kind == anomaly.PaceEscalated && f.Level == anomaly.Emergency
	if f.Kind == anomaly.PaceEscalated && f.Level <= anomaly.Alternate && r.Plan.Alternate == "" && !anomaly.Off(f) {
		return Step{}, false // what has led to it says more
	}
	fresh := emergency && e.Causes != f.Causes
	last := int64(0)
	told := slices.IndexFunc(t.Told, func(x Told) bool { return x.Kind == f.Kind })
	cooled := told < 0 || fresh
	if told >= 0 {
		last = t.Told[told].RunTurn
		cooled = cooled || turn.Turn-t.Told[told].Turn >= int64(r.Cooldown) || grade(f) > t.Told[told].Grade
	}
	rung := s.rung(e, episodes, turn, cooled, r)
	if rung == "" {
		return Step{}, false
	}
	t.Looked = turn.Turn
	if emergency {
		e.Causes = f.Causes
	}
	if told < 0 {
		t.Told = append(t.Told, Told{Kind: f.Kind})
		told = len(t.Told) - 1
	}
	t.Told[told] = Told{Kind: f.Kind, Turn: turn.Turn, RunTurn: turn.RunTurn, Grade: grade(f)}
	if len(e.Tried) == 0 {
		last = 0 // of an episode that is over
	}
	text := ""
	if rung != Observe {
		text = message(f, rung, last, turn, r)
	}
	step := done(e, f, rung, text, turn)
	if step.Halts() {
		step.Otherwise = message(f, Nudge, last, turn, r)
	}
	if rung == Hold && above(r.Ladder, Hold) {
		step.Until = turn.Now.Add(r.HoldFor)
	}
	return step, true
}

// grade of a finding: a graver one gets a message despite a cooldown.
func grade(f anomaly.Finding) int {
	switch f.Kind {
	case anomaly.PaceEscalated:
		return int(f.Level)
	case anomaly.ContextPressure:
		return int(f.Tier)
	case anomaly.CascadeFailure, anomaly.AgentStalled, anomaly.AgentLooping:
	}
	return 0
}

// rung that is next, or "". Surgery and the turn without tools need no cooldown, and are tried once in an episode; where surgery was tried on the
// same tool before, it does not help. All others follow the one before when the anomaly continues after a cooldown. When there is none
// left, the agent gets the message again. What alters the request waits for one that has a place for words, but what is above it does not
// wait for that.
func (s *State) rung(e *anomaly.Episode, episodes []anomaly.Episode, turn TurnContext, cooled bool, r Rules) Rung {
	f := e.Finding
	told := f.Kind == anomaly.PaceEscalated && f.Level == anomaly.Emergency && e.Causes == f.Causes // an emergency is said once
	open := func(rung Rung) bool {
		if told && !above(rung, NoTools) {
			return false
		}
		if turn.Closed && (rung == Surgery || rung == NoTools) {
			return false
		}
		spent := f.Main && slices.Contains(s.Spent, rung)
		return r.allows(rung) && !slices.Contains(e.Tried, rung) && !spent && slices.Contains(rungs(f), rung) && !halted(f, rung, episodes)
	}
	again := f.Tool != "" && slices.Contains(s.Recovered, Tool{f.Thread, f.Tool})
	switch {
	case (again || f.Tier == anomaly.Breaker) && open(NoTools):
		return NoTools
	case f.Tier == anomaly.Surgery && open(Surgery):
		return Surgery
	case !cooled, told && !r.allows(Nudge):
		return ""
	case !r.allows(Nudge):
		return Observe
	}
	for _, rung := range rungs(f) {
		// A turn without tools that the ladder does not reach is only for the highest tier.
		if open(rung) && above(rung, e.Highest()) && !above(rung, r.Ladder) {
			return rung
		}
	}
	switch {
	case told:
		return ""
	case r.allows(Directive):
		return Directive
	}
	return Nudge
}

// halted says that what a rung does with the whole run was done about another finding, which is not over.
func halted(f anomaly.Finding, rung Rung, episodes []anomaly.Episode) bool {
	return above(rung, NoTools) && slices.ContainsFunc(episodes, func(e anomaly.Episode) bool {
		return e.Finding.Main && f.Main && e.Finding.Kind != f.Kind && slices.Contains(e.Tried, rung)
	})
}

// rungs that make sense for a finding, in their order. What holds the whole run is for what the main thread is in. A turn without tools is not for
// one who repeats what succeeds: it may wait for something, and would end there. A mere stall undoes nothing and restarts nobody if calls
// have brought something that no checkpoint has: the agent would make them twice.
func rungs(f anomaly.Finding) []Rung {
	var list []Rung
	switch f.Kind {
	case anomaly.ContextPressure:
		return []Rung{Nudge, Directive} // nothing else makes room
	case anomaly.AgentLooping:
		if list = []Rung{Nudge, Directive, Surgery}; !f.Succeeds {
			list = append(list, NoTools)
		}
	case anomaly.CascadeFailure:
		list = []Rung{Nudge, Directive, NoTools}
	case anomaly.AgentStalled, anomaly.PaceEscalated:
		list = []Rung{Nudge, Directive}
	}
	switch {
	case !f.Main:
	case f.Worked && (f.Detector == anomaly.Stall || f.Causes == anomaly.Stall):
		list = append(list, Hold)
	default:
		list = append(list, Hold, Rollback, Restart, Block)
	}
	return list
}

// done takes a step for done.
func done(e *anomaly.Episode, f anomaly.Finding, rung Rung, text string, turn TurnContext) Step {
	e.Climb(rung, turn.RunTurn, turn.Now)
	return Step{Rung: rung, Kind: f.Kind, Thread: f.Thread, Message: text, Finding: f}
}
