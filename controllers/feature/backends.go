// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/modelbackends"
)

// fleet is what the gateways have in force; empty where no gateway has said so lately.
func (r resolver) fleet(ctx context.Context, now time.Time) (models.Fleet, error) {
	var lease coordinationv1.Lease
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.systemNamespace, Name: protocol.GatewayLease}, &lease); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Lease %s: %w", protocol.GatewayLease, err)
	}
	return modelbackends.InForce(&lease).Alive(now), nil
}

// inForceChanged wakes the Features that wait for a model, when a gateway has something else in force, comes or goes. Renewals wake none.
func (r waker) inForceChanged() handler.EventHandler {
	hash := func(o client.Object) string {
		if lease, ok := o.(*coordinationv1.Lease); ok && lease.Name == protocol.GatewayLease && lease.Namespace == r.systemNamespace {
			fleet := modelbackends.InForce(lease)
			return fmt.Sprint(len(fleet), " ", fleet.Hash())
		}
		return ""
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if hash(e.ObjectOld) == hash(e.ObjectNew) {
				return
			}
			for _, request := range r.in(ctx, "", stateWaitingForModel) {
				queue.Add(request)
			}
		},
	}
}
