// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reports makes reports as watchdogs send them.
package reports

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Noon is when the first report might have been made; each is a second after the one before it.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Time of a report.
func Time(sequence int64) time.Time { return Noon.Add(time.Duration(sequence) * time.Second) }

// Kinds of what is reported.
type kind interface {
	protocol.StatusReport | protocol.CheckpointReport | protocol.RequestReport | protocol.FinalReport | protocol.Acknowledgment | protocol.CheckpointFailure | protocol.KnowledgeReport
}

// New is a report of something.
func New[K kind](epoch, sequence int64, what K) protocol.Report {
	r := protocol.Report{Epoch: epoch, Sequence: sequence, Time: Time(sequence)}
	switch what := any(what).(type) {
	case protocol.StatusReport:
		r.Status = &what
	case protocol.CheckpointReport:
		r.Checkpoint = &what
	case protocol.RequestReport:
		r.Request = &what
	case protocol.FinalReport:
		r.Final = &what
	case protocol.Acknowledgment:
		r.Acknowledged = &what
	case protocol.CheckpointFailure:
		r.Failed = &what
	case protocol.KnowledgeReport:
		r.Knowledge = &what
	}
	return r
}

// Taken is a checkpoint of this number; an invalid one breaks three rules, and lists one of them.
func Taken(sequence int64, verdict protocol.Verdict) protocol.CheckpointReport {
	c := protocol.CheckpointReport{
		Sequence: sequence, Previous: sequence - 1, Trigger: protocol.TriggerInterval, CapturedAt: Noon.Add(time.Duration(sequence) * time.Minute),
		Tree: ID(sequence), Settled: true, Verdict: verdict, Action: protocol.ActionPromoted,
	}
	if verdict == protocol.Invalid {
		c.Action, c.Severity, c.ViolationCount = protocol.ActionHeld, policy.Error, 3
		c.Violations = []protocol.Violation{{Rule: "forbidden-areas", Path: "web/legacy/a b", Severity: policy.Error, Message: "may not change", Suggestion: "undo it"}}
	}
	return c
}

// ID is an object id.
func ID(n int64) string { return fmt.Sprintf("%040x", n) }

// Encode is a batch as it is sent.
func Encode(t testing.TB, all ...protocol.Report) []byte {
	t.Helper()
	body, err := json.Marshal(protocol.ReportBatch{Version: protocol.Version, Reports: all})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
