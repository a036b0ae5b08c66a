// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// Watch lets changes of what orders are made of wake the polls that wait for them.
func (s *Server) Watch(ctx context.Context, informers cache.Informers) error {
	watches := []struct {
		object  client.Object
		changed func(types.NamespacedName)
		// policies marks the cache whose own version says how new the policies are: what was deleted has no version.
		policies bool
	}{
		{&v1alpha1.Feature{}, s.hub.feature, false},
		{&v1alpha1.SupervisorPolicy{}, s.policyChanged, true},
	}
	for _, watch := range watches {
		informer, err := informers.GetInformer(ctx, watch.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", watch.object, err)
		}
		if cached, ok := informer.(interface{ GetStore() toolscache.Store }); ok && watch.policies {
			s.policies = cached.GetStore()
		}
		notify := func(object any) {
			if f, ok := object.(*v1alpha1.Feature); ok {
				s.sessions.noticed(f)
			}
			if key, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
				watch.changed(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
			}
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, object any) { notify(object) },
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %T: %w", watch.object, err)
		}
	}
	if err := watchNamespaces(ctx, informers, s.hub.project); err != nil {
		return err
	}
	return s.inquiries.watch(ctx, informers, s.hub.feature)
}

// watchNamespaces wakes the polls of a project when the labels of its namespace change: policies may select by them.
func watchNamespaces(ctx context.Context, informers cache.Informers, wake func(project string)) error {
	informer, err := informers.GetInformer(ctx, identity.Namespace(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	handler := toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(old, object any) {
		was, okOld := old.(client.Object)
		is, okNew := object.(client.Object)
		if okOld && okNew && !maps.Equal(was.GetLabels(), is.GetLabels()) {
			wake(is.GetName())
		}
	}}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	return nil
}

// policiesAsOf is the version up to which the cache knows the policies; empty where it does not say.
func (s *Server) policiesAsOf() string {
	if s.policies == nil {
		return ""
	}
	return s.policies.LastStoreSyncResourceVersion()
}

// policyChanged wakes the polls of the project that a policy is for; a policy of the system's namespace is for all.
func (s *Server) policyChanged(key types.NamespacedName) {
	if key.Namespace == s.options.SystemNamespace {
		s.hub.all()
		return
	}
	s.hub.project(key.Namespace)
}
