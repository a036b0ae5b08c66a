// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	coreegress "github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/host/egress"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// authorizer knows the pods of Features and what their policies let them reach.
type authorizer struct {
	pods interface {
		Authenticate(ctx context.Context, token string) (identity.Caller, error)
	}
	policies        client.Reader
	systemNamespace string
}

var _ egress.Authorizer = (*authorizer)(nil)

// Authorize gives the Git hosts that the Feature of a pod may reach under the policy that is in effect now. Only
// prepare, watchdog and seal have a token; the agent has none and reaches nothing.
func (a *authorizer) Authorize(ctx context.Context, token string) (egress.Caller, error) {
	caller, err := a.pods.Authenticate(identity.From(ctx, egress.Source(ctx)), token)
	switch {
	case errors.Is(err, identity.ErrUnauthenticated), errors.Is(err, identity.ErrForbidden):
		return egress.Caller{}, fmt.Errorf("%w: %w", egress.ErrUnauthenticated, err)
	case err != nil:
		return egress.Caller{}, fmt.Errorf("%w: %w", egress.ErrUnavailable, err)
	}
	name := client.ObjectKeyFromObject(caller.Feature).String()
	effective, err := identity.Effective(ctx, a.policies, caller.Feature, a.systemNamespace)
	if err != nil {
		return egress.Caller{Feature: name}, fmt.Errorf("%w: policy: %w", egress.ErrUnavailable, err)
	}
	return egress.Caller{Feature: name, Hosts: effective.GitHosts, Field: coreegress.FieldGit}, nil
}
