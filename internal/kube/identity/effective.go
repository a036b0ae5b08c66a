// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/translate"
)

// Effective is the policy that a Feature is held to now: the one merge of the policies of its project and of the
// system's namespace, so that intake and gateway cannot hold it to different ones.
func Effective(ctx context.Context, reader client.Reader, f *v1alpha1.Feature, systemNamespace string) (policy.Effective, error) {
	effective, _, err := EffectiveAt(ctx, reader, f, systemNamespace)
	return effective, err
}

// EffectiveAt is Effective with the resource version up to which the API server vouches for the policies; it is empty for
// a reader that does not know it, such as a cache.
func EffectiveAt(ctx context.Context, reader client.Reader, f *v1alpha1.Feature, systemNamespace string) (effective policy.Effective, version string, err error) {
	var policies []v1alpha1.SupervisorPolicy
	namespaces := []string{f.Namespace}
	if f.Namespace != systemNamespace {
		namespaces = append(namespaces, systemNamespace)
	}
	for _, namespace := range namespaces {
		list := &v1alpha1.SupervisorPolicyList{}
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return policy.Effective{}, "", fmt.Errorf("list policies of %s: %w", namespace, err)
		}
		if version == "" {
			version = list.ResourceVersion // the oldest of the lists vouches for all
		}
		policies = append(policies, list.Items...)
	}
	effective, err = translate.Effective(f, policies, systemNamespace)
	if err != nil {
		return policy.Effective{}, "", fmt.Errorf("merge policies: %w", err)
	}
	return effective, version, nil
}
