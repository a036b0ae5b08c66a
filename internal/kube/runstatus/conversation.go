// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// maxModel bounds the name of a model, maxEvidence the message of an anomaly, in characters, as the API does.
const maxModel, maxEvidence = 253, 512

// validateConversation names the first field that no watchdog of ours would send.
func validateConversation(c *protocol.Conversation) error {
	if c == nil {
		return nil
	}
	for _, n := range []int64{c.Turn, c.Iterations, c.FilesRead, c.TurnsSinceProgress, c.ContextTurns, c.ContextTokens, c.Window, c.ToolFailures, c.ToolFailuresInARow, c.FixedInTime} {
		if n < 0 {
			return errors.New("status.conversation has a negative number")
		}
	}
	if len(c.Anomalies) > protocol.MaxAnomalies {
		return fmt.Errorf("status.conversation.anomalies has %d entries, more than %d", len(c.Anomalies), protocol.MaxAnomalies)
	}
	seen := map[string]bool{}
	for i, a := range c.Anomalies {
		field := fmt.Sprintf("status.conversation.anomalies[%d].type", i)
		if err := oneOf(field, a.Type, v1alpha1.AnomalyConditions()...); err != nil {
			return err
		}
		if err := oneOf(fmt.Sprintf("status.conversation.anomalies[%d].cause", i), cmp.Or(a.Cause, protocol.CauseProvider), protocol.CauseProvider); err != nil {
			return err
		}
		if seen[a.Type] {
			return fmt.Errorf("%s %q is there twice", field, a.Type)
		}
		seen[a.Type] = true
	}
	return errors.Join(
		oneOf("status.conversation.health", cmp.Or(c.Health, protocol.HealthNominal), protocol.HealthNominal, protocol.HealthDegraded, protocol.HealthCritical),
		oneOf("status.conversation.pace", cmp.Or(c.Pace, protocol.PacePrimary), protocol.PacePrimary, protocol.PaceAlternate, protocol.PaceContingent, protocol.PaceEmergency))
}

// applyConversation says how the conversation goes. A report without one ends what was said of its anomalies, and leaves the turn.
func applyConversation(run *v1alpha1.RunStatus, c *protocol.Conversation) {
	run.Anomalies = nil
	if c == nil {
		return
	}
	run.Turn = c.Turn
	for _, a := range c.Anomalies {
		run.Anomalies = append(run.Anomalies, v1alpha1.Anomaly{Type: a.Type, Turn: a.Turn, Message: Clean(a.Message, maxEvidence), StartTime: apiTime(a.Since), Cause: a.Cause})
	}
	r := run.Report
	if r.Health = cmp.Or(c.Health, r.Health); r.Health == protocol.HealthNominal && len(r.Problems) > 0 {
		r.Health = protocol.HealthDegraded
	}
	r.PaceLevel, r.FixedInTime = c.Pace, c.FixedInTime
	e := v1alpha1.SaluteEnvironment{
		Model: Clean(c.Model, maxModel), ContextTokens: c.ContextTokens, ContextTokensMax: c.Window, ToolFailures: c.ToolFailures, ToolFailuresInARow: c.ToolFailuresInARow,
	}
	if c.Window > 0 {
		e.ContextPercent = int32(min(100*min(c.ContextTokens, maxNumber/100)/c.Window, 1000))
	}
	r.Environment = unlessEmpty(e)
	r.Activity = unlessEmpty(v1alpha1.SaluteActivity{Tool: Clean(c.Tool, maxName), Step: Clean(c.Step, maxPlace), Iterations: c.Iterations, WaitsFor: Clean(c.Awaits, maxPlace)})
	if c.FilesRead > 0 {
		if r.Location == nil {
			r.Location = &v1alpha1.SaluteLocation{}
		}
		r.Location.FilesRead = c.FilesRead
	}
	r.Time = unlessEmpty(v1alpha1.SaluteTime{TurnsSinceProgress: c.TurnsSinceProgress, ContextTurnsRemaining: c.ContextTurns})
}

// unlessEmpty gives a part of a report, or nil where it says nothing: when server-side apply takes the last member of an object away that is still
// applied, it leaves null in its place, which the schema refuses.
func unlessEmpty[T comparable](part T) *T {
	if part == *new(T) {
		return nil
	}
	return &part
}

// boundConversation cuts what applyConversation sets to what the API takes.
func boundConversation(run *v1alpha1.RunStatus) {
	run.Turn = min(run.Turn, maxNumber)
	run.Anomalies = plain.CutList(run.Anomalies, protocol.MaxAnomalies)
	for i := range run.Anomalies {
		a := &run.Anomalies[i]
		a.Message, a.Turn = plain.CutRunes(a.Message, maxEvidence), min(a.Turn, maxNumber)
	}
	r := run.Report
	if r == nil {
		return
	}
	r.FixedInTime = min(r.FixedInTime, maxNumber)
	if a := r.Activity; a != nil {
		a.Tool, a.Step, a.WaitsFor, a.Iterations = plain.CutRunes(a.Tool, maxName), plain.CutRunes(a.Step, maxPlace), plain.CutRunes(a.WaitsFor, maxPlace), min(a.Iterations, maxNumber)
	}
	if t := r.Time; t != nil {
		t.TurnsSinceProgress, t.ContextTurnsRemaining = min(t.TurnsSinceProgress, maxNumber), min(t.ContextTurnsRemaining, maxNumber)
	}
	if e := r.Environment; e != nil {
		e.Model, e.ContextTokens, e.ContextTokensMax = plain.CutRunes(e.Model, maxModel), min(e.ContextTokens, maxNumber), min(e.ContextTokensMax, maxNumber)
		e.ToolFailures, e.ToolFailuresInARow = min(e.ToolFailures, maxNumber), min(e.ToolFailuresInARow, maxNumber)
	}
}
