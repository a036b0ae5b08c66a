// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/metrics"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newReports(t *testing.T) (*metrics.Reports, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	r, err := metrics.NewReports(registry)
	if err != nil {
		t.Fatal(err)
	}
	return r, registry
}

func wantMetrics(t *testing.T, g prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(g, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestCheckpointsAreCounted(t *testing.T) {
	r, registry := newReports(t)
	good := protocol.CheckpointReport{
		Settled: true, Verdict: protocol.Valid, Action: protocol.ActionPromoted, Trigger: protocol.TriggerInterval,
		CaptureTime: 20 * time.Millisecond, SyncTime: 4 * time.Millisecond, JudgeTime: 60 * time.Millisecond, ActTime: 30 * time.Millisecond,
		Vitals: protocol.Vitals{Memory: 20 << 20, Descriptors: 30, EventDelay: 21 * time.Millisecond, Trusted: protocol.VolumeUse{Used: 81, Size: 100}, Changed: 7, Refused: 2, Read: 7, Files: 100, JudgedKnown: 3, JudgedFresh: 1},
	}
	bad := good
	bad.Verdict, bad.Action, bad.Frozen, bad.FrozenFor = protocol.Invalid, protocol.ActionHeld, true, 3*time.Millisecond
	bad.Violations = []protocol.Violation{{Rule: "forbidden-areas", Severity: policy.Error}, {Rule: "no-big-sql", Severity: policy.Error}, {Rule: "no-big-js", Severity: "Grave"}}
	bad.Rollback = &protocol.RollbackReport{Cause: protocol.RollbackByViolation}
	unsettled := good
	unsettled.Settled, unsettled.Action, unsettled.Vitals.SlowInARow = false, protocol.ActionHeld, 3
	var stored []protocol.Report
	for _, c := range []protocol.CheckpointReport{good, good, bad, unsettled} {
		stored = append(stored, protocol.Report{Time: now.Add(-40 * time.Millisecond), Checkpoint: &c})
	}
	for _, f := range []protocol.CheckpointFailure{{Trigger: protocol.TriggerInterval, Reason: protocol.ReasonVolumeFull}, {Trigger: protocol.TriggerInterval, Reason: protocol.ReasonVolumeFull}, {Trigger: protocol.TriggerFinal, Reason: "Odd"}} {
		stored = append(stored, protocol.Report{Time: now, Failed: &f})
	}
	r.Observe("shop", stored, now)
	wantMetrics(t, registry, `
# HELP tidewaiter_checkpoint_failures_total Checkpoints that the watchdog could not capture or check. The next one does their work.
# TYPE tidewaiter_checkpoint_failures_total counter
tidewaiter_checkpoint_failures_total{namespace="shop",reason="VolumeFull",trigger="Interval"} 2
tidewaiter_checkpoint_failures_total{namespace="shop",reason="other",trigger="Final"} 1
# HELP tidewaiter_checkpoints_total Recorded checkpoints.
# TYPE tidewaiter_checkpoints_total counter
tidewaiter_checkpoints_total{action="Held",namespace="shop",trigger="Interval",verdict="Invalid"} 1
tidewaiter_checkpoints_total{action="Held",namespace="shop",trigger="Interval",verdict="Unsettled"} 1
tidewaiter_checkpoints_total{action="Promoted",namespace="shop",trigger="Interval",verdict="Valid"} 2
# HELP tidewaiter_rollbacks_total Number of times that a workspace, or a part of it, went back.
# TYPE tidewaiter_rollbacks_total counter
tidewaiter_rollbacks_total{cause="Violation",namespace="shop"} 1
# HELP tidewaiter_violations_total Violations in recorded checkpoints, the eight worst of each.
# TYPE tidewaiter_violations_total counter
tidewaiter_violations_total{rule="forbidden-areas",severity="Error"} 1
tidewaiter_violations_total{rule="other",severity="Error"} 1
tidewaiter_violations_total{rule="other",severity="other"} 1
# HELP tidewaiter_holds_total Checkpoints by how they held the workspace still, and whether they could.
# TYPE tidewaiter_holds_total counter
tidewaiter_holds_total{frozen="false",settled="false"} 1
tidewaiter_holds_total{frozen="false",settled="true"} 2
tidewaiter_holds_total{frozen="true",settled="true"} 1
# HELP tidewaiter_captured_files_total Files in captured workspaces: files that the watchdog read, and files that it knew from before.
# TYPE tidewaiter_captured_files_total counter
tidewaiter_captured_files_total{source="known"} 372
tidewaiter_captured_files_total{source="read"} 28
# HELP tidewaiter_judged_files_total Changed files that the watchdog checked: files that it looked at, and files that it knew from the check before.
# TYPE tidewaiter_judged_files_total counter
tidewaiter_judged_files_total{source="known"} 12
tidewaiter_judged_files_total{source="read"} 4
# HELP tidewaiter_slow_checkpoint_streaks_total Number of times that three checkpoints of one Feature in a row took more than 2 seconds each.
# TYPE tidewaiter_slow_checkpoint_streaks_total counter
tidewaiter_slow_checkpoint_streaks_total 1
# HELP tidewaiter_refused_reports_total Reports that the manager will never take, because they are too large or wrong. The next checkpoint of their Feature counts them. They stay in the trusted volume, and the watchdog continues with the next one.
# TYPE tidewaiter_refused_reports_total counter
tidewaiter_refused_reports_total{namespace="shop"} 8
# HELP tidewaiter_freeze_seconds How long freezes of agents took, for checkpoints that froze the agent, in seconds.
# TYPE tidewaiter_freeze_seconds histogram
tidewaiter_freeze_seconds_bucket{le="0.001"} 0
tidewaiter_freeze_seconds_bucket{le="0.0025"} 0
tidewaiter_freeze_seconds_bucket{le="0.005"} 1
tidewaiter_freeze_seconds_bucket{le="0.01"} 1
tidewaiter_freeze_seconds_bucket{le="0.025"} 1
tidewaiter_freeze_seconds_bucket{le="0.05"} 1
tidewaiter_freeze_seconds_bucket{le="0.1"} 1
tidewaiter_freeze_seconds_bucket{le="0.25"} 1
tidewaiter_freeze_seconds_bucket{le="0.5"} 1
tidewaiter_freeze_seconds_bucket{le="1"} 1
tidewaiter_freeze_seconds_bucket{le="5"} 1
tidewaiter_freeze_seconds_bucket{le="10"} 1
tidewaiter_freeze_seconds_bucket{le="+Inf"} 1
tidewaiter_freeze_seconds_sum 0.003
tidewaiter_freeze_seconds_count 1
# HELP tidewaiter_watchdog_open_descriptors File descriptors that watchdogs had open when they took checkpoints.
# TYPE tidewaiter_watchdog_open_descriptors histogram
tidewaiter_watchdog_open_descriptors_bucket{le="16"} 0
tidewaiter_watchdog_open_descriptors_bucket{le="32"} 4
tidewaiter_watchdog_open_descriptors_bucket{le="64"} 4
tidewaiter_watchdog_open_descriptors_bucket{le="128"} 4
tidewaiter_watchdog_open_descriptors_bucket{le="256"} 4
tidewaiter_watchdog_open_descriptors_bucket{le="512"} 4
tidewaiter_watchdog_open_descriptors_bucket{le="1024"} 4
tidewaiter_watchdog_open_descriptors_bucket{le="+Inf"} 4
tidewaiter_watchdog_open_descriptors_sum 120
tidewaiter_watchdog_open_descriptors_count 4
# HELP tidewaiter_event_delay_seconds Longest time from a change in a workspace until its watchdog knew of the path, in seconds, for each checkpoint since the one before. The watchdog measures it by the ctime of files.
# TYPE tidewaiter_event_delay_seconds histogram
tidewaiter_event_delay_seconds_bucket{le="0.005"} 0
tidewaiter_event_delay_seconds_bucket{le="0.01"} 0
tidewaiter_event_delay_seconds_bucket{le="0.02"} 0
tidewaiter_event_delay_seconds_bucket{le="0.03"} 4
tidewaiter_event_delay_seconds_bucket{le="0.05"} 4
tidewaiter_event_delay_seconds_bucket{le="0.1"} 4
tidewaiter_event_delay_seconds_bucket{le="0.25"} 4
tidewaiter_event_delay_seconds_bucket{le="0.5"} 4
tidewaiter_event_delay_seconds_bucket{le="1"} 4
tidewaiter_event_delay_seconds_bucket{le="5"} 4
tidewaiter_event_delay_seconds_bucket{le="+Inf"} 4
tidewaiter_event_delay_seconds_sum 0.084
tidewaiter_event_delay_seconds_count 4
`, "tidewaiter_watchdog_open_descriptors", "tidewaiter_event_delay_seconds", "tidewaiter_checkpoint_failures_total", "tidewaiter_checkpoints_total", "tidewaiter_rollbacks_total", "tidewaiter_violations_total", "tidewaiter_holds_total", "tidewaiter_captured_files_total", "tidewaiter_judged_files_total",
		"tidewaiter_slow_checkpoint_streaks_total", "tidewaiter_refused_reports_total", "tidewaiter_freeze_seconds")
}

// TestSeriesAreBounded: whatever a pod says of itself, it makes no series of its own.
func TestSeriesAreBounded(t *testing.T) {
	r, registry := newReports(t)
	for i := range 100 {
		odd := strings.Repeat("x", i)
		r.Observe("shop", []protocol.Report{
			{Time: now.Add(time.Hour), Checkpoint: &protocol.CheckpointReport{
				Settled: true, Verdict: protocol.Verdict(odd), Action: odd, Trigger: odd, CaptureTime: -1, FrozenFor: -1, Frozen: true,
				Violations: []protocol.Violation{{Rule: odd, Severity: policy.Severity(odd)}},
				Vitals:     protocol.Vitals{Memory: -1, Descriptors: -1, EventDelay: -1, Read: -5, Files: -9, JudgedKnown: -1, JudgedFresh: -1, Changed: -1, Refused: -1, SlowInARow: -3},
			}},
			{Final: &protocol.FinalReport{Outcome: odd}}, {Failed: &protocol.CheckpointFailure{Trigger: odd, Reason: odd}}, {Status: &protocol.StatusReport{State: odd}}, {},
		}, now)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, f := range families {
		series += len(f.GetMetric())
	}
	if series > 30 {
		t.Errorf("%d series", series)
	}
}

// reader gives a list of Features.
type reader struct {
	client.Reader
	items []v1alpha1.Feature
	err   error
}

func (r reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.FeatureList).Items = r.items
	return r.err
}

func TestFeaturesAreCounted(t *testing.T) {
	feature := func(namespace string, phase v1alpha1.Phase, supervised string) v1alpha1.Feature {
		return v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Status: v1alpha1.FeatureStatus{Phase: phase,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSupervised, Reason: supervised}}}}
	}
	looping := feature("a", v1alpha1.PhaseRunning, v1alpha1.ReasonConnected)
	looping.Status.Conditions = append(looping.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAgentLooping, Status: metav1.ConditionTrue},
		metav1.Condition{Type: v1alpha1.ConditionAgentStalled, Status: metav1.ConditionFalse})
	looping.Status.Conditions = append(looping.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionGatesPassed, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonGateNotStarted})
	asking, answered, guessing := feature("a", v1alpha1.PhaseAwaitingInput, v1alpha1.ReasonConnected), feature("a", v1alpha1.PhaseRunning, v1alpha1.ReasonConnected), feature("b", v1alpha1.PhaseRunning, v1alpha1.ReasonConnected)
	for f, guess := range map[*v1alpha1.Feature]bool{&asking: false, &answered: false, &guessing: true} {
		f.Status.Run = &v1alpha1.RunStatus{Question: &v1alpha1.Question{ID: "q1", Text: "Which color?", Guess: guess}}
		f.Status.Conditions = append(f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionGatesPassed, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonGatesPending})
	}
	looping.Status.Run = &v1alpha1.RunStatus{Directives: []v1alpha1.DirectiveStatus{
		{ID: "a", Source: "Design", State: "Pending"}, {ID: "b", Source: "Design", State: "Pending"}, {ID: "c", Source: "CodeStyle", State: "Escalated"}, {ID: "d", Source: "Person", State: "Active"},
		{ID: "e", Source: "custom/licenses", State: "Pending"}, {ID: "f", Source: "custom/queries", State: "Pending"},
	}}
	done := feature("b", v1alpha1.PhaseDelivered, v1alpha1.ReasonConnected)
	for _, f := range []*v1alpha1.Feature{&looping, &done} {
		f.Status.Conditions = append(f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSupervisorCostInBounds, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSupervisorCostHigh})
	}
	answered.Spec.Answers = []v1alpha1.Answer{{Question: "q1", Text: "Blue."}}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.Features{Reader: reader{items: []v1alpha1.Feature{
		looping, asking, answered, guessing, done,
		feature("a", v1alpha1.PhaseRunning, v1alpha1.ReasonConnected), feature("a", v1alpha1.PhaseRunning, v1alpha1.ReasonSupervisionDegraded),
		feature("b", v1alpha1.PhaseRunning, v1alpha1.ReasonHeartbeatMissing), feature("b", "", v1alpha1.ReasonNotYetReported),
	}}})
	wantMetrics(t, registry, `
# HELP tidewaiter_features Features by phase. Every replica reports the same value: use the maximum.
# TYPE tidewaiter_features gauge
tidewaiter_features{namespace="a",phase="AwaitingInput"} 1
tidewaiter_features{namespace="a",phase="Running"} 4
tidewaiter_features{namespace="b",phase="Delivered"} 1
tidewaiter_features{namespace="b",phase="Pending"} 1
tidewaiter_features{namespace="b",phase="Running"} 2
# HELP tidewaiter_features_degraded Features whose watchdog works around a problem of its own, or sends nothing. Every replica reports the same value: use the maximum.
# TYPE tidewaiter_features_degraded gauge
tidewaiter_features_degraded{namespace="a",reason="SupervisionDegraded"} 1
tidewaiter_features_degraded{namespace="b",reason="HeartbeatMissing"} 1
# HELP tidewaiter_features_gates_failing Features whose condition GatesPassed is False. Every replica reports the same value: use the maximum.
# TYPE tidewaiter_features_gates_failing gauge
tidewaiter_features_gates_failing{namespace="a",reason="GateNotStarted"} 1
# HELP tidewaiter_features_in_trouble Features whose agent is stuck or in trouble. Every replica reports the same value: use the maximum.
# TYPE tidewaiter_features_in_trouble gauge
tidewaiter_features_in_trouble{condition="AgentLooping",namespace="a"} 1
# HELP tidewaiter_features_questions_open Features with a question of the agent that nobody has answered. Every replica reports the same value: use the maximum.
# TYPE tidewaiter_features_questions_open gauge
tidewaiter_features_questions_open{namespace="a",waits="true"} 1
tidewaiter_features_questions_open{namespace="b",waits="false"} 1
# HELP tidewaiter_features_supervisor_costly Features that are not over and whose condition SupervisorCostInBounds is False. Every replica reports the same value: use the maximum.
# TYPE tidewaiter_features_supervisor_costly gauge
tidewaiter_features_supervisor_costly{namespace="a"} 1
# HELP tidewaiter_review_directives Directives of reviewers in the status of Features, by how far they are. Every replica reports the same value: use the maximum.
# TYPE tidewaiter_review_directives gauge
tidewaiter_review_directives{namespace="a",reviewer="CodeStyle",state="Escalated"} 1
tidewaiter_review_directives{namespace="a",reviewer="Design",state="Pending"} 2
tidewaiter_review_directives{namespace="a",reviewer="custom",state="Pending"} 2
`)
	failing := prometheus.NewPedanticRegistry()
	failing.MustRegister(metrics.Features{Reader: reader{err: errors.New("no cache")}})
	if _, err := failing.Gather(); err == nil {
		t.Error("Features that cannot be counted are none")
	}
}

func TestDefinitions(t *testing.T) {
	name := regexp.MustCompile(`^tidewaiter_[a-z_]+$`)
	seen := map[string]bool{}
	for _, d := range slices.Concat(metrics.Manager(), metrics.Gateway()) {
		if !name.MatchString(d.Name) || seen[d.Name] || !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%q: %q", d.Name, d.Help)
		}
		seen[d.Name] = true
		if counter := strings.HasSuffix(d.Name, "_total"); counter != (d.Kind == metrics.Counter) || (len(d.Buckets) > 0) != (d.Kind == metrics.Histogram) {
			t.Errorf("%s is a %s with %d buckets", d.Name, d.Kind, len(d.Buckets))
		}
	}
	registry := prometheus.NewPedanticRegistry()
	if _, err := metrics.NewReports(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !seen[f.GetName()] {
			t.Errorf("%s is not among the definitions", f.GetName())
		}
	}
}
