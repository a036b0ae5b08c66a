// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// reportEvery is the least time between two reports: each makes a manager write the Feature's status. Only here it limits what the
// conversation reports: the loop and its reporter pass on at once what has changed. What models have used has a time of its own in
// modelproxy.
const reportEvery = 10 * time.Second

// reported is what was reported last.
type reported struct {
	at   time.Time
	turn int64
	what string
}

// tell reports news: an anomaly or the action against it has changed, or the given number of turns has passed. News too soon after the last
// report waits until its time has come.
func (d *decision) tell() {
	s, terms, now := d.s, d.f.Terms, d.f.Now
	what, last := s.wrong()+s.Anomalies.Awaits(terms.Rules.Thresholds, now), s.reported
	if !last.at.IsZero() {
		if what == last.what && s.Turns < last.turn+int64(max(terms.SaluteEvery, 1)) {
			return
		}
		if early := reportEvery - now.Sub(last.at); early > 0 {
			d.e.Later = early
			return
		}
	}
	s.reported, d.e.Report = reported{at: now, turn: s.Turns, what: what}, true
}

// Late reports delayed news, at the time that an earlier call has asked for.
func (s *State) Late(f Facts) Effects {
	d := &decision{s: s, f: f}
	d.tell()
	return d.e
}

// wrong is what is wrong and what was done about it, without the figures.
func (s *State) wrong() string {
	var all []string
	for _, e := range s.Anomalies.Episodes {
		done, _ := s.done(e)
		all = append(all, string(e.Finding.Kind)+e.Finding.Level.String()+e.Finding.Cause+done)
	}
	return strings.Join(all, " ")
}

// Conversation as it is reported; nil before there is one, and for an agent that calls no model as long as it has no findings.
func (s *State) Conversation(f Facts) *protocol.Conversation {
	if s.Turns == 0 && len(s.Anomalies.Episodes) == 0 && s.Board.Heeded == 0 {
		return nil
	}
	c := &protocol.Conversation{
		Turn: s.Turns, Tool: s.Seen.Tool, Step: s.Seen.Step, Iterations: s.Seen.Iterations, FilesRead: int64(len(s.Seen.Files)),
		Model: s.Seen.Model, ContextTokens: s.Seen.Tokens, Window: s.Seen.Window, ToolFailures: s.Seen.Failures, ToolFailuresInARow: s.Seen.InARow,
		FixedInTime: s.Board.Heeded, Pace: protocol.PacePrimary, Awaits: s.Anomalies.Awaits(f.Terms.Rules.Thresholds, f.Now),
	}
	if grown := s.Seen.Tokens - s.Seen.TokensBefore; grown > 0 && s.Seen.Window > s.Seen.Tokens {
		c.ContextTurns = (s.Seen.Window - s.Seen.Tokens) / grown
	}
	for _, t := range s.Anomalies.Threads {
		if t.Kind == conversation.KindMain {
			c.TurnsSinceProgress = int64(t.Idle)
		}
	}
	for _, e := range s.Anomalies.Episodes {
		is := e.Finding
		if slices.ContainsFunc(c.Anomalies, func(a protocol.Anomaly) bool { return a.Type == string(is.Kind) }) {
			continue // of another thread
		}
		c.Anomalies = append(c.Anomalies, protocol.Anomaly{Type: string(is.Kind), Turn: is.RunTurn, Since: is.Since, Message: is.Evidence + said(s.done(e)), Cause: is.Cause})
		if is.Kind == anomaly.PaceEscalated {
			c.Pace = paces[is.Level]
		}
	}
	c.Health = health(c)
	return c
}

// done says what was done in an episode, and in which turn; 0 where it was in none.
func (s *State) done(e anomaly.Episode) (what string, turn int64) {
	if len(e.Tried) == 0 {
		return "", 0
	}
	f := e.Finding
	switch last := e.Tried[len(e.Tried)-1]; {
	case last == steering.Observe:
		return "the watchdog does not tell the agent", 0
	case s.Word != nil && s.Word.Anomaly == string(f.Kind):
		return "the watchdog is telling the agent", 0
	case e.RunTurn == 0 && (last == steering.Nudge || last == steering.Directive): // without a request
		return "the watchdog told the agent", 0
	case s.unsaid(f.Thread) != "":
		return "the watchdog tells the model with its next request", 0
	case s.Act != nil && s.Act.Thread == f.Thread && last == steering.Hold:
		return "the watchdog holds its next call", 0
	case last == steering.Hold:
		return "the watchdog held its call", e.RunTurn
	case last == steering.Rollback:
		return "the workspace went back to the last valid checkpoint", e.RunTurn
	case last == steering.Restart:
		return "the watchdog ends the agent, and starts it again", 0
	case last == steering.Block:
		return "the watchdog ends the agent", 0
	case last == steering.Surgery:
		return "the watchdog told the model, and left repetitions out of what it sees", e.RunTurn
	case last == steering.NoTools && s.Act != nil && s.Act.Rung == last:
		return "the model had no tools, and the agent ended: the watchdog starts it again in its session", e.RunTurn
	case last == steering.NoTools:
		return "the watchdog told the model, which had no tools", e.RunTurn
	default:
		return "the watchdog told the model", e.RunTurn
	}
}

// said is what was done as a part of a sentence.
func said(what string, turn int64) string {
	switch {
	case what == "":
		return ""
	case turn == 0:
		return "; " + what
	}
	return fmt.Sprintf("; in turn %d %s", turn, what)
}

var paces = map[anomaly.Level]string{
	anomaly.Primary: protocol.PacePrimary, anomaly.Alternate: protocol.PaceAlternate, anomaly.Contingent: protocol.PaceContingent, anomaly.Emergency: protocol.PaceEmergency,
}

// health is what is seen, whatever the agent says of itself.
func health(c *protocol.Conversation) string {
	switch {
	case c.Pace == protocol.PaceContingent, c.Pace == protocol.PaceEmergency:
		return protocol.HealthCritical
	case len(c.Anomalies) > 0, c.ToolFailuresInARow >= 2:
		return protocol.HealthDegraded
	}
	return protocol.HealthNominal
}
