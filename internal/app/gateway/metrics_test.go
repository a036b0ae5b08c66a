// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	coreledger "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	hostbackends "github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/kube/metrics"
)

// TestEveryMetricIsServed: the reference lists what the gateway registers, and nothing else.
func TestEveryMetricIsServed(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if _, err := newMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(registry, metrics.BackendsBroken.Name, metrics.ConnectionSeconds.Name); err != nil || n != 2 {
		t.Errorf("%d of 2 metrics without labels are there from the beginning: %v", n, err)
	}
	for _, d := range metrics.Gateway() {
		if again := registry.Register(d.Counter()); again == nil {
			t.Errorf("%s is in the reference, and not served", d.Name)
		}
	}
	if n := len(newInstruments().all()); n != len(metrics.Gateway()) {
		t.Errorf("%d metrics are served, and %d are in the reference", n, len(metrics.Gateway()))
	}
}

// TestModelsWithoutPrices have a metric while they are configured.
func TestModelsWithoutPrices(t *testing.T) {
	m := newInstruments()
	for _, prices := range []coremodels.Prices{{}, {Rates: coremodels.Rates{Input: "0", Output: "0"}}} {
		table, err := modelserver.NewTable(coremodels.Config{Backends: []coremodels.Backend{{
			Name: "house", Dialects: []string{"openai-chat"}, BaseURL: "http://models.example.com", Models: []coremodels.Model{{Name: "large", Prices: prices}},
		}}}, nil, hostbackends.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.configured(table)
		m.configured(nil) // a broken configuration changes nothing
		want := ""
		if !prices.Known() {
			want = "# HELP tidewaiter_model_price_missing " + metrics.ModelUnpriced.Help + "\n# TYPE tidewaiter_model_price_missing gauge\n" +
				`tidewaiter_model_price_missing{backend="house",model="large"} 1` + "\n"
		}
		if err := testutil.CollectAndCompare(m.unpriced, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		table.Close()
	}
}

// TestWhatTheLedgerDropsIsCounted by project.
func TestWhatTheLedgerDropsIsCounted(t *testing.T) {
	m := newInstruments()
	m.dropped(ledger.Dropped{Owner: ledger.Owner{Namespace: "shop"}, Answers: 3, Bytes: 9})
	m.dropped(ledger.Dropped{Owner: ledger.Owner{Namespace: "shop"}, Answers: 1, Calls: 2})
	want := "# HELP tidewaiter_ledger_dropped_total " + metrics.LedgerDropped.Help + "\n# TYPE tidewaiter_ledger_dropped_total counter\n" +
		`tidewaiter_ledger_dropped_total{namespace="shop",what="answers"} 4` + "\n" + `tidewaiter_ledger_dropped_total{namespace="shop",what="calls"} 2` + "\n"
	if err := testutil.CollectAndCompare(m.ledgerDropped, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestHistoryIsCounted by project. Names that a watchdog makes up are not labels, and neither are tasks and gates.
func TestHistoryIsCounted(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []protocol.HistoryEntry{
		{Kind: protocol.HistoryGate, Event: "Passed", Task: "a", Name: "unit", Duration: 1500}, {Kind: protocol.HistoryGate, Event: "Passed", Task: "b", Name: "lint", Duration: -1},
		{Kind: protocol.HistoryGate, Event: "NotStarted", Name: "unit", Duration: 9}, {Kind: protocol.HistoryGate, Event: "mine", Name: "unit", Duration: 9},
		{Kind: protocol.HistoryTask, Event: protocol.HistoryCorrected, Cause: protocol.CauseGate}, {Kind: protocol.HistoryTask, Event: protocol.HistoryRestarted, Cause: protocol.CauseSteering},
		{Kind: protocol.HistoryTask, Event: protocol.HistoryAdded, Cause: "mine"}, {Kind: protocol.HistoryTask, Event: protocol.HistoryBegun}, {Kind: "mine", Event: "mine"},
		{Kind: protocol.HistoryPlan, Event: protocol.HistoryProposed}, {Kind: protocol.HistoryPlan, Event: "mine"},
		{Kind: protocol.HistoryReview, Event: protocol.ReviewSkipped, Name: protocol.SourceDesign}, {Kind: protocol.HistoryReview, Event: "mine", Name: "mine", Findings: &protocol.Findings{Kept: -3}},
		{Kind: protocol.HistoryReview, Event: protocol.ReviewMinorDrift, Name: protocol.SourceDesign, Findings: &protocol.Findings{Kept: 2, Discarded: []string{"Known", "Known", "mine"}}},
		{Kind: protocol.HistoryReviewQuestion, Event: protocol.HistoryAsked, Name: protocol.SourceDesign},
		{Kind: protocol.HistoryReview, Event: protocol.ReviewAligned, Name: "custom/licenses"}, {Kind: protocol.HistoryReview, Event: protocol.ReviewAligned, Name: "custom/copyright"},
		{Kind: protocol.HistoryReview, Event: protocol.ReviewAligned, Name: "custom/No name"},
	} {
		m.happened("shop", e)
	}
	m.handed(protocol.HistoryPath, resultRecorded)
	want := `
# HELP tidewaiter_gates_total ` + metrics.GatesRun.Help + `
# TYPE tidewaiter_gates_total counter
tidewaiter_gates_total{namespace="shop",place="Delivery",state="NotStarted"} 1
tidewaiter_gates_total{namespace="shop",place="Delivery",state="Other"} 1
tidewaiter_gates_total{namespace="shop",place="Task",state="Passed"} 2
# HELP tidewaiter_history_records_total ` + metrics.HistoryRecorded.Help + `
# TYPE tidewaiter_history_records_total counter
tidewaiter_history_records_total{result="Recorded"} 1
# HELP tidewaiter_plans_total ` + metrics.PlansMade.Help + `
# TYPE tidewaiter_plans_total counter
tidewaiter_plans_total{namespace="shop",outcome="Proposed"} 1
tidewaiter_plans_total{namespace="shop",outcome="Unavailable"} 1
# HELP tidewaiter_review_findings_total ` + metrics.ReviewFindings.Help + `
# TYPE tidewaiter_review_findings_total counter
tidewaiter_review_findings_total{namespace="shop",result="Kept",reviewer="Design"} 2
tidewaiter_review_findings_total{namespace="shop",result="Known",reviewer="Design"} 2
tidewaiter_review_findings_total{namespace="shop",result="Other",reviewer="Design"} 1
# HELP tidewaiter_reviews_total ` + metrics.Reviews.Help + `
# TYPE tidewaiter_reviews_total counter
tidewaiter_reviews_total{namespace="shop",outcome="MinorDrift",reviewer="Design"} 1
tidewaiter_reviews_total{namespace="shop",outcome="Aligned",reviewer="Other"} 1
tidewaiter_reviews_total{namespace="shop",outcome="Aligned",reviewer="custom"} 2
tidewaiter_reviews_total{namespace="shop",outcome="Other",reviewer="Other"} 1
tidewaiter_reviews_total{namespace="shop",outcome="Skipped",reviewer="Design"} 1
# HELP tidewaiter_task_corrections_total ` + metrics.Corrections.Help + `
# TYPE tidewaiter_task_corrections_total counter
tidewaiter_task_corrections_total{cause="Gate",namespace="shop"} 1
tidewaiter_task_corrections_total{cause="Other",namespace="shop"} 1
tidewaiter_task_corrections_total{cause="Steering",namespace="shop"} 1
`
	names := []string{metrics.GatesRun.Name, metrics.HistoryRecorded.Name, metrics.PlansMade.Name, metrics.Reviews.Name, metrics.ReviewFindings.Name, metrics.Corrections.Name}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(m.gateTime); n != 1 {
		t.Errorf("%d series of seconds, want that of tasks", n)
	}
}

// TestStepsAreCounted by what they are about. Names that a watchdog makes up are not labels.
func TestStepsAreCounted(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []protocol.SteeringStep{
		{Anomaly: "AgentLooping", Rung: "Nudge"}, {Anomaly: "AgentLooping", Rung: "Nudge"}, {Anomaly: "AgentLooping", Rung: "Nudge", Over: true}, {Anomaly: "mine", Rung: "mine"},
	} {
		m.step(s)
	}
	want := `
# HELP tidewaiter_steering_steps_total ` + metrics.SteeringSteps.Help + `
# TYPE tidewaiter_steering_steps_total counter
tidewaiter_steering_steps_total{anomaly="AgentLooping",rung="Nudge"} 2
tidewaiter_steering_steps_total{anomaly="AgentLooping",rung="Over"} 1
tidewaiter_steering_steps_total{anomaly="Other",rung="Other"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), metrics.SteeringSteps.Name); err != nil {
		t.Error(err)
	}
}

// TestCallsAreCountedByRole and project. A call of nobody, or one that has used nothing, makes no series.
func TestCallsAreCountedByRole(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []modelserver.Outcome{
		{Feature: "shop/login", Role: "supervisor", Tokens: coreledger.Tokens{Input: 7, Cached: 2, Output: 1}, Cost: 1_500_000}, {Feature: "shop/other", Role: "supervisor", Tokens: coreledger.Tokens{Output: 2}},
		{Feature: "shop/login", Role: "primary", Tokens: coreledger.Tokens{Input: 90}}, {Feature: "shop/login", Role: "summarizer"}, {Tokens: coreledger.Tokens{Input: 90}},
	} {
		m.call(r)
	}
	want := `
# HELP tidewaiter_role_cost_total ` + metrics.RoleCost.Help + `
# TYPE tidewaiter_role_cost_total counter
tidewaiter_role_cost_total{namespace="shop",role="primary"} 0
tidewaiter_role_cost_total{namespace="shop",role="supervisor"} 1.5
# HELP tidewaiter_role_tokens_total ` + metrics.RoleTokens.Help + `
# TYPE tidewaiter_role_tokens_total counter
tidewaiter_role_tokens_total{namespace="shop",role="primary"} 90
tidewaiter_role_tokens_total{namespace="shop",role="supervisor"} 12
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), metrics.RoleCost.Name, metrics.RoleTokens.Name); err != nil {
		t.Error(err)
	}
}
