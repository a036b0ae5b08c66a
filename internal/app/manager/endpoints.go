// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// endpoints are where pods of Features, which have no DNS, find intake and gateway.
type endpoints struct {
	reader    client.Reader
	namespace string
}

// Addresses gives the cluster IPs of intake and gateway.
func (e endpoints) Addresses(ctx context.Context) (intake, gateway netip.Addr, err error) {
	if intake, err = e.clusterIP(ctx, protocol.IntakeService); err != nil {
		return intake, gateway, err
	}
	gateway, err = e.clusterIP(ctx, protocol.GatewayService)
	return intake, gateway, err
}

func (e endpoints) clusterIP(ctx context.Context, name string) (netip.Addr, error) {
	service := &corev1.Service{}
	if err := e.reader.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, service); err != nil {
		return netip.Addr{}, fmt.Errorf("read Service %s/%s: %w", e.namespace, name, err)
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("address of Service %s/%s: %w (it must have a cluster IP)", e.namespace, name, err)
	}
	return address, nil
}
