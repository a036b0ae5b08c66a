// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// canary is the name of an admission policy, and of the ConfigMap that it refuses.
const canary = "kubetest-canary"

// awaitAdmission waits until the installed admission policies are in effect. The API server reads policies and bindings
// from watches; one more of each, made last, is refused only when it has seen those before it.
func (e *Env) awaitAdmission(ctx context.Context) error {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: canary},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{canary},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "admission policies are in effect"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: canary},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: canary, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := e.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("make the canary policy: %w", err)
		}
	}
	err := until(ctx, func(ctx context.Context) (bool, error) {
		err := e.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: canary}}, client.DryRunAll)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("wait for admission policies to be in effect: %w", err)
	}
	return nil
}

// until asks done again and again, until it says true or fails.
func until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, done)
}

// firstRight is something that the role allows in the namespace.
func firstRight(role *rbacv1.ClusterRole, namespace string) (authorizationv1.ResourceAttributes, bool) {
	for _, rule := range role.Rules {
		if len(rule.Resources) == 0 {
			continue
		}
		right := authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: rule.Verbs[0],
		}
		if len(rule.ResourceNames) > 0 {
			right.Name = rule.ResourceNames[0]
		}
		return right, true
	}
	return authorizationv1.ResourceAttributes{}, false
}

// Allowed asks the API server whether a user has a permission.
func Allowed(t testing.TB, who client.Client, what authorizationv1.ResourceAttributes) bool {
	t.Helper()
	ok, err := allowed(t.Context(), who, what)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func allowed(ctx context.Context, who client.Client, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	if err := who.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask for an access review: %w", err)
	}
	return review.Status.Allowed, nil
}
