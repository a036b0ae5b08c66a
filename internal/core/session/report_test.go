// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestHealth is what is seen: a plan that has failed twice is critical; anything that is wrong, and two failures in a row, are less.
func TestHealth(t *testing.T) {
	wrong := []protocol.Anomaly{{Type: "AgentLooping"}}
	for _, tc := range []struct {
		seen protocol.Conversation
		want string
	}{
		{protocol.Conversation{}, protocol.HealthNominal},
		{protocol.Conversation{Pace: protocol.PacePrimary, ToolFailures: 9}, protocol.HealthNominal},
		{protocol.Conversation{ToolFailuresInARow: 1}, protocol.HealthNominal},
		{protocol.Conversation{ToolFailuresInARow: 2}, protocol.HealthDegraded},
		{protocol.Conversation{Anomalies: wrong}, protocol.HealthDegraded},
		{protocol.Conversation{Pace: protocol.PaceAlternate, Anomalies: wrong}, protocol.HealthDegraded},
		{protocol.Conversation{Pace: protocol.PaceContingent, Anomalies: wrong}, protocol.HealthCritical},
		{protocol.Conversation{Pace: protocol.PaceEmergency, Anomalies: wrong, ToolFailuresInARow: 9}, protocol.HealthCritical},
	} {
		if got := health(&tc.seen); got != tc.want {
			t.Errorf("%+v is %s, want %s", tc.seen, got, tc.want)
		}
	}
}
