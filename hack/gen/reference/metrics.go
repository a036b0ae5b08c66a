// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/kube/metrics"
)

// metricsPage is docs/reference/metrics.md: every metric that is Tidewaiter's own.
func metricsPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`# Metrics

Manager and gateway serve these metrics over TLS to clients with permission to get /metrics of the cluster. They also serve the metrics of controller-runtime
and of the Go runtime: see [Monitoring](../operate/monitoring.md).

## Manager

At ` + "`https://tidewaiter-metrics.tidewaiter-system.svc:8445/metrics`" + `. Watchdogs report their figures with each checkpoint, so that Prometheus never scrapes an agent's pod.
The replica that stored a report counts it, once: add the replicas up. p50, p95 and p99 are quantiles of the histograms, for example
` + "`histogram_quantile(0.99, sum by (le) (rate(tidewaiter_checkpoint_seconds_bucket[1h])))`" + `.

`)
	definitions(&b, metrics.Manager())
	b.WriteString(`
## Gateway

At ` + "`https://tidewaiter-gateway-metrics.tidewaiter-system.svc:8445/metrics`" + `. The replica that gets a call, connection or record counts it, once: add the replicas up.

`)
	definitions(&b, metrics.Gateway())
	return []byte(b.String()), nil
}

// definitions is a table of metrics.
func definitions(b *strings.Builder, list []metrics.Definition) {
	b.WriteString("| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n")
	for _, d := range list {
		labels := make([]string, 0, len(d.Labels))
		for _, l := range d.Labels {
			labels = append(labels, fmt.Sprintf("`%s`: %s", l.Name, l.Values))
		}
		help := d.Help
		if len(d.Buckets) > 0 {
			bounds := make([]string, 0, len(d.Buckets))
			for _, bound := range d.Buckets {
				bounds = append(bounds, strconv.FormatFloat(bound, 'f', -1, 64))
			}
			help += " Buckets: " + strings.Join(bounds, ", ") + "."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, strings.Join(labels, "; "), help)
	}
}
