// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// maxModel bounds the name of a model, maxEvidence the message of an anomaly, in characters, as the API does.
const maxModel, maxEvidence = 253, 512

// validateConversation names the first field that no watchdog of ours would send.
func validateConversation(c *protocol.Conversation) error {
	if c == nil {
		return nil
	}
	for _, n := range []int64{c.Turn, c.Iterations, c.FilesRead, c.TurnsSinceProgress, c.ContextTurns, c.ContextTokens, c.Window, c.ToolFailures, c.ToolFailuresInARow} {
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
		run.Anomalies = append(run.Anomalies, v1alpha1.Anomaly{Type: a.Type, Turn: a.Turn, Message: Clean(a.Message, maxEvidence), Since: apiTime(a.Since)})
	}
	r := run.Report
	if r.Health = cmp.Or(c.Health, r.Health); r.Health == protocol.HealthNominal && len(r.Problems) > 0 {
		r.Health = protocol.HealthDegraded
	}
	r.PaceLevel = c.Pace
	r.Activity = &v1alpha1.SaluteActivity{Tool: Clean(c.Tool, maxName), Iterations: c.Iterations}
	r.Location = &v1alpha1.SaluteLocation{FilesRead: c.FilesRead}
	r.Time = &v1alpha1.SaluteTime{TurnsSinceProgress: c.TurnsSinceProgress, ContextTurnsRemaining: c.ContextTurns}
	r.Environment = &v1alpha1.SaluteEnvironment{
		Model: Clean(c.Model, maxModel), ContextTokens: c.ContextTokens, ContextTokensMax: c.Window, ToolFailures: c.ToolFailures, ToolFailuresInARow: c.ToolFailuresInARow,
	}
	if c.Window > 0 {
		r.Environment.ContextPercent = int32(min(100*min(c.ContextTokens, maxNumber/100)/c.Window, 1000))
	}
}

// boundConversation cuts what applyConversation sets to what the API takes.
func boundConversation(run *v1alpha1.RunStatus) {
	run.Turn = min(run.Turn, maxNumber)
	run.Anomalies = clip.List(run.Anomalies, protocol.MaxAnomalies)
	for i := range run.Anomalies {
		a := &run.Anomalies[i]
		a.Message, a.Turn = clip.Runes(a.Message, maxEvidence), min(a.Turn, maxNumber)
	}
	r := run.Report
	if r == nil || r.Activity == nil || r.Location == nil || r.Time == nil || r.Environment == nil {
		return
	}
	r.Activity.Tool, r.Environment.Model = clip.Runes(r.Activity.Tool, maxName), clip.Runes(r.Environment.Model, maxModel)
	for _, n := range []*int64{
		&r.Activity.Iterations, &r.Location.FilesRead, &r.Time.TurnsSinceProgress, &r.Time.ContextTurnsRemaining,
		&r.Environment.ContextTokens, &r.Environment.ContextTokensMax, &r.Environment.ToolFailures, &r.Environment.ToolFailuresInARow,
	} {
		*n = min(*n, maxNumber)
	}
}
