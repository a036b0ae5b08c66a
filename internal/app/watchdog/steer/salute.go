// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

// reportEvery is the least time between two reports that say no more than how far the conversation is: each makes a manager write the
// Feature's status.
const reportEvery = 10 * time.Second

// reported is what was reported last.
type reported struct {
	at   time.Time
	turn int64
	what string
}

// Changed says that there is something to report.
func (s *Service) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// tell that there is something to report: what is wrong has changed, or it is time for a report.
func (s *Service) tell(terms Terms, now time.Time) {
	what := s.wrong()
	if !s.reported.at.IsZero() && what == s.reported.what && (s.record.Turns < s.reported.turn+int64(max(terms.SaluteEvery, 1)) || now.Sub(s.reported.at) < reportEvery) {
		return
	}
	s.reported = reported{at: now, turn: s.record.Turns, what: what}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// wrong is what is wrong and what was done about it, without the figures.
func (s *Service) wrong() string {
	var all []string
	for _, e := range s.record.Anomalies.Episodes {
		all = append(all, string(e.Finding.Kind)+e.Finding.Level.String()+s.done(e.Finding))
	}
	return strings.Join(all, " ")
}

// Conversation as it is reported; nil before there is one, and while nothing is wrong with an agent that asks no model.
func (s *Service) Conversation() *protocol.Conversation {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.record
	if r.Turns == 0 && len(r.Anomalies.Episodes) == 0 {
		return nil
	}
	c := &protocol.Conversation{
		Turn: r.Turns, Tool: r.Seen.Tool, Step: r.Seen.Step, Iterations: r.Seen.Iterations, FilesRead: int64(len(r.Seen.Files)),
		Model: r.Seen.Model, ContextTokens: r.Seen.Tokens, Window: r.Seen.Window, ToolFailures: r.Seen.Failures, ToolFailuresInARow: r.Seen.InARow,
		Pace: protocol.PacePrimary,
	}
	if grown := r.Seen.Tokens - r.Seen.TokensBefore; grown > 0 && r.Seen.Window > r.Seen.Tokens {
		c.ContextTurns = (r.Seen.Window - r.Seen.Tokens) / grown
	}
	for _, t := range r.Anomalies.Threads {
		if t.Kind == conversation.KindMain {
			c.TurnsSinceProgress = int64(t.Idle)
		}
	}
	for _, e := range r.Anomalies.Episodes {
		f := e.Finding
		if slices.ContainsFunc(c.Anomalies, func(a protocol.Anomaly) bool { return a.Type == string(f.Kind) }) {
			continue // of another thread
		}
		c.Anomalies = append(c.Anomalies, protocol.Anomaly{Type: string(f.Kind), Turn: f.Turn, Since: f.Since, Message: f.Evidence + s.done(f)})
		if f.Kind == anomaly.PaceEscalated {
			c.Pace = paces[f.Level]
		}
	}
	c.Health = health(c)
	return c
}

// done says what was done about a finding.
func (s *Service) done(f anomaly.Finding) string {
	r := &s.record
	for _, e := range s.record.Steering.Episodes {
		if e.Finding.Kind != f.Kind || e.Finding.Thread != f.Thread || len(e.Tried) == 0 {
			continue
		}
		switch last := e.Tried[len(e.Tried)-1]; {
		case last == steering.Observe:
			return "; the agent is not told"
		case s.voice.word != nil && s.voice.word.Anomaly == string(f.Kind):
			return "; the agent is being told"
		case e.Turn == 0 && (last == steering.Nudge || last == steering.Directive): // without a request
			return "; the agent was told"
		case s.record.Unsaid[f.Thread] != "":
			return "; the model will be told with its next request"
		case r.Act != nil && r.Act.Thread == f.Thread && last == steering.Hold:
			return "; its next call is held"
		case last == steering.Hold:
			return fmt.Sprintf("; in turn %d its call was held", e.Turn)
		case last == steering.Rollback:
			return fmt.Sprintf("; in turn %d the workspace was put back to the last valid checkpoint", e.Turn)
		case last == steering.Restart:
			return "; the agent is ended, and started anew"
		case last == steering.Block:
			return "; the agent is ended"
		case last == steering.Surgery:
			return fmt.Sprintf("; in turn %d the model was told, and what repeats itself was left out of what it sees", e.Turn)
		case last == steering.NoTools:
			return fmt.Sprintf("; in turn %d the model was told, and had no tools", e.Turn)
		default:
			return fmt.Sprintf("; in turn %d the model was told", e.Turn)
		}
	}
	return ""
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
