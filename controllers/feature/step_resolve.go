// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/bounds"
	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

// resolver finds out what a Feature's spec comes to.
type resolver struct {
	// client reads from the cache, live from the API server.
	client, live    client.Reader
	bundle          CABundle
	endpoints       Endpoints
	systemNamespace string
}

func (r *Reconciler) resolver() resolver {
	return resolver{client: r.Client, live: r.Live, bundle: r.CABundle, endpoints: r.Endpoints, systemNamespace: r.SystemNamespace}
}

// policy merges the policies that the Feature is held to. One that applies and cannot be used refuses the
// Feature: a rule that cannot be read guards nothing.
func (r resolver) policy(ctx context.Context, s *scope) error {
	effective, err := identity.Effective(ctx, r.client, s.feature, r.systemNamespace)
	if errors.Is(err, supervisorpolicy.ErrUnusable) {
		s.effective.SuspendedBy = effective.SuspendedBy
		s.refuse(v1alpha1.ReasonPolicyInvalid, true, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	if err != nil {
		return fmt.Errorf("resolve policy: %w", err)
	}
	s.effective = effective
	return nil
}

// resolveAgent refuses what this version cannot run.
func resolveAgent(_ context.Context, s *scope) error {
	name := s.feature.Spec.Agent.Runtime
	runtime, known := runtimes.Find(name)
	if !known || !runtime.Available {
		s.refuse(v1alpha1.ReasonRuntimeNotAvailable, true,
			"spec.agent.runtime %q is not available in this version. Create the Feature with runtime %q, an image and a command.", name, "command")
		return nil
	}
	if s.refusal != nil { // without a policy there is no mode
		return nil
	}
	if choice := features.Mode(s.feature, s.effective); choice.Mode == "" {
		s.refuse(v1alpha1.ReasonModeNotAvailable, true, "%s", choice.Notice)
	}
	s.checkBounds()
	return nil
}

// checkBounds refuses what the Feature has chosen and its policy does not allow. What has been delivered is not refused
// afterwards.
func (s *scope) checkBounds() {
	f, e := s.feature, s.effective
	if f.Status.Phase == v1alpha1.PhaseDelivered {
		return
	}
	if role := f.Spec.Agent.Role; e.AllowedRoles != nil && !slices.Contains(e.AllowedRoles, role) {
		allowed := "no role at all, because the lists have none in common"
		if len(e.AllowedRoles) > 0 {
			allowed = strings.Join(e.AllowedRoles, ", ")
		}
		s.refuse(v1alpha1.ReasonRoleNotAllowed, true, "spec.agent.role is %q, and the policy (agents.allowedRoles in %s) allows %s. "+
			"Create the Feature again with an allowed role, or ask for a change of the policy.", role, e.Origins["agents.allowedRoles"], allowed)
	}
	if fault := bounds.Check(features.Use(f), e); fault != nil {
		s.refuse(fault.Reason, true, "%s", fault.Message)
	}
	if why := besideGateway(f, e); why != "" {
		s.refuse(v1alpha1.ReasonModelProviderNotAllowed, true, "%s. The policy has agents ask models only through the gateway, which holds the keys and the budgets "+
			"(egress.modelProviders, Deny unless a SupervisorPolicy says Allow).", why)
	}
	if features.Ephemeral(f) && e.Approval == policy.ApprovalRequired {
		s.refuse(v1alpha1.ReasonVolumesRequired, true, "The policy requires an approval (delivery.approval in %s), and with spec.workspace.ephemeral the work "+
			"would be gone before an approver can look at it. Create the Feature again without spec.workspace.ephemeral.", e.Origins["delivery.approval"])
	}
	if features.Ephemeral(f) && len(features.DeliveryGates(f, e)) > 0 {
		by := "spec.delivery.gates"
		if len(e.Gates) > 0 {
			by = "gates in " + e.Origins["gates."+e.Gates[0].Name]
		}
		s.refuse(v1alpha1.ReasonVolumesRequired, true, "Gates must pass before the delivery (%s), each in a pod of its own, and with spec.workspace.ephemeral the work "+
			"would be gone before they run. Create the Feature again without spec.workspace.ephemeral.", by)
	}
}

// besideGateway says what would have a Feature's agent reach a provider of models beside the gateway; empty where nothing would, or where the policy
// allows it. Wildcards in egress.agent may stand for more than a provider: the gateway looks at each host that an agent asks for.
func besideGateway(f *v1alpha1.Feature, e policy.Effective) string {
	if e.ModelProviders == policy.ModelProvidersAllow {
		return ""
	}
	for _, v := range f.Spec.Agent.Env {
		if why := egress.Key(v.Name, v.Value); why != "" {
			return fmt.Sprintf("spec.agent.env %s %s: create the Feature again without it", v.Name, why)
		}
	}
	for _, g := range f.Spec.Gates { // what a gate runs, the agent has written
		for _, v := range g.Env {
			if why := egress.Key(v.Name, v.Value); why != "" {
				return fmt.Sprintf("spec.gates %s env %s %s: remove it", g.Name, v.Name, why)
			}
		}
	}
	for _, g := range e.Gates {
		for _, v := range g.Env {
			name, value, _ := strings.Cut(v, "=")
			if why := egress.Key(name, value); why != "" {
				return fmt.Sprintf("gates (in %s) %s env %s %s: remove it", e.Origins["gates."+g.Name], g.Name, name, why)
			}
		}
	}
	for _, h := range e.AgentHosts {
		if provider := egress.Provider(h.Name); provider != "" {
			return fmt.Sprintf("egress.agent (in %s) lists %s of %s, a provider of models: take it out", e.Origins["egress.agent"], h.Name, provider)
		}
	}
	return ""
}

// prompt looks for a prompt that is kept in a ConfigMap. ConfigMaps are not watched: the manager needs no right
// to list them, and a Feature that waits for one looks again by itself.
func (r resolver) prompt(ctx context.Context, s *scope) error {
	s.prompt = s.feature.Spec.Prompt
	name, key, ok := features.PromptKey(s.feature)
	if !ok || s.active() || s.refusal != nil || s.feature.DeletionTimestamp != nil || s.feature.Status.Phase == v1alpha1.PhaseDelivered {
		return nil
	}
	var prompt corev1.ConfigMap
	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.feature.Namespace, Name: name}, &prompt)
	switch {
	case apierrors.IsNotFound(err):
		s.refuse(v1alpha1.ReasonPromptNotFound, false, "ConfigMap %s of spec.promptFrom does not exist in namespace %s: create it.", name, s.feature.Namespace)
	case err != nil:
		return fmt.Errorf("read prompt from ConfigMap %s: %w", name, err)
	case strings.TrimSpace(prompt.Data[key]) == "":
		s.refuse(v1alpha1.ReasonPromptNotFound, false, "ConfigMap %s of spec.promptFrom has no text under key %q: add it.", name, key)
	default:
		s.prompt = prompt.Data[key]
	}
	return nil
}

// resolveOrders refuses what is too large for the agent's pod to be told, or for its agent to be started with. Of a
// prompt in a ConfigMap that changes under a running attempt intake says so: it tells no orders that are too large.
func resolveOrders(_ context.Context, s *scope) error {
	if s.refusal != nil || s.feature.DeletionTimestamp != nil || s.feature.Status.Phase == v1alpha1.PhaseDelivered {
		return nil
	}
	if problem := features.OrdersProblem(s.feature, s.effective, s.prompt); problem != "" {
		s.refuse(v1alpha1.ReasonOrdersTooLarge, true, "%s", problem)
	}
	return nil
}

// model refuses an agent that one of the gateways would not answer, and starts none while no gateway says what it has in force. One that
// runs already is told by the gateway. One that speaks every dialect is told which one its backend speaks, so that it is not started
// without one.
func (r resolver) model(ctx context.Context, s *scope) error {
	runtime, _ := runtimes.Find(s.feature.Spec.Agent.Runtime)
	if s.refusal != nil || s.feature.DeletionTimestamp != nil || s.feature.Status.Phase == v1alpha1.PhaseDelivered {
		return nil
	}
	fleet, err := r.fleet(ctx, s.now)
	s.backends, s.outage = fleet.Hash(), fleet.OutFor(runtime.Dialect, s.effective.Models)
	switch {
	case runtime.Dialect == "" && !runtime.EveryDialect, s.active():
		return nil // an agent that asks models and runs hears of it from the gateway
	case err != nil:
		return err
	case len(fleet) == 0:
		s.obstacle = &lifecycle.Refusal{Reason: v1alpha1.ReasonSystemNotReady, Message: fmt.Sprintf(
			"No gateway says which models it has: see whether a pod of the Deployment %s in %s is ready, and its log.", protocol.GatewayService, r.systemNamespace)}
		return nil
	}
	dialect := runtime.Dialect
	if runtime.EveryDialect {
		dialect = ""
	}
	choice, err := fleet.Choose(dialect, s.effective.Models)
	if err != nil {
		s.refuse(v1alpha1.ReasonModelNotAvailable, false, "The runtime %s has no model: %s (ConfigMap %s in %s).", runtime.Name, err, protocol.BackendsConfigMap, r.systemNamespace)
		return nil
	}
	if s.window = choice.Window; runtime.EveryDialect {
		s.dialect = choice.Dialect
	}
	return nil
}

// system finds out how pods reach intake and gateway, and what vouches for them.
func (r resolver) system(ctx context.Context, s *scope) error {
	intake, gateway, err := r.endpoints.Addresses(ctx)
	switch {
	case err != nil:
		s.obstacle = &lifecycle.Refusal{Reason: v1alpha1.ReasonSystemNotReady, Message: "Tidewaiter is not ready: " + err.Error() + "."}
	case len(r.bundle.Bundle()) == 0:
		s.obstacle = &lifecycle.Refusal{Reason: v1alpha1.ReasonSystemNotReady, Message: "Tidewaiter is not ready: it is creating its certificate authority."}
	default:
		s.intake, s.gateway = intake, gateway
	}
	return nil
}
