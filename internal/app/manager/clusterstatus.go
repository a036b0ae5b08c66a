// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/clusterfacts"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
)

// +kubebuilder:rbac:groups="",namespace=tidewaiter-system,resources=configmaps,resourceNames=tidewaiter-status,verbs=create;patch

const (
	// statusOwner owns the entries of the status ConfigMap.
	statusOwner = client.FieldOwner("tidewaiter-status")
	// statusEvery is how often the manager looks at the cluster, and statusSoon how soon again while a check fails: the gateway may be starting.
	statusEvery = time.Hour
	statusSoon  = 2 * time.Minute
)

// clusterStatus makes the checks of the preflight that need no pods, and keeps what they find in a ConfigMap of the system namespace.
type clusterStatus struct {
	// cached has nodes and Features; live reads everything else, and writes.
	cached    client.Reader
	live      client.Client
	discovery discovery.ServerVersionInterface
	// gateway says why it does not answer.
	gateway   func(context.Context) error
	recorder  flow.Recorder
	namespace string
	log       logr.Logger
}

func newClusterStatus(mgr ctrl.Manager, live client.Client, ledger gatewayLedger, namespace string, log logr.Logger) (*clusterStatus, error) {
	version, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up the checks of the cluster: %w", err)
	}
	return &clusterStatus{
		cached: mgr.GetClient(), live: live, discovery: version, gateway: ledger.Answers,
		recorder: flow.Recorder{Inner: mgr.GetEventRecorder("tidewaiter-preflight")}, namespace: namespace, log: log,
	}, nil
}

// Start looks at the cluster now and then until the context ends. Only the leader does. Nothing that it finds ends the manager.
func (s *clusterStatus) Start(ctx context.Context) error {
	for {
		worst, err := s.look(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Error(err, "Cannot write what the checks of the cluster find; trying again")
		}
		wait := statusEvery
		if err != nil || worst == preflight.Failed {
			wait = statusSoon
		}
		timer := clock.RealClock{}.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// look at the cluster once, and write what it finds.
func (s *clusterStatus) look(ctx context.Context) (preflight.Status, error) {
	found := preflight.Run(s.facts(ctx), preflight.InManager)
	return preflight.Worst(found), s.write(ctx, preflight.Entries(found))
}

// facts of the cluster. What cannot be read is noted, and fails its check.
func (s *clusterStatus) facts(ctx context.Context) *preflight.Facts {
	f := &preflight.Facts{Unread: map[string]string{}}
	note := func(id string, err error) {
		if err != nil {
			f.Unread[id] = err.Error()
		}
	}
	version, err := s.discovery.ServerVersion()
	if note(preflight.KubernetesVersion, err); err == nil {
		f.Version = version.GitVersion
	}
	f.Nodes, err = clusterfacts.Nodes(ctx, s.cached)
	note(preflight.DefaultClass, err)
	f.Classes, err = clusterfacts.Classes(ctx, s.live)
	note(preflight.DefaultClass, err)
	f.SystemLevel, err = clusterfacts.PodSecurity(ctx, s.live, s.namespace)
	note(preflight.PodSecurityLevel, err)
	f.Opened, f.Degraded, err = clusterfacts.Features(ctx, s.cached)
	note(preflight.Features, err)
	note(preflight.Gateway, s.gateway(ctx))
	return f
}

// write the entries if they are others than before, and send an Event of each check whose status has changed.
func (s *clusterStatus) write(ctx context.Context, entries map[string]string) error {
	status := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: s.namespace, Name: protocol.StatusConfigMap}
	if err := s.live.Get(ctx, key, status); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", protocol.StatusConfigMap, err)
	}
	before := status.Data
	if maps.Equal(before, entries) {
		return nil
	}
	wanted := corev1ac.ConfigMap(protocol.StatusConfigMap, s.namespace).WithLabels(map[string]string{"app.kubernetes.io/name": "tidewaiter"}).WithData(entries)
	if err := s.live.Apply(ctx, wanted, statusOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s: %w", protocol.StatusConfigMap, err)
	}
	if err := s.live.Get(ctx, key, status); err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", protocol.StatusConfigMap, err)
	}
	for _, id := range preflight.Changed(before, entries) {
		kind, reason := corev1.EventTypeWarning, "CheckFailed"
		switch preflight.StatusOf(entries[id]) {
		case preflight.OK:
			kind, reason = corev1.EventTypeNormal, "CheckPassed"
		case preflight.Warning:
			reason = "CheckWarned"
		case preflight.Failed:
		}
		s.recorder.Eventf(status, nil, kind, reason, "Check", "%s is %s", id, entries[id])
	}
	return nil
}
