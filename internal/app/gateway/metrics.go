// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/host/egress"
	"github.com/tidewaiter/tidewaiter/internal/host/models"
)

// metrics of the gateway. No label holds a Feature: there are too many of them.
type metrics struct {
	connections      *prometheus.CounterVec
	connectionBytes  *prometheus.CounterVec
	connectionTime   prometheus.Histogram
	calls, callBytes *prometheus.CounterVec
	tokens, cost     *prometheus.CounterVec
	checked          *prometheus.CounterVec
	changes          *prometheus.CounterVec
	steering         *prometheus.CounterVec
	firstByte        *prometheus.HistogramVec
	backends         *prometheus.GaugeVec
	avoided          *prometheus.GaugeVec
	broken           prometheus.Gauge
}

// newMetrics registers them with the manager's.
func newMetrics() (*metrics, error) {
	m := &metrics{
		connections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_egress_connections_total", Help: "Requested connections, by the list of the policy that decides (egress.git or egress.agent) and result: Connected, or the reason of a refusal.",
		}, []string{"list", "reason"}),
		connectionBytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_egress_bytes_total", Help: "Bytes that went through tunnels, by list and direction: sent to or received from the host.",
		}, []string{"list", "direction"}),
		connectionTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tidewaiter_egress_connection_seconds", Help: "How long tunnels were open, in seconds.", Buckets: prometheus.ExponentialBuckets(0.05, 4, 8),
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_model_calls_total", Help: "Model calls, by backend, result and HTTP status of the answer.",
		}, []string{"backend", "reason", "status"}),
		callBytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_model_bytes_total", Help: "Bytes of model calls, by backend and direction: sent to or received from it.",
		}, []string{"backend", "direction"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_model_tokens_total", Help: "Tokens that backends counted, by backend, model and kind: input, cached (input that the provider had kept) or output.",
		}, []string{"backend", "model", "kind"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_model_cost_total", Help: "Cost of model calls, in the currency of the configured prices, by backend and model.",
		}, []string{"backend", "model"}),
		checked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_answers_checked_total", Help: "Answers that Output templates apply to, by backend, model and result: Accepted, Changed (corrected or formatted), Retried (asked for again) or Rejected.",
		}, []string{"backend", "model", "outcome"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_checkpoint_changes_total", Help: "Diffs and file events that watchdogs handed in for the ledger, by result: Recorded, PartlyRecorded (there was no room for all), Known (handed in again) or Refused.",
		}, []string{"result"}),
		steering: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidewaiter_steering_records_total", Help: "Records of what was done about agents in trouble that watchdogs handed in for the ledger, by result: Recorded, PartlyRecorded (there was no room for what surgery took out), Known (handed in again) or Refused.",
		}, []string{"result"}),
		firstByte: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidewaiter_model_first_byte_seconds", Help: "Time until an answer of a backend began, retries included.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
		}, []string{"backend"}),
		backends: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidewaiter_backend_ready", Help: "1 for each backend of the configuration in use, 0 where its key is missing.",
		}, []string{"backend"}),
		avoided: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidewaiter_backend_avoided", Help: "1 while the circuit breaker of a backend is open because the backend failed several times in a row, 0 when it is closed again.",
		}, []string{"backend"}),
		broken: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidewaiter_backends_broken", Help: "1 while the configuration of backends is invalid and the last valid one is in use, otherwise 0.",
		}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.connections, m.connectionBytes, m.connectionTime, m.calls, m.callBytes, m.tokens, m.cost, m.checked, m.changes, m.steering, m.firstByte, m.backends, m.avoided, m.broken} {
		errs = append(errs, ctrlmetrics.Registry.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

func (m *metrics) connection(r egress.Record) {
	list := string(r.List)
	m.connections.WithLabelValues(list, r.Reason).Inc()
	m.connectionBytes.WithLabelValues(list, "sent").Add(float64(r.Sent))
	m.connectionBytes.WithLabelValues(list, "received").Add(float64(r.Received))
	if r.Duration > 0 {
		m.connectionTime.Observe(r.Duration.Seconds())
	}
}

func (m *metrics) call(r models.Record) {
	m.calls.WithLabelValues(r.Backend, r.Reason, fmt.Sprint(r.Status)).Inc()
	m.callBytes.WithLabelValues(r.Backend, "sent").Add(float64(r.Sent))
	m.callBytes.WithLabelValues(r.Backend, "received").Add(float64(r.Received))
	for kind, n := range map[string]int64{"input": r.Tokens.Input, "cached": r.Tokens.Cached, "output": r.Tokens.Output} {
		if n > 0 {
			m.tokens.WithLabelValues(r.Backend, r.Model, kind).Add(float64(n))
		}
	}
	if r.Cost > 0 {
		m.cost.WithLabelValues(r.Backend, r.Model).Add(float64(r.Cost) / 1e6)
	}
	retried := r.Rejected
	if r.Checked == models.CheckedRejected {
		retried--
	}
	if retried > 0 {
		m.checked.WithLabelValues(r.Backend, r.Model, "Retried").Add(float64(retried))
	}
	if r.Checked != models.Unchecked {
		m.checked.WithLabelValues(r.Backend, r.Model, string(r.Checked)).Inc()
	}
	if r.FirstByte > 0 {
		m.firstByte.WithLabelValues(r.Backend).Observe(r.FirstByte.Seconds())
	}
}

// handed counts what came of what a watchdog handed in at a path.
func (m *metrics) handed(path, result string) {
	counter := m.changes
	if path == protocol.SteeringPath {
		counter = m.steering
	}
	counter.WithLabelValues(result).Inc()
}

// configured tells which backends there are now and whether each has its key; nil where the configuration is broken.
func (m *metrics) configured(ready map[string]bool) {
	m.broken.Set(0)
	if ready == nil {
		m.broken.Set(1)
		return
	}
	m.backends.Reset()
	for name, is := range ready {
		m.backends.WithLabelValues(name).Set(0)
		if is {
			m.backends.WithLabelValues(name).Set(1)
		}
	}
}

// avoid tells that calls are kept away from a backend, or no more.
func (m *metrics) avoid(backend string, avoided bool) {
	m.avoided.WithLabelValues(backend).Set(0)
	if avoided {
		m.avoided.WithLabelValues(backend).Set(1)
	}
}
