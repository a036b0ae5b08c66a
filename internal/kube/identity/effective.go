// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Effective is the policy in effect for a Feature now: the merge of the policies of its project and of the system's namespace. Intake and
// gateway both use it, so that they apply the same policy.
func Effective(ctx context.Context, reader client.Reader, f *v1alpha1.Feature, systemNamespace string) (policy.Effective, error) {
	effective, _, err := EffectiveAt(ctx, reader, f, systemNamespace)
	return effective, err
}

// AsOf says how new the sources of a policy are, by resource versions.
type AsOf struct {
	// Policies is the version up to which the API server vouches for the SupervisorPolicies; it is empty for a reader
	// that does not know it, such as a cache.
	Policies string
	// Namespace is the version of the Feature's namespace; empty if no policy selects by its labels.
	Namespace string
}

// EffectiveAt is Effective with how new its sources are.
func EffectiveAt(ctx context.Context, reader client.Reader, f *v1alpha1.Feature, systemNamespace string) (effective policy.Effective, asOf AsOf, err error) {
	var policies []v1alpha1.SupervisorPolicy
	namespaces := []string{f.Namespace}
	if f.Namespace != systemNamespace {
		namespaces = append(namespaces, systemNamespace)
	}
	for _, namespace := range namespaces {
		list := &v1alpha1.SupervisorPolicyList{}
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return policy.Effective{}, AsOf{}, fmt.Errorf("list policies of %s: %w", namespace, err)
		}
		if asOf.Policies == "" {
			asOf.Policies = list.ResourceVersion // the oldest of the lists vouches for all
		}
		policies = append(policies, list.Items...)
	}
	at, version, err := Place(ctx, reader, f.Namespace, systemNamespace, policies...)
	if err != nil {
		return policy.Effective{}, AsOf{}, err
	}
	asOf.Namespace = version
	effective, err = supervisorpolicy.Effective(f, policies, at)
	if err != nil {
		return effective, AsOf{}, fmt.Errorf("merge policies: %w", err)
	}
	return effective, asOf, nil
}

// Place returns the facts by which policies may select the Features of a namespace. It reads the namespace, and returns its version, if one
// of the policies selects by its labels.
func Place(ctx context.Context, reader client.Reader, namespace, systemNamespace string, policies ...v1alpha1.SupervisorPolicy) (at supervisorpolicy.Place, version string, err error) {
	at.SystemNamespace = systemNamespace
	if !slices.ContainsFunc(policies, func(p v1alpha1.SupervisorPolicy) bool { return p.Spec.NamespaceSelector != nil }) {
		return at, "", nil
	}
	read := Namespace()
	if err := reader.Get(ctx, client.ObjectKey{Name: namespace}, read); err != nil {
		return at, "", fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	at.Labels = read.Labels
	return at, read.ResourceVersion, nil
}

// Namespace is an empty object to read or watch the labels of a namespace with, and nothing else of it.
func Namespace() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return o
}
