// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	coreegress "github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/sidecalls"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/egressproxy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// pods knows the pod of a token, its Feature, and the policy in effect for the Feature now.
type pods struct {
	authenticator interface {
		Authenticate(ctx context.Context, token string) (identity.Caller, error)
	}
	objects         client.Reader
	systemNamespace string
}

// pod is one that asks.
type pod struct {
	feature *v1alpha1.Feature
	attempt int64
}

func (p pod) name() string {
	if p.feature == nil {
		return ""
	}
	return client.ObjectKeyFromObject(p.feature).String()
}

func (p *pods) find(ctx context.Context, token string) (pod, error) {
	caller, err := p.authenticator.Authenticate(identity.From(ctx, callers.Source(ctx)), token)
	switch {
	case errors.Is(err, identity.ErrUnauthenticated), errors.Is(err, identity.ErrForbidden):
		return pod{}, fmt.Errorf("%w: %w", callers.ErrUnauthenticated, err)
	case err != nil:
		return pod{}, fmt.Errorf("%w: %w", callers.ErrUnavailable, err)
	}
	return pod{feature: caller.Feature, attempt: caller.Attempt}, nil
}

// policy in effect for a Feature now.
func (p *pods) policy(ctx context.Context, f *v1alpha1.Feature) (policy.Effective, error) {
	effective, err := identity.Effective(ctx, p.objects, f, p.systemNamespace)
	if err != nil {
		return effective, fmt.Errorf("%w: policy: %w", callers.ErrUnavailable, err)
	}
	return effective, nil
}

// toHosts authorizes tunnels.
type toHosts struct {
	*pods

	// backends are the hosts at which the gateway asks models.
	backends func() []string
}

var _ egressproxy.Authorizer = toHosts{}

// Authorize implements egress.Authorizer. The caller is on Tidewaiter's side of the pod, and says truly for whom: agents have
// no token.
func (a toHosts) Authorize(ctx context.Context, token string, list coreegress.Field) (egressproxy.Caller, error) {
	p, err := a.find(ctx, token)
	if err != nil {
		return egressproxy.Caller{}, err
	}
	effective, err := a.policy(ctx, p.feature)
	caller := egressproxy.Caller{Feature: p.name(), Hosts: effective.GitHosts}
	if list == coreegress.FieldAgent {
		caller.Hosts, caller.BesideGateway, caller.Backends = effective.AgentHosts, effective.ModelProviders == policy.ModelProvidersAllow, a.backends()
	}
	return caller, err
}

// toModels authorizes model calls.
type toModels struct {
	*pods

	pins    *pins
	keys    *projectKeys
	budgets *budgets
	log     *slog.Logger
}

var _ modelserver.Authorizer = toModels{}

// Authorize implements models.Authorizer. The watchdog asks for the agent, or on its own behalf.
func (a toModels) Authorize(ctx context.Context, token string, claim modelserver.Claim) (modelserver.Caller, error) {
	p, err := a.find(ctx, token)
	if err != nil {
		return modelserver.Caller{}, err
	}
	allowed, notAllowed := a.budgets.of(ctx, p, func(ctx context.Context) (policy.Effective, error) { return a.policy(ctx, p.feature) })
	if len(allowed.suspendedBy) > 0 {
		return modelserver.Caller{Feature: p.name()}, &modelserver.SuspendedError{Policies: allowed.suspendedBy}
	}
	t, err := a.termsOf(ctx, p, claim)
	if err != nil {
		return modelserver.Caller{Feature: p.name()}, err
	}
	if notAllowed != nil {
		return modelserver.Caller{Feature: p.name()}, notAllowed
	}
	role, side := roleOf(p, claim)
	return modelserver.Caller{
		Feature: p.name(), UID: string(p.feature.UID), Attempt: p.attempt, Task: claim.Task,
		Models: t.Models, ProviderTools: t.ProviderTools, Before: t.before, Templates: t.Templates, Silence: t.Silence, Unrecorded: t.Unrecorded, ToolResults: t.ToolResults,
		Answers: t.Answers, SideCalls: side,
		Budgets: allowed.budgets, WarnAtPercent: allowed.warnAtPercent, CostAlertPercent: allowed.costAlertPercent, Rate: allowed.rate, Keep: allowed.keep,
		Key: func(ctx context.Context, key policy.SecretKey) (string, error) {
			return a.keys.read(ctx, projectKey{p.feature.Namespace, key})
		},
		Role: role,
	}, nil
}

// termsOf a call. A call of the watchdog itself belongs to no task.
func (a toModels) termsOf(ctx context.Context, p pod, claim modelserver.Claim) (terms, error) {
	if claim.Role == policy.RoleSupervisor {
		effective, err := a.policy(ctx, p.feature)
		return supervisorTerms(effective), err
	}
	return a.pins.terms(ctx, pinned{p.feature.UID, p.attempt, claim.Task}, func() (terms, error) { return a.terms(ctx, p, claim.Task) })
}

// roleOf says which role answers a call that names a model, and whether the agent makes side calls.
func roleOf(p pod, claim modelserver.Claim) (role func(model string) string, sideCalls bool) {
	if claim.Role == policy.RoleSupervisor {
		return func(string) string { return policy.RoleSupervisor }, false
	}
	side := sidecalls.Of(p.feature.Spec.Agent.Runtime)
	return func(model string) string {
		if side.Has(model) {
			return policy.RoleSummarizer
		}
		return policy.RolePrimary
	}, side.Any()
}
