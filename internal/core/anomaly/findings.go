// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// maxEvidence is what status keeps of a message, in bytes.
const maxEvidence = 512

// calming is how many turns of doing something else end an anomaly.
const calming = 3

// Look finds what is wrong now, and records it in Episodes. It returns the episodes that are over. It finds nothing in calls without tools.
func (s *State) Look(r Thresholds, now time.Time) (over []Episode) {
	threads := s.Threads
	if !slices.ContainsFunc(threads, (*Thread).main) { // an agent that has never asked a model may hang too
		threads = append(slices.Clone(threads), &Thread{Kind: conversation.KindMain})
	}
	var episodes []Episode
	for _, t := range threads {
		if t.Kind != conversation.KindMain && t.Kind != conversation.KindSub {
			continue
		}
		if l := (look{s, t, r, now}); !l.gone() {
			episodes = append(episodes, s.watch(l)...)
		}
	}
	order := kinds()
	plain.SortStable(episodes, func(x, y *Episode) int {
		a, b := x.Finding, y.Finding
		if c := cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)); c != 0 {
			return c
		}
		if a.Main != b.Main {
			return map[bool]int{true: -1, false: 1}[a.Main]
		}
		return cmp.Compare(a.Thread, b.Thread)
	})
	before := s.Episodes
	s.Episodes = episodes
	return slices.DeleteFunc(before, func(e Episode) bool { return s.Episode(e.Finding.Kind, e.Finding.Thread) != nil })
}

// gone says that an agent that worked for the main one has ended, as far as can be seen.
func (l look) gone() bool {
	wait := l.r.Silence
	switch {
	case !l.t.Asked.IsZero():
		wait = l.r.ModelSilence
	case l.t.Calls:
		wait = l.r.ToolSilence + l.t.Sleeps
	}
	return !l.t.main() && l.now.Sub(l.t.Heard) >= wait
}

// watch one thread. A way that leads nowhere is a stall of an agent that listens, whether or not there is a plan.
func (s *State) watch(l look) (episodes []Episode) {
	best, off, lasting := l.see()
	if slices.ContainsFunc(slices.Collect(maps.Values(best)), Finding.says) || s.explained(l.t.ID) {
		if len(off) > 0 {
			lasting = append(lasting, AgentStalled) // if it was found before
		}
		off = nil // what is found by itself says it better
	}
	if _, mute := best[AgentStalled]; len(off) > 0 && !mute {
		best[AgentStalled] = slices.MaxFunc(off, func(a, b Finding) int { return cmp.Compare(a.Tier, b.Tier) })
	}
	for _, kind := range kinds() {
		if kind == PaceEscalated {
			continue
		}
		f, seen := best[kind]
		if e, on := s.episode(l, kind, f, seen, slices.Contains(lasting, kind)); on {
			episodes = append(episodes, e)
		}
	}
	if !l.r.Role || !l.t.main() {
		return episodes
	}
	var found []Finding
	for _, e := range episodes {
		found = append(found, e.Finding)
	}
	if e, on := s.pace(l, found); on {
		episodes = append(episodes, e)
	}
	return episodes
}

// explained says that a thread goes in circles or fails in all it does, and that this is not over: until then it explains why nothing succeeds.
func (s *State) explained(thread int) bool {
	return s.Episode(AgentLooping, thread) != nil || s.Episode(CascadeFailure, thread) != nil
}

// see what all detectors see in a thread: of each kind what is gravest, what is off the plan, and the kinds that are not over.
func (l look) see() (best map[Kind]Finding, off []Finding, lasting []Kind) {
	best = map[Kind]Finding{}
	for _, d := range detectors() {
		v := d.look(l)
		if v.lasts {
			lasting = append(lasting, d.kind)
		}
		f := Finding{Kind: d.kind, Detector: d.name, Tier: v.tier, Tool: v.tool, Count: v.count, Mute: v.mute, Evidence: v.evidence, Succeeds: v.succeeds, Worked: v.worked, fails: v.fails, Turn: l.t.Turn}
		switch {
		case v.tier == 0:
		case d.off:
			if l.t.main() { // one that works for it may have been asked to look at what fails
				off = append(off, f)
			}
		case v.tier > best[d.kind].Tier:
			best[d.kind] = f
		}
	}
	return best, off, lasting
}

// says that a finding says what the agent does wrong.
func (f Finding) says() bool { return !f.Mute && f.Kind != ContextPressure }

// episode continues with an earlier finding, or begins one.
func (s *State) episode(l look, kind Kind, f Finding, seen, lasts bool) (Episode, bool) {
	before := s.Episode(kind, l.t.ID)
	if before == nil && !seen {
		return Episode{}, false
	}
	e := Episode{Held: l.t.Turn}
	if before != nil {
		e = *before
		f.Turn, f.RunTurn, f.Since = e.Finding.Turn, e.Finding.RunTurn, e.Finding.Since
	} else {
		f.Turn, f.RunTurn, f.Since = l.t.Turn, s.RunTurn, l.now
	}
	f.Thread, f.Main, f.Evidence = l.t.ID, l.t.main(), plain.CutBytes(l.at(f), maxEvidence)
	switch {
	case seen:
		e.Held, e.Finding = l.t.Turn, f
	case lasts:
		e.Held, e.Finding.Calm = l.t.Turn, true
	case kind == ContextPressure || e.Finding.Mute || l.t.Turn == 0 || l.t.Turn-e.Held >= calming:
		return Episode{}, false
	default:
		e.Finding.Calm = true
	}
	e.Finding.Cause = l.t.cause(l.now)
	return e, true
}

// exhausted is the fill of a window in thousandths at which there is no room for another turn, and crowded the one at which a plan that does not
// work has no room for another try.
const exhausted, crowded = 970, 850

// pace is how far the main thread has fallen off the plan of its role. It never falls back by a level: it is over when all is well. That the
// context fills is not a failure of the plan, unless there is no room at all.
func (s *State) pace(l look, found []Finding) (Episode, bool) {
	fill := 0
	if n := len(l.t.Fill); n > 0 {
		fill = l.t.Fill[n-1]
	}
	f := Finding{Kind: PaceEscalated, Detector: Pace, Tier: Warn}
	var causes, detectors []string
	calm := true
	for _, c := range found {
		full := c.Kind == ContextPressure && fill >= exhausted
		if c.Mute || c.Cause != "" || c.Kind == ContextPressure && !full {
			continue
		}
		causes, detectors = append(causes, c.Evidence), append(detectors, c.Detector)
		if c.Calm {
			continue
		}
		calm = false
		f.Tool, f.Count, f.Worked = cmp.Or(f.Tool, c.Tool), max(f.Count, c.Count), f.Worked || c.Worked
		f.Level = max(f.Level, l.level(c, full, fill))
	}
	if f.Level < Contingent && !calm && len(causes) > 1 {
		f.Level = Contingent
	}
	f.Evidence, f.Causes = strings.Join(causes, "; "), strings.Join(detectors, "+")
	if before := s.Episode(PaceEscalated, l.t.ID); before != nil {
		f.Level = max(f.Level, before.Finding.Level)
	}
	return s.episode(l, PaceEscalated, f, !calm, false)
}

// Off says that a finding means that the agent is on a wrong way. The plan of a role, if there is one, applies to such findings.
func Off(f Finding) bool {
	first, _, _ := strings.Cut(cmp.Or(f.Causes, f.Detector), "+")
	return slices.ContainsFunc(detectors(), func(d detector) bool { return d.name == first && d.off })
}

// level that one finding calls for. The first is an alternative; what was tried and has not helped for a cooldown, or fails for the fifth time,
// calls for another method.
func (l look) level(c Finding, full bool, fill int) Level {
	switch {
	case full, c.Tier == Breaker && c.Kind != AgentStalled, c.Detector == Stall && 2*c.Count >= 3*l.r.Stall:
		return Emergency
	case l.t.Turn-c.Turn >= int64(max(l.r.Cooldown, 1)), fill >= crowded, c.Tier >= Surgery, c.fails && c.Count >= l.r.Loop+2:
		return Contingent
	}
	return Alternate
}
