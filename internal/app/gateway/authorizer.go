// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	coreegress "github.com/tidewaiter/tidewaiter/internal/core/egress"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/host/callers"
	"github.com/tidewaiter/tidewaiter/internal/host/egress"
	"github.com/tidewaiter/tidewaiter/internal/host/models"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// pods knows the pod of a token, its Feature, and the policy that the Feature is held to now.
type pods struct {
	authenticator interface {
		Authenticate(ctx context.Context, token string) (identity.Caller, error)
	}
	policies        client.Reader
	systemNamespace string
}

// pod is one that asks.
type pod struct {
	feature string
	runtime string
	policy  policy.Effective
}

func (p *pods) find(ctx context.Context, token string) (pod, error) {
	caller, err := p.authenticator.Authenticate(identity.From(ctx, callers.Source(ctx)), token)
	switch {
	case errors.Is(err, identity.ErrUnauthenticated), errors.Is(err, identity.ErrForbidden):
		return pod{}, fmt.Errorf("%w: %w", callers.ErrUnauthenticated, err)
	case err != nil:
		return pod{}, fmt.Errorf("%w: %w", callers.ErrUnavailable, err)
	}
	found := pod{feature: client.ObjectKeyFromObject(caller.Feature).String(), runtime: caller.Feature.Spec.Agent.Runtime}
	if found.policy, err = identity.Effective(ctx, p.policies, caller.Feature, p.systemNamespace); err != nil {
		return found, fmt.Errorf("%w: policy: %w", callers.ErrUnavailable, err)
	}
	return found, nil
}

// toHosts authorizes tunnels.
type toHosts struct{ *pods }

var _ egress.Authorizer = toHosts{}

// Authorize implements egress.Authorizer. Whoever asks is on Tidewaiter's side of the pod: agents have no token.
func (a toHosts) Authorize(ctx context.Context, token string) (egress.Caller, error) {
	p, err := a.find(ctx, token)
	if err != nil {
		return egress.Caller{Feature: p.feature}, err
	}
	return egress.Caller{Feature: p.feature, Hosts: p.policy.GitHosts, Field: coreegress.FieldGit}, nil
}

// toModels authorizes calls of models.
type toModels struct{ *pods }

var _ models.Authorizer = toModels{}

// Authorize implements models.Authorizer. The watchdog asks for the agent.
func (a toModels) Authorize(ctx context.Context, token string) (models.Caller, error) {
	p, err := a.find(ctx, token)
	if err != nil {
		return models.Caller{Feature: p.feature}, err
	}
	runtime, _ := runtimes.Find(p.runtime)
	return models.Caller{Feature: p.feature, Models: p.policy.Models, Role: func(model string) string {
		if runtime.Small(model) {
			return coremodels.Summarizer
		}
		return coremodels.Primary
	}}, nil
}
