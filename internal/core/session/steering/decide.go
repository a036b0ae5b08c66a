// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
)

// Decide what to do, by all that is wrong now. It is asked at each request until it says that there is nothing more: it says first what is over,
// and then at most one thing to do. A step of Observe changes nothing. State has taken it for done.
func (s *State) Decide(findings []anomaly.Finding, turn TurnContext, r Rules) (Step, bool) {
	s.begin(findings)
	if step, ok := s.end(findings); ok {
		return step, true
	}
	if turn.Reach.Alone {
		return s.tell(findings, turn, r)
	}
	if turn.Clock {
		return s.unheard(findings, turn, r)
	}
	if step, ok := s.note(findings, turn); ok {
		return step, true
	}
	excused := slices.ContainsFunc(findings, func(f anomaly.Finding) bool { return f.Thread == turn.Thread && f.Cause != "" })
	if excused || !s.due(turn, r) { // the next turn that a model has made is looked at instead
		return Step{}, false
	}
	for _, f := range findings {
		if f.Thread != turn.Thread || f.Calm || f.Mute || planned(f, findings) {
			continue
		}
		if step, ok := s.act(f, turn, r); ok {
			return step, true
		}
	}
	return Step{}, false
}

// planned says that the plan of the role says what is to be done about a finding.
func planned(f anomaly.Finding, findings []anomaly.Finding) bool {
	return f.Kind == anomaly.AgentStalled && anomaly.Off(f) && slices.ContainsFunc(findings, func(p anomaly.Finding) bool {
		return p.Kind == anomaly.PaceEscalated && p.Thread == f.Thread
	})
}

// begin episodes of what is new, and take over what is known of the others.
func (s *State) begin(findings []anomaly.Finding) {
	for _, f := range findings {
		if e := s.episode(f); e != nil {
			e.Finding = f
		} else {
			s.Episodes = append(s.Episodes, Episode{Finding: f})
		}
	}
}

func (s *State) episode(f anomaly.Finding) *Episode {
	for i := range s.Episodes {
		if e := &s.Episodes[i]; e.Finding.Kind == f.Kind && e.Finding.Thread == f.Thread {
			return e
		}
	}
	return nil
}

// end an episode whose anomaly is over.
func (s *State) end(findings []anomaly.Finding) (Step, bool) {
	for i := range s.Episodes {
		e := s.Episodes[i]
		if slices.ContainsFunc(findings, func(f anomaly.Finding) bool { return f.Kind == e.Finding.Kind && f.Thread == e.Finding.Thread }) {
			continue
		}
		if t := (Tool{e.Finding.Thread, e.Finding.Tool}); slices.Contains(e.Tried, Surgery) && t.Name != "" && !slices.Contains(s.Recovered, t) {
			s.Recovered = append(s.Recovered, t)
			s.Recovered = s.Recovered[max(0, len(s.Recovered)-maxRecovers):]
		}
		s.Episodes = slices.Delete(s.Episodes, i, i+1)
		return Step{Rung: e.highest(), Kind: e.Finding.Kind, Thread: e.Finding.Thread, Over: true, Finding: e.Finding}, true
	}
	return Step{}, false
}

// note what telling the agent would not change, once.
func (s *State) note(findings []anomaly.Finding, turn TurnContext) (Step, bool) {
	for _, f := range findings {
		if e := s.episode(f); f.Mute && len(e.Tried) == 0 {
			return s.done(e, f, Observe, "", turn), true
		}
	}
	return Step{}, false
}

// unheard is what is done about an agent that asks nothing: without a request, it can only be started anew. The thread of the
// task stands for all of it.
func (s *State) unheard(findings []anomaly.Finding, turn TurnContext, r Rules) (Step, bool) {
	for _, f := range findings {
		e := s.episode(f)
		if !f.Mute || !f.Main || f.Cause != "" || f.Detector != anomaly.Silence {
			continue
		}
		for _, rung := range []Rung{Restart, Block} {
			if slices.Contains(e.Tried, rung) || slices.Contains(s.Spent, rung) || !r.allows(rung) || rung == Block && turn.Now.Sub(e.At) < r.Silence {
				continue
			}
			return s.done(e, f, rung, message(f, rung, 0, turn, r), turn), true
		}
	}
	return s.note(findings, turn)
}

// due says whether the conversation is to be looked at, and that it is then. It is looked at again with the next request where this one has no
// place for words, unless something is done.
func (s *State) due(turn TurnContext, r Rules) bool {
	t := s.thread(turn)
	if turn.Turn < t.Looked { // it is counted anew
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

// act on a finding, if it is time.
func (s *State) act(f anomaly.Finding, turn TurnContext, r Rules) (Step, bool) {
	e, t := s.episode(f), s.thread(turn)
	emergency := f.Kind == anomaly.PaceEscalated && f.Level == anomaly.Emergency
	if f.Kind == anomaly.PaceEscalated && f.Level <= anomaly.Alternate && r.Plan.Alternate == "" && !anomaly.Off(f) {
		return Step{}, false // what has led to it says more
	}
	fresh := emergency && e.Causes != f.Causes
	last := int64(0)
	told := slices.IndexFunc(t.Told, func(x Told) bool { return x.Kind == f.Kind })
	cooled := told < 0 || fresh
	if told >= 0 {
		last = t.Told[told].Turn
		cooled = cooled || turn.Turn-last >= int64(r.Cooldown) || grade(f) > t.Told[told].Grade
	}
	rung := s.rung(e, f, turn, cooled, r)
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
	t.Told[told] = Told{Kind: f.Kind, Turn: turn.Turn, Grade: grade(f)}
	if len(e.Tried) == 0 {
		last = 0 // of an episode that is over
	}
	text := ""
	if rung != Observe {
		text = message(f, rung, last, turn, r)
	}
	step := s.done(e, f, rung, text, turn)
	if step.Halts() {
		step.Otherwise = message(f, Nudge, last, turn, r)
	}
	if rung == Hold && above(r.Ladder, Hold) {
		step.Until = turn.Now.Add(r.HoldFor)
	}
	return step, true
}

// grade of a finding: one that has become graver is told of though there is a cooldown.
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
// same tool before, it does not help. All others follow the one before when the anomaly goes on after a cooldown. When there is none left,
// the agent is told again. What alters the request waits for one that has a place for words, but what is above it does not wait for that.
func (s *State) rung(e *Episode, f anomaly.Finding, turn TurnContext, cooled bool, r Rules) Rung {
	told := f.Kind == anomaly.PaceEscalated && f.Level == anomaly.Emergency && e.Causes == f.Causes // an emergency is said once
	open := func(rung Rung) bool {
		if told && !above(rung, NoTools) {
			return false
		}
		if turn.Closed && (rung == Surgery || rung == NoTools) {
			return false
		}
		spent := f.Main && slices.Contains(s.Spent, rung)
		return r.allows(rung) && !slices.Contains(e.Tried, rung) && !spent && slices.Contains(rungs(f), rung) && !s.halted(f, rung)
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
		// A turn without tools that the ladder does not reach is for the highest tier alone.
		if open(rung) && above(rung, e.highest()) && !above(rung, r.Ladder) {
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
func (s *State) halted(f anomaly.Finding, rung Rung) bool {
	return above(rung, NoTools) && slices.ContainsFunc(s.Episodes, func(e Episode) bool {
		return e.Finding.Main && f.Main && e.Finding.Kind != f.Kind && slices.Contains(e.Tried, rung)
	})
}

// rungs that make sense for a finding, in their order. What holds the whole run is for what the main thread is in. A turn without tools is not for
// one who repeats what succeeds: it may wait for something, and would end there. Nothing is undone and nobody begins anew because of a stall alone
// where calls have brought something that no checkpoint has: they would be made twice.
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
func (s *State) done(e *Episode, f anomaly.Finding, rung Rung, text string, turn TurnContext) Step {
	if !slices.Contains(e.Tried, rung) {
		e.Tried = append(e.Tried, rung)
	}
	e.Turn, e.At = turn.Turn, turn.Now
	return Step{Rung: rung, Kind: f.Kind, Thread: f.Thread, Message: text, Finding: f}
}
