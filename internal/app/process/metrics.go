// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/tls"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// ServeMetrics serves metrics over TLS with a certificate of the process's own, to callers with permission to get /metrics of the cluster.
// The API server authenticates and authorizes them. The address "0" turns them off.
func ServeMetrics(mgr ctrl.Manager, address string, own *tls.Config) error {
	server, err := metricsserver.NewServer(metricsserver.Options{
		BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate, c.MinVersion = own.GetCertificate, own.MinVersion }},
	}, mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	if server == nil { // turned off
		return nil
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	return nil
}
