// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// slowInARow is how many slow checkpoints of a Feature make a streak.
const slowInARow = 3

// other stands for every value of a label that is not one of ours: what a pod reports must not make series without end.
const other = "other"

// Reports counts what watchdogs report. Its methods are safe for concurrent use.
type Reports struct {
	checkpoints, failures, rollbacks, violations, holds, files, judged, attempts, refused *prometheus.CounterVec
	checkpointSeconds, phaseSeconds, freezeSeconds                                        *prometheus.HistogramVec
	reportSeconds, memory, descriptors, eventDelay, volume, queue                         *prometheus.HistogramVec
	slowStreaks                                                                           prometheus.Counter
	rules                                                                                 map[string]bool
}

// NewReports registers the metrics.
func NewReports(registry prometheus.Registerer) (*Reports, error) {
	r := &Reports{
		checkpoints: checkpoints.Counter(), failures: checkpointFailures.Counter(), rollbacks: rollbacks.Counter(), violations: violations.Counter(), holds: holds.Counter(), files: capturedFiles.Counter(), judged: judgedFiles.Counter(), attempts: attempts.Counter(), refused: refusedReports.Counter(),
		checkpointSeconds: checkpointSeconds.Histogram(), phaseSeconds: phaseSeconds.Histogram(), freezeSeconds: freezeSeconds.Histogram(),
		reportSeconds: reportSeconds.Histogram(), memory: watchdogMemory.Histogram(), descriptors: watchdogDescriptors.Histogram(), eventDelay: eventDelay.Histogram(), volume: volumeUsed.Histogram(), queue: queueLength.Histogram(),
		rules: map[string]bool{},
	}
	for _, rule := range judge.Rules() {
		r.rules[rule.ID] = true
	}
	streaks := slowStreaks.Counter()
	r.slowStreaks = streaks.WithLabelValues()
	var errs []error
	for _, c := range []prometheus.Collector{r.checkpoints, r.failures, r.rollbacks, r.violations, r.holds, r.files, r.judged, r.attempts, r.refused, r.checkpointSeconds, r.phaseSeconds,
		r.freezeSeconds, r.reportSeconds, r.memory, r.descriptors, r.eventDelay, r.volume, r.queue, streaks} {
		errs = append(errs, registry.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	r.begin()
	return r, nil
}

// begin makes the series that alerts ask about: what grows from nothing at its first sample has not grown for Prometheus.
func (r *Reports) begin() {
	for _, v := range []*prometheus.HistogramVec{r.checkpointSeconds, r.freezeSeconds, r.reportSeconds, r.memory, r.descriptors, r.eventDelay} {
		v.WithLabelValues()
	}
	for _, name := range []string{"trusted", "workspace"} {
		r.volume.WithLabelValues(name)
	}
	for _, name := range []string{"changes", "reports"} {
		r.queue.WithLabelValues(name)
	}
}

// Observe counts reports of a Feature in a namespace that were just stored. Each must be given once.
func (r *Reports) Observe(namespace string, stored []protocol.Report, now time.Time) {
	for _, report := range stored {
		r.reportSeconds.WithLabelValues().Observe(max(0, now.Sub(report.Time).Seconds()))
		switch {
		case report.Checkpoint != nil:
			r.checkpoint(namespace, *report.Checkpoint)
		case report.Failed != nil:
			r.failures.WithLabelValues(namespace, trigger(report.Failed.Trigger), known(report.Failed.Reason, protocol.ReasonCheckpointFailed, protocol.ReasonVolumeFull,
				protocol.ReasonVolumeCorrupt, protocol.ReasonVolumeFenced, protocol.ReasonRepositoryDamaged)).Inc()
		case report.Final != nil:
			r.attempts.WithLabelValues(namespace, known(report.Final.Outcome, protocol.Outcomes()...)).Inc()
		}
	}
}

func (r *Reports) checkpoint(namespace string, c protocol.CheckpointReport) {
	r.checkpoints.WithLabelValues(namespace, verdict(c),
		known(c.Action, protocol.ActionPromoted, protocol.ActionPartlyPromoted, protocol.ActionHeld, protocol.ActionReverted, protocol.ActionNone),
		trigger(c.Trigger)).Inc()
	if c.Rollback != nil {
		r.rollbacks.WithLabelValues(namespace, known(c.Rollback.Cause, protocol.RollbackBySupervision, protocol.RollbackByRequest, protocol.RollbackByViolation)).Inc()
	}
	for _, v := range c.Violations {
		r.violations.WithLabelValues(r.rule(v.Rule), known(string(v.Severity),
			string(policy.Info), string(policy.Warning), string(policy.Error), string(policy.Critical))).Inc()
	}
	r.checkpointSeconds.WithLabelValues().Observe((c.CaptureTime + c.SyncTime + c.JudgeTime + c.ActTime).Seconds())
	for phase, took := range map[string]time.Duration{"capture": c.CaptureTime, "sync": c.SyncTime, "judge": c.JudgeTime, "act": c.ActTime} {
		r.phaseSeconds.WithLabelValues(phase).Observe(took.Seconds())
	}
	r.holds.WithLabelValues(strconv.FormatBool(c.Frozen), strconv.FormatBool(c.Settled)).Inc()
	if c.Frozen {
		r.freezeSeconds.WithLabelValues().Observe(c.FrozenFor.Seconds())
	}
	r.refused.WithLabelValues(namespace).Add(float64(max(0, c.Vitals.Refused)))
	r.vitals(c.Vitals)
}

func (r *Reports) vitals(v protocol.Vitals) {
	if v.SlowInARow > 0 && v.SlowInARow%slowInARow == 0 {
		r.slowStreaks.Inc()
	}
	r.files.WithLabelValues("read").Add(float64(max(0, v.Read)))
	r.files.WithLabelValues("known").Add(float64(max(0, v.Files-v.Read)))
	r.judged.WithLabelValues("read").Add(float64(max(0, v.JudgedFresh)))
	r.judged.WithLabelValues("known").Add(float64(max(0, v.JudgedKnown)))
	if v.Memory > 0 {
		r.memory.WithLabelValues().Observe(float64(v.Memory))
	}
	if v.Descriptors > 0 {
		r.descriptors.WithLabelValues().Observe(float64(v.Descriptors))
	}
	if v.EventDelay > 0 {
		r.eventDelay.WithLabelValues().Observe(v.EventDelay.Seconds())
	}
	for name, use := range map[string]protocol.VolumeUse{"trusted": v.Trusted, "workspace": v.Workspace} {
		if use.Size > 0 {
			r.volume.WithLabelValues(name).Observe(float64(use.Used) / float64(use.Size))
		}
	}
	r.queue.WithLabelValues("changes").Observe(float64(v.Changed))
	r.queue.WithLabelValues("reports").Observe(float64(v.Reports))
}

func trigger(t string) string {
	return known(t, protocol.TriggerInterval, protocol.TriggerChanges, protocol.TriggerTask, protocol.TriggerRequested, protocol.TriggerFinal, protocol.TriggerPatch, protocol.TriggerSteering)
}

func verdict(c protocol.CheckpointReport) string {
	if !c.Settled {
		return "Unsettled"
	}
	return known(string(c.Verdict), string(protocol.Valid), string(protocol.Invalid), string(protocol.Skipped))
}

func (r *Reports) rule(id string) string {
	if r.rules[id] {
		return id
	}
	return other
}

func known(value string, values ...string) string {
	if slices.Contains(values, value) {
		return value
	}
	return other
}
