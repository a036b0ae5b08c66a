// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers registers Tidewaiter's controllers with a manager.
package controllers

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidewaiter/tidewaiter/controllers/checkpoint"
	"github.com/tidewaiter/tidewaiter/controllers/feature"
	"github.com/tidewaiter/tidewaiter/controllers/supervisorpolicy"
	"github.com/tidewaiter/tidewaiter/controllers/template"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
)

// Options are what the controllers need in addition to the manager; all are required.
type Options struct {
	// SystemNamespace that Tidewaiter runs in.
	SystemNamespace string
	// Image of Tidewaiter's own containers in the pods of Features.
	Image string
	// UserNamespaces says who decides whether these pods get user namespaces of their own.
	UserNamespaces nodes.Setting
	// CABundle and Endpoints of intake and gateway.
	CABundle  feature.CABundle
	Endpoints feature.Endpoints
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Setup registers every controller.
func Setup(mgr ctrl.Manager, o Options) error {
	client, live := mgr.GetClient(), mgr.GetAPIReader()
	all := []interface{ SetupWithManager(ctrl.Manager) error }{
		&feature.Reconciler{
			Client: client, Live: live, Recorder: flow.Recorder{Inner: mgr.GetEventRecorder("tidewaiter")}, Clock: o.Clock, CABundle: o.CABundle,
			Locks:     &leases.Keeper{Namespace: o.SystemNamespace, Client: client, Live: live},
			Endpoints: o.Endpoints, SystemNamespace: o.SystemNamespace, Image: o.Image, UserNamespaces: o.UserNamespaces,
		},
		&feature.Outages{Client: client, Live: live, Clock: o.Clock, Logger: mgr.GetLogger().WithName("outages"), SystemNamespace: o.SystemNamespace},
		&checkpoint.Reconciler{Client: client, Clock: o.Clock, SystemNamespace: o.SystemNamespace},
		&supervisorpolicy.Reconciler{Client: client, Clock: o.Clock, SystemNamespace: o.SystemNamespace},
		&template.Reconciler{Client: client, Live: live, Clock: o.Clock, SystemNamespace: o.SystemNamespace},
		&template.Mirror{Client: client, Live: live, Logger: mgr.GetLogger().WithName("templates"), SystemNamespace: o.SystemNamespace},
	}
	for _, controller := range all {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up %T: %w", controller, err)
		}
	}
	return nil
}
