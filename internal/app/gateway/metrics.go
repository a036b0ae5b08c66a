// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidewaiter/tidewaiter/internal/host/egress"
)

// metrics registers the proxy's metrics and gives what counts with them. Features are no label: there is no end to them.
func metrics() (func(egress.Record), error) {
	connections := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidewaiter_egress_connections_total", Help: "Connections asked for, by what became of them.",
	}, []string{"reason"})
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidewaiter_egress_bytes_total", Help: "Bytes that went through tunnels, by direction: sent to or received from the host.",
	}, []string{"direction"})
	duration := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "tidewaiter_egress_connection_seconds", Help: "How long tunnels were open.", Buckets: prometheus.ExponentialBuckets(0.05, 4, 8),
	})
	if err := errors.Join(ctrlmetrics.Registry.Register(connections), ctrlmetrics.Registry.Register(bytes), ctrlmetrics.Registry.Register(duration)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return func(r egress.Record) {
		connections.WithLabelValues(r.Reason).Inc()
		bytes.WithLabelValues("sent").Add(float64(r.Sent))
		bytes.WithLabelValues("received").Add(float64(r.Received))
		if r.Duration > 0 {
			duration.Observe(r.Duration.Seconds())
		}
	}, nil
}
