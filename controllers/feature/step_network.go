// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/networkpolicy"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

const (
	// indexOpens finds the network policies of a project that open anything to more than Tidewaiter's own do.
	indexOpens = ".tidewaiter.opens"
	opensYes   = "yes"
	// maxNetworks is how many network policies of others are looked at in a project. Projects have a handful.
	maxNetworks = 1000
	// networkPage is how many are read from the API server at a time: an object may have 1.5 MB, and all of them may
	// be as large as that.
	networkPage = 20
	// networkPause gathers the changes of network policies of a project: one that changes again and again wakes each
	// Feature of the project once in this time.
	networkPause = time.Second
)

// networkLister lists the network policies of the Feature's project that may open its network, and whether these are all.
type networkLister func(ctx context.Context, s *scope) (list []isolation.Policy, all bool, err error)

// networkReader finds out which network policies open the network of agents.
type networkReader struct {
	// client reads from the cache, live from the API server.
	client, live client.Reader
	// base is what every network policy of a Feature allows.
	base *isolation.Policy
	// listing is held while network policies are read page by page.
	listing *sync.Mutex
}

// look finds out which network policies open the network of the agent's pod: of the current attempt, or of the
// next one before there is any. Pods without an agent run Tidewaiter's own programs and are not looked at.
func (r networkReader) look(ctx context.Context, s *scope, pods []corev1.Pod, from networkLister) error {
	list, all, err := from(ctx, s)
	if err != nil {
		return err
	}
	s.observed.Isolation = lifecycle.Isolation{
		Enforce:  s.effective.Isolation != policy.IsolationWarn,
		Openings: isolation.Find(list, r.base, agentPods(s, pods)...),
	}
	if !all {
		s.observed.Isolation.TooMany = maxNetworks
	}
	return nil
}

// agentPods are the labels of the pod with the agent, or with a gate in a pod of its own, as Tidewaiter makes it, and of the pods that exist:
// something else may have added labels to them.
func agentPods(s *scope, pods []corev1.Pod) []map[string]string {
	f := s.feature
	start, uid := lifecycle.Start{Attempt: f.Status.Attempt + 1, Run: lifecycle.RunAgent, Mode: s.observed.Spec.Mode}, ""
	gate := lifecycle.Start{Attempt: start.Attempt, Run: lifecycle.RunGate}
	if s.active() && f.Status.Job.Run == v1alpha1.RunKindAgent {
		start.Attempt, start.Mode = f.Status.Attempt, string(f.Status.Job.Mode)
		for _, j := range s.observed.Jobs {
			if j.Attempt == start.Attempt {
				uid = j.UID
			}
		}
	}
	all := []map[string]string{desired.PodLabels(f, start, uid)}
	if len(s.observed.Spec.Gates) > 0 {
		all = append(all, desired.PodLabels(f, gate, ""))
	}
	for i := range pods {
		run := pods[i].Labels[v1alpha1.LabelRun]
		if (run == v1alpha1.RunAgent || run == v1alpha1.RunGate) && !observe.PodEnded(&pods[i]) {
			all = append(all, pods[i].Labels)
		}
	}
	return all
}

// cached are those that open anything, as the cache shows them.
func (r networkReader) cached(ctx context.Context, s *scope) ([]isolation.Policy, bool, error) {
	cached, err := r.openings(ctx, s)
	return ofOthers(s, cached), len(cached) <= maxNetworks, err
}

func (r networkReader) openings(ctx context.Context, s *scope) ([]networkingv1.NetworkPolicy, error) {
	var cached networkingv1.NetworkPolicyList
	// They are only looked at.
	err := r.client.List(ctx, &cached, client.InNamespace(s.feature.Namespace), client.MatchingFields{indexOpens: opensYes}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list NetworkPolicies of the project: %w", err)
	}
	return cached.Items, nil
}

// fromServer reads them from the API server before an agent starts, and before one is ended because of them. Those with
// Tidewaiter's label are taken from the cache: only the manager may make one, and each Feature has one.
func (r networkReader) fromServer(ctx context.Context, s *scope) ([]isolation.Policy, bool, error) {
	cached, err := r.openings(ctx, s)
	if err != nil || s.active() && len(cached) == 0 {
		return nil, true, err
	}
	found := ofOthers(s, slices.DeleteFunc(slices.Clone(cached), func(p networkingv1.NetworkPolicy) bool {
		_, labelled := p.Labels[v1alpha1.LabelFeature]
		return !labelled
	}))
	unlabelled, err := labels.NewRequirement(v1alpha1.LabelFeature, selection.DoesNotExist, nil)
	if err != nil {
		return nil, false, err
	}
	options := client.ListOptions{Namespace: s.feature.Namespace, LabelSelector: labels.NewSelector().Add(*unlabelled), Limit: networkPage}
	r.listing.Lock() // One page in memory at a time.
	defer r.listing.Unlock()
	for read := 0; read < maxNetworks; {
		var page networkingv1.NetworkPolicyList
		if err := r.live.List(ctx, &page, &options); err != nil {
			return nil, false, fmt.Errorf("read NetworkPolicies of the project: %w", err)
		}
		for i := range page.Items {
			page.Items[i] = *networkpolicy.Reduced(&page.Items[i], r.base)
		}
		found = append(found, ofOthers(s, page.Items)...)
		read += len(page.Items)
		if page.Continue == "" {
			return found, true, nil
		}
		options.Continue = page.Continue
	}
	return found, false, nil
}

// ofOthers leaves out the Feature's own network policy: where it was changed, it is put right.
func ofOthers(s *scope, list []networkingv1.NetworkPolicy) []isolation.Policy {
	var out []isolation.Policy
	for i := range list {
		if list[i].Name != naming.NetworkPolicy(s.feature.Name) {
			out = append(out, networkpolicy.Values(&list[i]))
		}
	}
	return out
}
