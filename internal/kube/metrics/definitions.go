// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics declares all Prometheus metrics of Tidewaiter, and turns reports of watchdogs into metrics of the manager: Prometheus
// never scrapes an agent's pod. Labels are bounded: a namespace at most, never a Feature.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Kind of a metric, as Prometheus has it.
type Kind string

// Kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Label of a metric.
type Label struct {
	Name string
	// Values that it takes, in words.
	Values string
}

// Definition declares one metric; docs/reference/metrics.md is made from it.
type Definition struct {
	Name   string
	Kind   Kind
	Labels []Label
	// Help says what the metric counts, and in which unit.
	Help string
	// Buckets of a histogram, upper bounds.
	Buckets []float64
}

// Full is the used share of a volume or of memory from which on an alert fires.
const Full = 0.8

var (
	namespaceLabel = Label{"namespace", "of the Feature"}
	reviewerLabel  = Label{"reviewer", reviewers + ", Other"}

	// reviewers as a label has them: see Reviewer.
	reviewers = strings.Join(protocol.Reviewers(), ", ") + ", " + customReviewer + " (any that a policy defines)"
	// triggers of checkpoints, as a label has them.
	triggers = "Interval, Changes, Task, Requested, Final, Patch, Steering, other"
	// seconds are the buckets of durations that people wait for; 0.5 and 2 are target and limit of a checkpoint, 1 and 5 of judging.
	seconds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30}

	checkpoints = Definition{
		Name: "tidewaiter_checkpoints_total", Kind: Counter, Help: "Recorded checkpoints.",
		Labels: []Label{namespaceLabel, {"verdict", "Valid, Invalid, Skipped (without a change), Unsettled (the workspace did not stand still)"},
			{"action", "Promoted, PartlyPromoted, Held, Reverted, None"}, {"trigger", triggers}},
	}
	checkpointFailures = Definition{
		Name: "tidewaiter_checkpoint_failures_total", Kind: Counter, Help: "Checkpoints that the watchdog could not capture or check. The next one does their work.",
		Labels: []Label{namespaceLabel, {"trigger", triggers}, {"reason", "CheckpointFailed, VolumeFull, VolumeCorrupt, VolumeFenced, RepositoryDamaged, other"}},
	}
	rollbacks = Definition{
		Name: "tidewaiter_rollbacks_total", Kind: Counter, Help: "Number of times that a workspace, or a part of it, went back.",
		Labels: []Label{namespaceLabel, {"cause", "Supervision (an agent in trouble, or an aborted task), Request (a user's), Violation (strategy Shadow, revertOnViolation)"}},
	}
	violations = Definition{
		Name: "tidewaiter_violations_total", Kind: Counter, Help: "Violations in recorded checkpoints, the eight worst of each.",
		Labels: []Label{{"rule", "an id of rules.md, or other for a policy's own checks"}, {"severity", "Info, Warning, Error, Critical"}},
	}
	checkpointSeconds = Definition{
		Name: "tidewaiter_checkpoint_seconds", Kind: Histogram, Buckets: seconds,
		Help: "How long checkpoints took from the first look at the workspace until the watchdog had acted on them, in seconds.",
	}
	phaseSeconds = Definition{
		Name: "tidewaiter_checkpoint_phase_seconds", Kind: Histogram, Buckets: seconds,
		Help:   "How long the parts of checkpoints took, in seconds. The part `judge` checks the rules.",
		Labels: []Label{{"phase", "`capture`, `sync` (make durable), `judge` (check the rules), `act`"}},
	}
	slowStreaks = Definition{
		Name: "tidewaiter_slow_checkpoint_streaks_total", Kind: Counter,
		Help: "Number of times that three checkpoints of one Feature in a row took more than 2 seconds each.",
	}
	freezeSeconds = Definition{
		Name: "tidewaiter_freeze_seconds", Kind: Histogram, Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10},
		Help: "How long freezes of agents took, for checkpoints that froze the agent, in seconds.",
	}
	holds = Definition{
		Name: "tidewaiter_holds_total", Kind: Counter, Help: "Checkpoints by how they held the workspace still, and whether they could.",
		Labels: []Label{{"frozen", "true, false (the agent never noticed)"}, {"settled", "true, false"}},
	}
	capturedFiles = Definition{
		Name: "tidewaiter_captured_files_total", Kind: Counter, Help: "Files in captured workspaces: files that the watchdog read, and files that it knew from before.",
		Labels: []Label{{"source", "read, known"}},
	}
	judgedFiles = Definition{
		Name: "tidewaiter_judged_files_total", Kind: Counter, Help: "Changed files that the watchdog checked: files that it looked at, and files that it knew from the check before.",
		Labels: []Label{{"source", "read, known"}},
	}
	reportSeconds = Definition{
		Name: "tidewaiter_report_delay_seconds", Kind: Histogram, Buckets: []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 1800},
		Help: "How long reports took from the watchdog's disk to the API server, in seconds. It is as exact as the clocks of nodes agree.",
	}
	watchdogMemory = Definition{
		Name: "tidewaiter_watchdog_memory_bytes", Kind: Histogram,
		Buckets: []float64{16 << 20, 24 << 20, 32 << 20, 40 << 20, Full * protocol.WatchdogMemory, protocol.WatchdogMemory, 128 << 20, 256 << 20},
		Help:    "Resident memory of watchdogs when they took checkpoints.",
	}
	watchdogDescriptors = Definition{
		Name: "tidewaiter_watchdog_open_descriptors", Kind: Histogram, Buckets: []float64{16, 32, 64, 128, protocol.WatchdogDescriptors, 512, 1024},
		Help: "File descriptors that watchdogs had open when they took checkpoints.",
	}
	eventDelay = Definition{
		Name: "tidewaiter_event_delay_seconds", Kind: Histogram,
		Buckets: []float64{0.005, 0.01, 0.02, protocol.EventDelay.Seconds(), 0.05, 0.1, 0.25, 0.5, 1, 5},
		Help:    "Longest time from a change in a workspace until its watchdog knew of the path, in seconds, for each checkpoint since the one before. The watchdog measures it by the ctime of files.",
	}
	volumeUsed = Definition{
		Name: "tidewaiter_volume_used_ratio", Kind: Histogram, Buckets: []float64{0.5, 0.6, 0.7, Full, 0.85, 0.9, 0.95, 0.99},
		Help:   "How full the volumes of Features were when they took checkpoints, from 0 to 1.",
		Labels: []Label{{"volume", "trusted, workspace"}},
	}
	queueLength = Definition{
		Name: "tidewaiter_watchdog_queue_length", Kind: Histogram, Buckets: []float64{0, 10, 50, 100, 500, 1000, 5000, 20000, 65535},
		Help:   "What waited in watchdogs when they took checkpoints.",
		Labels: []Label{{"queue", "changes (paths from the watcher), reports (for the manager)"}},
	}
	attempts = Definition{
		Name: "tidewaiter_attempts_total", Kind: Counter, Help: "Attempts that ended with a final report.",
		Labels: []Label{namespaceLabel, {"outcome", strings.Join(protocol.Outcomes(), ", ")}},
	}
	refusedReports = Definition{
		Name: "tidewaiter_refused_reports_total", Kind: Counter, Labels: []Label{namespaceLabel},
		Help: "Reports that the manager will never take, because they are too large or wrong. The next checkpoint of their Feature counts them. They stay in the trusted volume, and the watchdog continues with the next one.",
	}
	features = Definition{
		Name: "tidewaiter_features", Kind: Gauge, Help: "Features by phase. Every replica reports the same value: use the maximum.",
		Labels: []Label{namespaceLabel, {"phase", "Pending, Preparing, Running, AwaitingInput, ReadyToMerge, Delivered, Blocked, Failed, Suspended"}},
	}
	degraded = Definition{
		Name: "tidewaiter_features_degraded", Kind: Gauge,
		Help:   "Features whose watchdog works around a problem of its own, or sends nothing. Every replica reports the same value: use the maximum.",
		Labels: []Label{namespaceLabel, {"reason", "SupervisionDegraded, HeartbeatMissing"}},
	}
	inTrouble = Definition{
		Name: "tidewaiter_features_in_trouble", Kind: Gauge,
		Help:   "Features whose agent is stuck or in trouble. Every replica reports the same value: use the maximum.",
		Labels: []Label{namespaceLabel, {"condition", strings.Join(v1alpha1.AnomalyConditions(), ", ")}},
	}
	gatesFailing = Definition{
		Name: "tidewaiter_features_gates_failing", Kind: Gauge,
		Help:   "Features whose condition GatesPassed is False. Every replica reports the same value: use the maximum.",
		Labels: []Label{namespaceLabel, {"reason", "GateFailed, GateNotStarted (somebody has to correct the gate)"}},
	}
	reviewDirectives = Definition{
		Name: "tidewaiter_review_directives", Kind: Gauge,
		Help:   "Directives of reviewers in the status of Features, by how far they are. Every replica reports the same value: use the maximum.",
		Labels: []Label{namespaceLabel, {"reviewer", reviewers}, {"state", "Pending, Active, Addressed, Dropped, Escalated (a user decides)"}},
	}
	supervisorCostly = Definition{
		Name: "tidewaiter_features_supervisor_costly", Kind: Gauge,
		Help:   "Features that are not over and whose condition SupervisorCostInBounds is False. Every replica reports the same value: use the maximum.",
		Labels: []Label{namespaceLabel},
	}
	questionsOpen = Definition{
		Name: "tidewaiter_features_questions_open", Kind: Gauge,
		Help:   "Features with a question of the agent that nobody has answered. Every replica reports the same value: use the maximum.",
		Labels: []Label{namespaceLabel, {"waits", "true (the agent waits for the answer), false (it continues with a guess)"}},
	}
)

// Manager lists every metric of the manager that is Tidewaiter's own.
func Manager() []Definition {
	return []Definition{
		checkpoints, checkpointFailures, rollbacks, violations, checkpointSeconds, phaseSeconds, slowStreaks, freezeSeconds, holds, capturedFiles, judgedFiles, reportSeconds,
		watchdogMemory, watchdogDescriptors, eventDelay, volumeUsed, queueLength, attempts, refusedReports, features, degraded, inTrouble, gatesFailing, questionsOpen, reviewDirectives, supervisorCostly,
	}
}

func (d Definition) labelNames() []string {
	names := make([]string, 0, len(d.Labels))
	for _, l := range d.Labels {
		names = append(names, l.Name)
	}
	return names
}

// Counter that it declares.
func (d Definition) Counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.labelNames())
}

// Gauge that it declares.
func (d Definition) Gauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.labelNames())
}

// Histogram that it declares.
func (d Definition) Histogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.labelNames())
}

func (d Definition) desc() *prometheus.Desc {
	return prometheus.NewDesc(d.Name, d.Help, d.labelNames(), nil)
}
