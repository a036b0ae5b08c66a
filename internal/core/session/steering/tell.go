// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Reach is how messages reach an agent that calls no model. An agent that calls models gets them only in its requests, so that a text
// stands in its conversation once.
type Reach struct {
	// Alone says that the agent has called no model.
	Alone bool
	// Tools says that it has the watchdog's tools, and Lines that it takes lines on its standard input.
	Tools, Lines bool
}

// Channel by which an agent that calls no model learns about a finding; "" for none. An idle agent calls no tool, so tools would deliver
// the message only after the finding is over.
func (r Reach) Channel(f anomaly.Finding) string {
	switch {
	case !r.Alone:
		return ""
	case r.Tools && !f.Mute:
		return protocol.ChannelTools
	case r.Lines:
		return protocol.ChannelInput
	}
	return ""
}

// tell an agent that asks no model what is wrong with all of it: one thing at most. It has no turns, so that cooldowns are as long as it may be
// silent.
func (s *State) tell(episodes []anomaly.Episode, turn TurnContext, r Rules) (Step, bool) {
	for i := range episodes {
		e := &episodes[i]
		f := e.Finding
		switch {
		case !f.Main || f.Calm || planned(f, episodes):
			continue
		case f.Kind == anomaly.PaceEscalated && f.Level <= anomaly.Alternate && r.Plan.Alternate == "" && !anomaly.Off(f):
			continue // what has led to it says more
		}
		channel := turn.Reach.Channel(f)
		rung := s.alone(e, channel != "", turn, r)
		if rung == "" {
			continue
		}
		text := ""
		if rung != Observe {
			text = words(e, rung, turn, r)
		}
		step := done(e, f, rung, text, turn)
		if rung == Nudge || rung == Directive {
			step.Channel = channel
		}
		return step, true
	}
	return Step{}, false
}

// alone is the rung that is next for an agent that asks no model, or "". Told says that it can be.
func (s *State) alone(e *anomaly.Episode, told bool, turn TurnContext, r Rules) Rung {
	f := e.Finding
	switch highest := e.Highest(); {
	case len(e.Tried) > 0 && turn.Now.Sub(e.At) < r.Silence && (highest != Observe || !told || !r.allows(Nudge)):
		return ""
	case len(e.Tried) > 0 && !r.allows(Nudge):
		return ""
	}
	for _, rung := range rungs(f) {
		switch {
		case slices.Contains(s.Spent, rung):
			continue
		case slices.Contains([]Rung{Surgery, NoTools, Hold}, rung): // there is no request
			continue
		case rung == Rollback && f.Mute: // it is not its work that is wrong
			continue
		case (rung == Nudge || rung == Directive) && !told:
			continue
		}
		if above(rung, e.Highest()) && !above(rung, r.Ladder) {
			return rung
		}
	}
	switch {
	case len(e.Tried) == 0:
		return Observe
	case !told || above(e.Highest(), Directive):
		return ""
	case r.allows(Directive):
		return Directive
	}
	return Nudge
}

// words for an agent without turns.
func words(e *anomaly.Episode, rung Rung, turn TurnContext, r Rules) string {
	f := e.Finding
	text := opening(f, turn)
	if slices.Contains(e.Tried, Nudge) && !toAnother(rung) {
		text += fmt.Sprintf(" The supervisor told you so %s ago.", age(turn.Now.Sub(e.At)))
	}
	if rung == Directive {
		text += " Before anything else, do this:"
	}
	return text + " " + action(f, rung, r)
}
