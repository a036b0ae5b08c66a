// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/schema"
)

// texts are of every length, and of characters that take most bytes in JSON.
func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		unit := rapid.SampledFrom([]string{"x", "<", "\x01", "\u2028", "\U0001F600", "\xff", "\ue000", "ü "}).Draw(t, "unit")
		return strings.Repeat(unit, rapid.SampledFrom([]int{1, 40, 63, 64, 65, 128, 129, 256, 1023, 1024, 1025, 5000}).Draw(t, "n"))
	})
}

// TestNoRunIsRefused: whatever watchdogs report, what is made of it is a status that the API server takes.
func TestNoRunIsRefused(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text := texts()
	rapid.Check(t, func(t *rapid.T) {
		status := &protocol.StatusReport{State: rapid.SampledFrom(append(protocol.States(), "Bored")).Draw(t, "state"), Task: text.Draw(t, "task"), Problems: rapid.SliceOfN(text, 0, 12).Draw(t, "problems")}
		status.BudgetWarning, status.SupervisorCostWarning = text.Draw(t, "warning"), text.Draw(t, "cost of the supervisor")
		status.Usage = &protocol.Usage{Calls: rapid.Int64Min(0).Draw(t, "calls"), Cost: text.Draw(t, "cost")}
		big := rapid.Int64Min(0)
		status.Conversation = &protocol.Conversation{
			Turn: big.Draw(t, "turn"), Anomalies: []protocol.Anomaly{{Type: v1alpha1.ConditionAgentStalled, Turn: big.Draw(t, "since"), Since: at, Message: text.Draw(t, "evidence")}},
			Pace: protocol.PaceEmergency, Health: protocol.HealthCritical, Tool: text.Draw(t, "tool"), Iterations: big.Draw(t, "iterations"), Model: text.Draw(t, "model"),
			ContextTokens: big.Draw(t, "tokens"), Window: big.Draw(t, "window"), ContextTurns: big.Draw(t, "turns"), ToolFailures: big.Draw(t, "failures"), FixedInTime: big.Draw(t, "fixed"),
		}
		said := text.Draw(t, "said")
		for n := range rapid.SampledFrom([]int{0, 1, protocol.MaxDirectives}).Draw(t, "directives") {
			status.Directives = append(status.Directives, protocol.DirectiveStatus{
				ID: fmt.Sprintf("%0128d", n), Source: protocol.SourcePerson, State: protocol.DirectiveActive, Age: rapid.IntRange(0, 1<<40).Draw(t, "age"), Message: said,
			})
		}
		for n := range rapid.SampledFrom([]int{0, 1, protocol.MaxReviews}).Draw(t, "reviews") {
			status.Reviews = append(status.Reviews, protocol.ReviewStatus{Reviewer: protocol.SourceDesign, Task: said, Outcome: protocol.ReviewMinorDrift, Directives: n % 12, Summary: said, Time: at})
		}
		if rapid.Bool().Draw(t, "reviewed") {
			for i := range status.Directives[:min(len(status.Directives), 8)] {
				d := &status.Directives[i]
				d.Source, d.Type, d.Priority, d.Description, d.Rationale = protocol.SourceCodeStyle, protocol.DirectiveCleanup, protocol.PriorityLow, said, said
				d.Files = slices.Repeat([]string{said}, rapid.SampledFrom([]int{0, 1, 20}).Draw(t, "files"))
			}
		}
		name, message := text.Draw(t, "name"), text.Draw(t, "result")
		room := protocol.MaxReportBytes / (100 + len(name) + len(message)) // the intake takes no more
		for n := range min(room, rapid.SampledFrom([]int{0, 1, 2048}).Draw(t, "tasks")) {
			status.Tasks = append(status.Tasks, protocol.TaskStatus{Name: fmt.Sprintf("%d%s", n, name), State: protocol.TaskAborted, Corrections: n, Message: message})
		}
		if rapid.Bool().Draw(t, "stuck") {
			status.Fault = &protocol.Fault{Reason: text.Draw(t, "reason"), Message: text.Draw(t, "message")}
			status.Question = &protocol.Question{ID: text.Draw(t, "id"), Text: text.Draw(t, "text")}
		}
		checkpoint := &protocol.CheckpointReport{
			Sequence: 1, Trigger: protocol.TriggerFinal, CapturedAt: at, Settled: rapid.Bool().Draw(t, "settled"), UnsettledReason: text.Draw(t, "unsettled"),
			Verdict: protocol.Invalid, Action: protocol.ActionHeld, ViolationCount: 1,
			Transient:  &protocol.Transient{Names: rapid.SliceOfN(text, 0, 40).Draw(t, "transient"), More: 1},
			Violations: []protocol.Violation{{Rule: text.Draw(t, "rule"), Path: text.Draw(t, "path"), Message: text.Draw(t, "violation"), Suggestion: text.Draw(t, "suggestion"), Severity: policy.Error}},
		}
		all := []protocol.Report{{Epoch: 1, Sequence: 1, Time: at, Status: status}, {Epoch: 1, Sequence: 2, Time: at, Checkpoint: checkpoint}}
		for n := range int64(rapid.SampledFrom([]int{0, 70}).Draw(t, "requests")) {
			all = append(all, protocol.Report{Epoch: 1, Sequence: 3 + n, Time: at, Request: &protocol.RequestReport{ID: fmt.Sprintf("%063d", n), Message: message}})
		}
		all = append(all, protocol.Report{Epoch: 1, Sequence: 200, Time: at, Final: &protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: text.Draw(t, "why"), Message: text.Draw(t, "last"), Paths: rapid.SliceOfN(text, 0, 300).Draw(t, "paths"), PathCount: 1 << 60, TaskFailures: 101}})
		body, err := json.Marshal(protocol.ReportBatch{Version: protocol.Version, Reports: all})
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := Decode(body)
		if err != nil {
			return // refused as a report, and said so
		}
		run := Bound(Fold(v1alpha1.RunStatus{}, "login", 1, decoded))
		if err := schema.Refusal(v1alpha1.FeatureStatus{Run: &run}); err != nil {
			t.Fatal(err)
		}
		if n := runSize(run); n > maxRunBytes {
			t.Fatalf("a run of %d bytes", n)
		}
	})
}
