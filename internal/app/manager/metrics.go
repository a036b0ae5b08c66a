// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidewaiter/tidewaiter/internal/app/process"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/metrics"
	"github.com/tidewaiter/tidewaiter/internal/kube/pki"
)

// Who asks for metrics is authenticated by the API server, and must be allowed to get /metrics there.
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// serveMetrics serves metrics over TLS with intake's certificate, to callers that may get /metrics of the cluster.
func serveMetrics(mgr ctrl.Manager, rotator *pki.Rotator, address string) error {
	if err := ctrlmetrics.Registry.Register(metrics.Features{Reader: mgr.GetCache()}); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return process.ServeMetrics(mgr, address, rotator.Intake().TLS())
}

const (
	// bundleOwner owns the CA bundle in the system namespace; projects get theirs from the feature controller.
	bundleOwner = client.FieldOwner("tidewaiter-bundle")
	// bundleEvery is after how long a bundle that somebody deleted is put back.
	bundleEvery = time.Minute
)

// bundle keeps the CA bundle in the system namespace, for programs that scrape metrics.
type bundle struct {
	client    client.Client
	rotator   *pki.Rotator
	namespace string
	log       logr.Logger
	changed   chan struct{}
}

func newBundle(c client.Client, rotator *pki.Rotator, namespace string, log logr.Logger) *bundle {
	b := &bundle{client: c, rotator: rotator, namespace: namespace, log: log, changed: make(chan struct{}, 1)}
	rotator.OnChange(func() {
		select {
		case b.changed <- struct{}{}:
		default:
		}
	})
	return b
}

// Start keeps the bundle until the context ends. Only the leader does.
func (b *bundle) Start(ctx context.Context) error {
	again := clock.RealClock{}.NewTicker(bundleEvery)
	defer again.Stop()
	for {
		if err := b.share(ctx); err != nil && ctx.Err() == nil {
			b.log.Error(err, "Cannot share the CA bundle; trying again")
		}
		select {
		case <-b.changed:
		case <-again.C():
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *bundle) share(ctx context.Context) error {
	pem := string(b.rotator.Bundle())
	have := &corev1.ConfigMap{}
	err := b.client.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: protocol.CAConfigMap}, have)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", protocol.CAConfigMap, err)
	}
	if pem == "" || have.Data[protocol.CAKey] == pem {
		return nil
	}
	wanted := corev1ac.ConfigMap(protocol.CAConfigMap, b.namespace).WithData(map[string]string{protocol.CAKey: pem})
	if err := b.client.Apply(ctx, wanted, bundleOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s: %w", protocol.CAConfigMap, err)
	}
	return nil
}
