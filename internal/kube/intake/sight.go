// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/revision"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
)

// sight is what orders are made of, as a replica saw it at one time. The orders themselves are made and encoded only
// when they are sent: most polls end without.
type sight struct {
	feature *v1alpha1.Feature
	orders  protocol.Orders
	// tag identifies the orders, and revision says how new they are.
	tag      string
	revision revision.Revision
}

// source is where a sight is taken from.
type source struct {
	policies, locks client.Reader
	// asOf is the version up to which policies are known; empty where their reader says so itself.
	asOf string
	// fresh reads the prompt from the API server, whatever is remembered of it.
	fresh bool
}

func (s *Server) cached() source {
	return source{policies: s.options.Client, locks: s.options.Client, asOf: s.policiesAsOf()}
}

func (s *Server) live() source {
	return source{policies: s.options.Live, locks: s.options.Live, fresh: true}
}

// look takes a sight of the orders of a Feature's attempt.
func (s *Server) look(ctx context.Context, q question, f *v1alpha1.Feature, from source) (sight, error) {
	if f.Status.Attempt != q.attempt {
		return sight{}, attemptOver(f, q.attempt)
	}
	effective, asOf, err := identity.EffectiveAt(ctx, from.policies, f, s.options.SystemNamespace)
	if err != nil {
		return sight{}, err
	}
	if asOf.Policies == "" {
		asOf.Policies = from.asOf
	}
	prompt, err := s.prompts.of(ctx, f, from.fresh)
	if err != nil {
		return sight{}, err
	}
	held, err := leases.Held(ctx, from.locks, s.options.Live, s.options.SystemNamespace, f, s.options.Clock.Now())
	if err != nil {
		return sight{}, err
	}
	now := sight{
		feature: f, orders: features.Orders(f, effective, prompt.text, held),
		revision: revision.Revision{Feature: f.ResourceVersion, Policies: asOf.Policies, Prompt: prompt.version, Namespace: asOf.Namespace},
	}
	now.tag, err = tagOf(now, prompt)
	return now, err
}

// tagOf identifies orders without encoding them: the spec by its generation, the policy by its hash and sources, and the
// rest by value. It is the same on every replica.
func tagOf(now sight, prompt promptText) (string, error) {
	o := now.orders
	requests := make([]string, 0, len(o.Requests))
	for _, r := range o.Requests {
		requests = append(requests, r.ID)
	}
	var delivered []string // what others have delivered, which is no part of the spec
	for _, d := range o.Directives {
		if d.Source == protocol.SourceFeature {
			delivered = append(delivered, d.ID, d.Description)
		}
	}
	text, err := json.Marshal([]any{
		o.Version, o.Feature.UID, o.Generation, o.Attempt, o.Run, o.Mode, o.NextMode, o.Stop, o.StopReason, o.Suspend, o.Locks, requests,
		o.Policy.Hash, o.Policy.Sources, o.Policy.Conflicts, prompt.hash, delivered,
	})
	if err != nil {
		return "", fmt.Errorf("identify orders: %w", err)
	}
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:16]) + `"`, nil
}

// encode gives the orders as they are sent.
func (now sight) encode() ([]byte, error) {
	body, err := json.Marshal(now.orders)
	if err != nil {
		return nil, fmt.Errorf("encode orders: %w", err)
	}
	if len(body) > protocol.MaxOrdersBytes {
		return nil, fmt.Errorf("the orders of Feature %s/%s have %d bytes, and there may be %d: see its condition Accepted",
			now.feature.Namespace, now.feature.Name, len(body), protocol.MaxOrdersBytes)
	}
	return body, nil
}
