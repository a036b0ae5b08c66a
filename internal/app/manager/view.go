// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
	"github.com/tidewaiter/tidewaiter/internal/kube/pki"
	"github.com/tidewaiter/tidewaiter/internal/kube/view"
)

// serveView serves the aggregated API with intake's certificate, only to kube-apiserver, and keeps its registration. What it needs in
// addition to the manager's role is installed together with the APIService (config/view).
func serveView(mgr ctrl.Manager, live client.Client, rotator *pki.Rotator, asker *intake.Server, address, namespace string, turns view.Ledger, log logr.Logger) error {
	if address == "0" {
		return nil
	}
	clients, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make clients for the aggregated API: %w", err)
	}
	proxy, err := view.NewFrontProxy(clients)
	if err != nil {
		return err
	}
	reviews, err := view.NewAuthorizer(clients)
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	rotator.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err := errors.Join(
		mgr.Add(proxy),
		mgr.Add(view.New(view.Options{
			Live: mgr.GetAPIReader(), SystemNamespace: namespace, Ledger: turns, Authenticator: proxy, Authorizer: reviews, Asker: asker, Clock: clock.RealClock{},
			Address: address, TLS: rotator.Intake().TLS(), Logger: log,
		})),
		mgr.Add(&view.Registration{Live: live, Bundle: rotator.Bundle, Changed: changed, Clock: clock.RealClock{}, Logger: log}),
	); err != nil {
		return fmt.Errorf("set up the aggregated API: %w", err)
	}
	return nil
}

// errands are Jobs that answer inquiries about Features without a pod.
type errands struct {
	options   Options
	endpoints endpoints
	// cache has policies and nodes.
	cache client.Reader
}

var _ intake.Errands = errands{}

// Claim implements intake.Errands.
func (errands) Claim(f *v1alpha1.Feature) string {
	if features.Ephemeral(f) {
		return ""
	}
	return desired.TrustedClaim(f.Name)
}

// Job implements intake.Errands.
func (e errands) Job(ctx context.Context, f *v1alpha1.Feature, q protocol.Inquiry) (*batchv1.Job, error) {
	intake, gateway, err := e.endpoints.Addresses(ctx)
	if err != nil {
		return nil, err
	}
	inquiry, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode the inquiry: %w", err)
	}
	effective, err := identity.Effective(ctx, e.cache, f, e.options.Namespace)
	if err != nil {
		return nil, fmt.Errorf("find out where the pod of an inquiry may run: %w", err)
	}
	mapped, err := nodes.UserNamespaces(ctx, e.cache, nodes.Setting(e.options.UserNamespaces), effective.Pod, "")
	if err != nil {
		return nil, fmt.Errorf("find out whether nodes have user namespaces: %w", err)
	}
	wanted := desired.InquiryJob(f, q.ID, string(inquiry), desired.Options{
		SystemNamespace: e.options.Namespace, Image: e.options.Image, UserNamespaces: mapped, Pod: effective.Pod, Intake: intake, Gateway: gateway,
	})
	job := &batchv1.Job{}
	text, err := json.Marshal(wanted)
	if err == nil {
		err = json.Unmarshal(text, job)
	}
	if err != nil {
		return nil, fmt.Errorf("make Job %s: %w", *wanted.Name, err)
	}
	return job, nil
}
