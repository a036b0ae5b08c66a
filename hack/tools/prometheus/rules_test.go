// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules checks config/prometheus/rules.yaml with Prometheus' own parser and engine. It is a module of its own,
// because nothing else of ours needs them.
package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const rulesFile = "../../../config/prometheus/rules.yaml"

func readRules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	data, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(data, false)
	for _, err := range errs {
		t.Error(err)
	}
	rules := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			rules[r.Alert] = r
		}
	}
	return rules
}

// scenario is what Prometheus has scraped, a sample each minute, and whether an alert is due after half an hour.
type scenario struct {
	alert string
	load  string
	fires int
}

func scenarios() map[string]scenario {
	// histogram gives the series of one with two buckets that matter: all samples, and those up to a bound.
	histogram := func(name, labels, bound, all, below string) string {
		return fmt.Sprintf("%s_count{%s} %s\n%s_bucket{%s,le=%q} %s\n%s_bucket{%s,le=\"+Inf\"} %s\n", name, labels, all, name, labels, bound, below, name, labels, all)
	}
	return map[string]scenario{
		"no streak of slow checkpoints": {"TidewaiterCheckpointsSlow", "tidewaiter_slow_checkpoint_streaks_total 4x60", 0},
		"a streak of slow checkpoints":  {"TidewaiterCheckpointsSlow", "tidewaiter_slow_checkpoint_streaks_total 0x20 1x40", 1},

		"few failures": {"TidewaiterValidationFailures", `tidewaiter_checkpoints_total{namespace="a",verdict="Valid"} 0+95x60
tidewaiter_checkpoints_total{namespace="a",verdict="Invalid"} 0+5x60`, 0},
		"many failures in one of two namespaces": {"TidewaiterValidationFailures", `tidewaiter_checkpoints_total{namespace="a",verdict="Valid",action="Promoted"} 0+8x60
tidewaiter_checkpoints_total{namespace="a",verdict="Invalid",action="Held"} 0+1x60
tidewaiter_checkpoints_total{namespace="a",verdict="Invalid",action="Reverted"} 0+1x60
tidewaiter_checkpoints_total{namespace="b",verdict="Valid"} 0+9x60
tidewaiter_checkpoints_total{namespace="b",verdict="Skipped"} 0+9x60`, 1},
		"too few checkpoints to say": {"TidewaiterValidationFailures", `tidewaiter_checkpoints_total{namespace="a",verdict="Valid"} 0x60
tidewaiter_checkpoints_total{namespace="a",verdict="Invalid"} 0x20 3x40`, 0},

		"volumes with room": {"TidewaiterVolumeFull", histogram("tidewaiter_volume_used_ratio", `volume="trusted"`, "0.8", "0+2x60", "0+2x60"), 0},
		"one volume of two fills": {"TidewaiterVolumeFull", histogram("tidewaiter_volume_used_ratio", `volume="trusted"`, "0.8", "0+2x60", "0+1x60") +
			histogram("tidewaiter_volume_used_ratio", `volume="workspace"`, "0.8", "0+2x60", "0+2x60"), 1},
		"a volume that was full": {"TidewaiterVolumeFull", histogram("tidewaiter_volume_used_ratio", `volume="trusted"`, "0.8", "9+2x60", "2+2x60"), 0},

		"memory within bounds": {"TidewaiterWatchdogMemory", histogram("tidewaiter_watchdog_memory_bytes", `pod="m"`, "5.36870912e+07", "0+2x60", "0+2x60"), 0},
		"a large watchdog":     {"TidewaiterWatchdogMemory", histogram("tidewaiter_watchdog_memory_bytes", `pod="m"`, "5.36870912e+07", "0+2x60", "0+1x60"), 1},

		"short queues":                      {"TidewaiterEventQueue", histogram("tidewaiter_watchdog_queue_length", `queue="changes"`, "1000", "0+2x60", "0+2x60"), 0},
		"a long queue":                      {"TidewaiterEventQueue", histogram("tidewaiter_watchdog_queue_length", `queue="changes"`, "1000", "0+2x60", "0+1x60"), 1},
		"a long queue, by a new Prometheus": {"TidewaiterEventQueue", histogram("tidewaiter_watchdog_queue_length", `queue="changes"`, "1000.0", "0+2x60", "0+1x60"), 1},

		"a ledger that has dropped nothing": {"TidewaiterLedgerFull", `tidewaiter_ledger_dropped_total{namespace="a",what="answers",pod="g1"} 5x60`, 0},
		"a ledger that drops what two Features have": {"TidewaiterLedgerFull", `tidewaiter_ledger_dropped_total{namespace="a",what="answers",pod="g1"} 0+2x60
tidewaiter_ledger_dropped_total{namespace="a",what="calls",pod="g2"} 0+2x60
tidewaiter_ledger_dropped_total{namespace="b",what="answers",pod="g1"} 0+1x60`, 2},

		"a model without prices that nobody uses": {"TidewaiterModelPriceMissing", `tidewaiter_model_price_missing{backend="a",model="m",pod="g1"} 1x60
tidewaiter_model_tokens_total{backend="a",model="priced",kind="input",pod="g1"} 0+9x60`, 0},
		"a model without prices, seen by two replicas": {"TidewaiterModelPriceMissing", `tidewaiter_model_price_missing{backend="a",model="m",pod="g1"} 1x60
tidewaiter_model_price_missing{backend="a",model="m",pod="g2"} 1x60
tidewaiter_model_tokens_total{backend="a",model="m",kind="input",pod="g1"} 0+9x60
tidewaiter_model_tokens_total{backend="a",model="m",kind="output",pod="g2"} 0+9x60`, 1},

		"all well": {"TidewaiterSupervisionDegraded", `tidewaiter_features{namespace="a",phase="Running"} 3x60`, 0},
		"two replicas see one degraded": {"TidewaiterSupervisionDegraded", `tidewaiter_features_degraded{namespace="a",reason="SupervisionDegraded",pod="m1"} 1x60
tidewaiter_features_degraded{namespace="a",reason="SupervisionDegraded",pod="m2"} 1x60`, 1},

		"reviews within their share": {"TidewaiterSupervisorCostly", `tidewaiter_features_supervisor_costly{namespace="a",pod="m1"} 0x60`, 0},
		"a costly supervisor in one of two namespaces, seen by two replicas": {"TidewaiterSupervisorCostly", `tidewaiter_features_supervisor_costly{namespace="a",pod="m1"} 1x60
tidewaiter_features_supervisor_costly{namespace="a",pod="m2"} 1x60
tidewaiter_features_supervisor_costly{namespace="b",pod="m1"} 0x60`, 1},

		"gates that fail": {"TidewaiterGateNotStarted", `tidewaiter_features_gates_failing{namespace="a",reason="GateFailed",pod="m1"} 1x60`, 0},
		"a gate that cannot be started, seen by two replicas": {"TidewaiterGateNotStarted", `tidewaiter_features_gates_failing{namespace="a",reason="GateNotStarted",pod="m1"} 1x60
tidewaiter_features_gates_failing{namespace="a",reason="GateNotStarted",pod="m2"} 1x60`, 1},

		"an agent that was told and has gone on": {"TidewaiterAgentInTrouble", `tidewaiter_features_in_trouble{namespace="a",condition="AgentLooping"} 0x10 1x8 0x40`, 0},
		"two kinds of trouble, seen by two replicas": {"TidewaiterAgentInTrouble", `tidewaiter_features_in_trouble{namespace="a",condition="AgentLooping",pod="m1"} 1x60
tidewaiter_features_in_trouble{namespace="a",condition="AgentLooping",pod="m2"} 1x60
tidewaiter_features_in_trouble{namespace="a",condition="AgentStalled",pod="m1"} 1x60`, 2},
	}
}

func TestAlerts(t *testing.T) {
	rules := readRules(t)
	fired := map[string]bool{}
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			rule, found := rules[s.alert]
			if !found {
				t.Fatalf("there is no alert %s", s.alert)
			}
			storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(strings.TrimSpace(s.load), "\n", "\n  ")+"\n")
			t.Cleanup(func() { _ = storage.Close() })
			engine := promqltest.NewTestEngine(t, false, 0, 100_000)
			at := time.Unix(0, 0).Add(30 * time.Minute)
			query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr, at)
			if err != nil {
				t.Fatal(err)
			}
			defer query.Close()
			vector, err := query.Exec(t.Context()).Vector()
			if err != nil || len(vector) != s.fires {
				t.Errorf("%d alerts (%v, %v), want %d", len(vector), vector, err, s.fires)
			}
			fired[s.alert] = fired[s.alert] || s.fires > 0
		})
	}
	for alert := range rules {
		if !fired[alert] {
			t.Errorf("no scenario lets %s fire", alert)
		}
	}
}
