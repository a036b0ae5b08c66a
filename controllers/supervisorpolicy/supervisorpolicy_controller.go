// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisorpolicy says of each SupervisorPolicy whether it can be used, and for how many Features it is.
package supervisorpolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/conditions"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/inert"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// +kubebuilder:rbac:groups=tidewaiter.dev,resources=supervisorpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=supervisorpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features,verbs=get;list;watch

const fieldOwner = client.FieldOwner("tidewaiter-supervisorpolicy")

// Reconciler reconciles SupervisorPolicies. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock
	// SystemNamespace whose policies are global.
	SystemNamespace string
}

// scope is what one reconcile learns, in the order in which it is learnt.
type scope struct {
	policy *v1alpha1.SupervisorPolicy
	now    time.Time
	// problem is why the policy cannot be used, or nil; set by check.
	problem error
	// features that it applies to; set by count.
	features int32
}

// Reconcile is the whole story of a SupervisorPolicy, one line per step.
func (r *Reconciler) Reconcile(ctx context.Context, p *v1alpha1.SupervisorPolicy) (ctrl.Result, error) {
	if p.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	s := &scope{policy: p, now: r.Clock.Now()}
	err := flow.Run(ctx, s,
		r.check, // pure: can every rule be read?
		r.count, // read: the Features that it selects
	)
	return flow.Finish(ctx, err, r.close(s, err))
}

func (r *Reconciler) check(_ context.Context, s *scope) error {
	_, s.problem = supervisorpolicy.Source(s.policy, r.SystemNamespace)
	return nil
}

func (r *Reconciler) count(ctx context.Context, s *scope) error {
	namespace := s.policy.Namespace
	if namespace == r.SystemNamespace {
		namespace = ""
	}
	var list v1alpha1.FeatureList
	// They are only looked at: a copy of every Feature would cost more than counting them.
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Features: %w", err)
	}
	places := map[string]supervisorpolicy.Place{}
	for i := range list.Items {
		f := &list.Items[i]
		at, known := places[f.Namespace]
		if !known {
			var err error
			if at, _, err = identity.Place(ctx, r.Client, f.Namespace, r.SystemNamespace, *s.policy); err != nil {
				return fmt.Errorf("count Features: %w", err)
			}
			places[f.Namespace] = at
		}
		// A selector that cannot be read selects nothing that could be counted; check has said so.
		if applies, err := supervisorpolicy.Selects(s.policy, f, at); err == nil && applies {
			s.features++
		}
	}
	return nil
}

func (r *Reconciler) close(s *scope, err error) flow.Close {
	if err != nil {
		return flow.Close{}
	}
	p := s.policy
	status := v1alpha1.SupervisorPolicyStatus{ObservedGeneration: p.Generation, Features: s.features, Conditions: slices.Clone(p.Status.Conditions)}
	w := conditions.Writer{List: &status.Conditions, Generation: p.Generation, Now: s.now}
	setValid(w, s)
	w.Summarize(v1alpha1.ConditionReady, v1alpha1.ConditionValid)
	if equality.Semantic.DeepEqual(status, p.Status) {
		return flow.Close{}
	}
	return flow.Close{Write: func(ctx context.Context) error { return r.writeStatus(ctx, p, status) }}
}

func setValid(w conditions.Writer, s *scope) {
	if s.problem != nil {
		w.Set(v1alpha1.ConditionValid, metav1.ConditionFalse, v1alpha1.ReasonInvalid,
			"The policy is invalid, and Features that it applies to do not start until you fix it: "+strings.ReplaceAll(s.problem.Error(), "\n", "; ")+".")
		return
	}
	if names := inert.Policy(s.policy); len(names) > 0 {
		w.Set(v1alpha1.ConditionValid, metav1.ConditionTrue, v1alpha1.ReasonPartlyActedOn,
			"This version does not act on: "+strings.Join(names, ", ")+". Remove them.")
		return
	}
	w.Set(v1alpha1.ConditionValid, metav1.ConditionTrue, v1alpha1.ReasonValid, "Every rule is valid.")
}

func (r *Reconciler) writeStatus(ctx context.Context, p *v1alpha1.SupervisorPolicy, status v1alpha1.SupervisorPolicyStatus) error {
	config := applyv1alpha1.SupervisorPolicy(p.Name, p.Namespace).WithUID(p.UID).WithResourceVersion(p.ResourceVersion).
		WithStatus(applyv1alpha1.SupervisorPolicyStatus().
			WithObservedGeneration(status.ObservedGeneration).WithFeatures(status.Features).
			WithConditions(conditions.Configs(status.Conditions)...))
	if err := r.Client.Status().Apply(ctx, config, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status of SupervisorPolicy %s: %w", p.Name, err)
	}
	return nil
}
