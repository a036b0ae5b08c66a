// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
)

// ensureDependencies restores what a running attempt depends on: the network policy, without which the agent's network is
// open, and the CA bundle, without which the watchdog cannot reach intake.
func (r maker) ensureDependencies(ctx context.Context, s *scope) error {
	if !s.decision.EnsureDependencies {
		return nil
	}
	var cached networkingv1.NetworkPolicy
	key := client.ObjectKey{Namespace: s.feature.Namespace, Name: naming.NetworkPolicy(s.feature.Name)}
	if err := r.client.Get(ctx, key, &cached); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read NetworkPolicy %s: %w", key.Name, err)
	}
	spec, err := r.networkPolicySpec(s)
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(spec, cached.Spec) {
		if err := r.applyNetworkPolicy(ctx, s); err != nil {
			return err
		}
	}
	return r.applyCABundle(ctx, s.feature.Namespace)
}

func (r maker) networkPolicySpec(s *scope) (networkingv1.NetworkPolicySpec, error) {
	spec, err := as[networkingv1.NetworkPolicySpec](desired.NetworkPolicy(s.feature, r.systemNamespace).Spec)
	if err != nil {
		return spec, fmt.Errorf("render NetworkPolicy: %w", err)
	}
	return spec, nil
}

func (r maker) applyNetworkPolicy(ctx context.Context, s *scope) error {
	spec, err := r.networkPolicySpec(s)
	if err != nil {
		return err
	}
	want := desired.NetworkPolicy(s.feature, r.systemNamespace)
	is, made, err := own[networkingv1.NetworkPolicy](ctx, r, s, want)
	if err != nil || made || equality.Semantic.DeepEqual(spec, is.Spec) {
		return err
	}
	// It is the Feature's own, and was changed: exactly this one is put right.
	want = want.WithUID(is.UID).WithResourceVersion(is.ResourceVersion)
	if err := r.client.Apply(ctx, want, fieldOwner, client.ForceOwnership); err != nil {
		return refusal(*want.GetKind(), is.Name, err)
	}
	return nil
}

// applyCABundle makes the project's bundle what it should be. While ours is not known, what is there stays.
func (r maker) applyCABundle(ctx context.Context, namespace string) error {
	bundle := r.bundle.Bundle()
	if len(bundle) == 0 {
		return nil
	}
	var is corev1.ConfigMap
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: protocol.CAConfigMap}, &is); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", protocol.CAConfigMap, err)
	}
	if bytes.Equal([]byte(is.Data[protocol.CAKey]), bundle) {
		return nil
	}
	if err := r.client.Apply(ctx, desired.CABundle(namespace, bundle), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s: %w", protocol.CAConfigMap, err)
	}
	return nil
}
