// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	coreledger "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/egressproxy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/kube/metrics"
)

// instruments are the metrics of the gateway.
type instruments struct {
	connections      *prometheus.CounterVec
	connectionBytes  *prometheus.CounterVec
	connectionTime   *prometheus.HistogramVec
	calls, callBytes *prometheus.CounterVec
	tokens, cost     *prometheus.CounterVec
	estimated        *prometheus.CounterVec
	checked          *prometheus.CounterVec
	changes          *prometheus.CounterVec
	steering, steps  *prometheus.CounterVec
	history, gates   *prometheus.CounterVec
	gateTime         *prometheus.HistogramVec
	corrections      *prometheus.CounterVec
	plans            *prometheus.CounterVec
	reviews          *prometheus.CounterVec
	findings         *prometheus.CounterVec
	roleTokens       *prometheus.CounterVec
	roleCost         *prometheus.CounterVec
	ledgerDropped    *prometheus.CounterVec
	firstByte        *prometheus.HistogramVec
	backends         *prometheus.GaugeVec
	avoided          *prometheus.GaugeVec
	broken           *prometheus.GaugeVec
	unpriced         *prometheus.GaugeVec
}

func newInstruments() *instruments {
	return &instruments{
		connections: metrics.Connections.Counter(), connectionBytes: metrics.ConnectionBytes.Counter(), connectionTime: metrics.ConnectionSeconds.Histogram(),
		calls: metrics.ModelCalls.Counter(), callBytes: metrics.ModelBytes.Counter(), tokens: metrics.ModelTokens.Counter(), cost: metrics.ModelCost.Counter(), estimated: metrics.ModelEstimated.Counter(),
		checked: metrics.AnswersChecked.Counter(), changes: metrics.ChangesRecorded.Counter(), steering: metrics.SteeringRecorded.Counter(), steps: metrics.SteeringSteps.Counter(), history: metrics.HistoryRecorded.Counter(), gates: metrics.GatesRun.Counter(), gateTime: metrics.GateSeconds.Histogram(), corrections: metrics.Corrections.Counter(), plans: metrics.PlansMade.Counter(), reviews: metrics.Reviews.Counter(), findings: metrics.ReviewFindings.Counter(), roleTokens: metrics.RoleTokens.Counter(), roleCost: metrics.RoleCost.Counter(), ledgerDropped: metrics.LedgerDropped.Counter(),
		firstByte: metrics.FirstByteSeconds.Histogram(), backends: metrics.BackendReady.Gauge(), avoided: metrics.BackendAvoided.Gauge(), broken: metrics.BackendsBroken.Gauge(),
		unpriced: metrics.ModelUnpriced.Gauge(),
	}
}

func (m *instruments) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.connections, m.connectionBytes, m.connectionTime, m.calls, m.callBytes, m.tokens, m.cost, m.estimated, m.checked, m.changes, m.steering, m.steps, m.history, m.gates, m.gateTime, m.corrections, m.plans, m.reviews, m.findings, m.roleTokens, m.roleCost, m.ledgerDropped, m.firstByte, m.backends, m.avoided, m.broken, m.unpriced,
	}
}

// newMetrics registers them with a registry.
func newMetrics(registry prometheus.Registerer) (*instruments, error) {
	m := newInstruments()
	var errs []error
	for _, c := range m.all() {
		errs = append(errs, registry.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	// Those without labels are there before anything has happened.
	m.connectionTime.WithLabelValues()
	m.broken.WithLabelValues()
	return m, nil
}

func (m *instruments) connection(r egressproxy.Outcome) {
	list := string(r.List)
	m.connections.WithLabelValues(list, r.Reason).Inc()
	m.connectionBytes.WithLabelValues(list, "sent").Add(float64(r.Sent))
	m.connectionBytes.WithLabelValues(list, "received").Add(float64(r.Received))
	if r.Duration > 0 {
		m.connectionTime.WithLabelValues().Observe(r.Duration.Seconds())
	}
}

func (m *instruments) call(r modelserver.Outcome) {
	m.calls.WithLabelValues(r.Backend, r.Reason, fmt.Sprint(r.Status)).Inc()
	m.callBytes.WithLabelValues(r.Backend, "sent").Add(float64(r.Sent))
	m.callBytes.WithLabelValues(r.Backend, "received").Add(float64(r.Received))
	for kind, n := range map[string]int64{
		"input": r.Tokens.Input, "cached": r.Tokens.Cached, "cacheWrite": r.Tokens.Writes, "cacheWriteHour": r.Tokens.LongWrites, "output": r.Tokens.Output,
	} {
		if n > 0 {
			m.tokens.WithLabelValues(r.Backend, r.Model, kind).Add(float64(n))
		}
	}
	if r.Cost > 0 {
		m.cost.WithLabelValues(r.Backend, r.Model).Add(float64(r.Cost) / 1e6)
	}
	m.role(r)
	if r.Estimated > 0 {
		m.estimated.WithLabelValues(r.Backend, r.Model).Add(float64(r.Estimated))
	}
	retried := r.Rejected
	if r.Checked == modelserver.CheckedRejected {
		retried--
	}
	if retried > 0 {
		m.checked.WithLabelValues(r.Backend, r.Model, "Retried").Add(float64(retried))
	}
	if r.Checked != modelserver.Unchecked {
		m.checked.WithLabelValues(r.Backend, r.Model, string(r.Checked)).Inc()
	}
	if r.FirstByte > 0 {
		m.firstByte.WithLabelValues(r.Backend).Observe(r.FirstByte.Seconds())
	}
}

// role counts what a call has used by the project and the role of the caller.
func (m *instruments) role(r modelserver.Outcome) {
	namespace, _, known := strings.Cut(r.Feature, "/")
	used := r.Tokens.Amount(r.Cost)
	if !known || used == (coreledger.Amount{}) {
		return
	}
	m.roleTokens.WithLabelValues(namespace, r.Role).Add(float64(used.Input + used.Output))
	m.roleCost.WithLabelValues(namespace, r.Role).Add(float64(used.Cost) / 1e6)
}

// handed counts what came of what a watchdog handed in at a path.
func (m *instruments) handed(path, result string) {
	counter := m.changes
	switch path {
	case protocol.SteeringPath:
		counter = m.steering
	case protocol.HistoryPath:
		counter = m.history
	}
	counter.WithLabelValues(result).Inc()
}

// dropped counts what the ledger has dropped to make room.
func (m *instruments) dropped(d ledger.Dropped) {
	for what, n := range map[string]int{"answers": d.Answers, "calls": d.Calls} {
		if n > 0 {
			m.ledgerDropped.WithLabelValues(d.Namespace, what).Add(float64(n))
		}
	}
}

// step counts a step of steering that is new to the ledger. A watchdog names what it was about, so that other names are not taken.
func (m *instruments) step(s protocol.SteeringStep) {
	const other, over = "Other", "Over"
	about, rung := other, other
	if slices.Contains(v1alpha1.AnomalyConditions(), s.Anomaly) {
		about = s.Anomaly
	}
	if slices.Contains(policy.Ladder(), policy.Rung(s.Rung)) {
		rung = s.Rung
	}
	if s.Over {
		rung = over
	}
	m.steps.WithLabelValues(about, rung).Inc()
}

// happened counts an entry of a history that is new to the ledger. A watchdog writes it, so that other names than these are not taken.
func (m *instruments) happened(namespace string, e protocol.HistoryEntry) {
	const other = "Other"
	switch {
	case e.Kind == protocol.HistoryGate:
		place, state := "Task", other
		if e.Task == "" {
			place = "Delivery"
		}
		if slices.Contains(protocol.GateStates(), e.Event) {
			state = e.Event
		}
		m.gates.WithLabelValues(namespace, place, state).Inc()
		if state != other && state != protocol.GateNotStarted {
			m.gateTime.WithLabelValues(place).Observe(max(0, float64(e.Duration)/1000))
		}
	case e.Kind == protocol.HistoryPlan:
		outcome := protocol.HistoryUnavailable
		if e.Event == protocol.HistoryProposed || e.Event == protocol.HistoryApproved {
			outcome = e.Event
		}
		m.plans.WithLabelValues(namespace, outcome).Inc()
	case e.Kind == protocol.HistoryReview:
		outcome := other
		reviewer, is := metrics.Reviewer(e.Name)
		if !is {
			reviewer = other
		}
		if slices.Contains(protocol.ReviewOutcomes(), e.Event) {
			outcome = e.Event
		}
		m.reviews.WithLabelValues(namespace, reviewer, outcome).Inc()
		m.found(namespace, reviewer, e.Findings)
	case e.Kind == protocol.HistoryTask && slices.Contains([]string{protocol.HistoryCorrected, protocol.HistoryRestarted, protocol.HistoryAdded}, e.Event):
		cause := other
		if slices.Contains(protocol.HistoryCauses(), e.Cause) {
			cause = e.Cause
		}
		m.corrections.WithLabelValues(namespace, cause).Inc()
	}
}

// mostFindings of a review that are counted: an answer has fewer.
const mostFindings = 16

// found counts the findings of a review.
func (m *instruments) found(namespace, reviewer string, f *protocol.Findings) {
	const kept, other = "Kept", "Other"
	if f == nil {
		return
	}
	if n := min(f.Kept, mostFindings); n > 0 {
		m.findings.WithLabelValues(namespace, reviewer, kept).Add(float64(n))
	}
	for _, reason := range f.Discarded[:min(len(f.Discarded), mostFindings)] {
		if !slices.Contains(protocol.FindingReasons(), reason) {
			reason = other
		}
		m.findings.WithLabelValues(namespace, reviewer, reason).Inc()
	}
}

// configured tells which backends there are now and whether each has its key; nil where the configuration is broken.
func (m *instruments) configured(table *modelserver.Table) {
	m.broken.WithLabelValues().Set(0)
	if table == nil {
		m.broken.WithLabelValues().Set(1)
		return
	}
	m.backends.Reset()
	for name, is := range table.Ready() {
		m.backends.WithLabelValues(name).Set(0)
		if is {
			m.backends.WithLabelValues(name).Set(1)
		}
	}
	m.unpriced.Reset()
	for _, model := range table.Unpriced() {
		m.unpriced.WithLabelValues(model.Backend.Name, model.Model.Name).Set(1)
	}
}

// avoid tells that calls are kept away from a backend, or no more.
func (m *instruments) avoid(backend string, avoided bool) {
	m.avoided.WithLabelValues(backend).Set(0)
	if avoided {
		m.avoided.WithLabelValues(backend).Set(1)
	}
}
