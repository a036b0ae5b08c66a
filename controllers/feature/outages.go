// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Outages reports an outage of a model backend once for all Features, and its end once, as Events of the ConfigMap with the backends.
// All exported fields are required.
type Outages struct {
	// Client reads the gateways' Lease and writes Events; Live reads the ConfigMap.
	Client client.Client
	Live   client.Reader
	Clock  clock.PassiveClock
	Logger logr.Logger
	// SystemNamespace that Tidewaiter runs in.
	SystemNamespace string

	// open outages that were told, by their backends.
	open map[string]models.Outage
}

// SetupWithManager registers it. One replica does it: it writes.
func (o *Outages) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(o) }

// Start reports outages until the context ends.
func (o *Outages) Start(ctx context.Context) error {
	ticker := time.NewTicker(models.InForceEvery)
	defer ticker.Stop()
	for {
		if err := o.Sync(ctx); err != nil && ctx.Err() == nil {
			o.Logger.Error(err, "Cannot tell of backends that are out; trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Sync looks once. An outage continues until the backend answers: a gateway that restarts in the middle of one does not begin another.
func (o *Outages) Sync(ctx context.Context) error {
	now := o.Clock.Now()
	fleet, err := resolver{client: o.Client, systemNamespace: o.SystemNamespace}.fleet(ctx, now)
	if err != nil {
		return err
	}
	var errs []error
	for backend, out := range o.open {
		if !fleet.Over(out) {
			continue
		}
		if err := o.tell(ctx, out, corev1.EventTypeNormal, v1alpha1.ReasonProviderAvailable, "The backend %s is no longer out for all Features. It was since %s.", backend, out.Since.UTC().Format(time.RFC3339)); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(o.open, backend)
	}
	for _, out := range fleet.Outages() {
		if _, told := o.open[out.Backend]; told {
			continue
		}
		if err := o.tell(ctx, out, corev1.EventTypeWarning, v1alpha1.ReasonProviderUnavailable, "The backend %s is out for all Features since %s. No agent is to blame, and Tidewaiter takes no measure against agents that wait for it. "+
			"The gateway tries calls again, and sends them to the backend's fallbacks meanwhile: see the provider's status page, or add a fallback.", out.Backend, out.Since.UTC().Format(time.RFC3339)); err != nil {
			errs = append(errs, err)
			continue
		}
		if o.open == nil {
			o.open = map[string]models.Outage{}
		}
		o.open[out.Backend] = out
	}
	return errors.Join(errs...)
}

// tell of an outage or of its end. The name of the Event says which one it is, so that another manager does not tell it again.
func (o *Outages) tell(ctx context.Context, out models.Outage, kind, reason, note string, args ...any) error {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: o.SystemNamespace, Name: protocol.BackendsConfigMap}
	var config corev1.ConfigMap
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: about.Namespace, Name: about.Name}, &config); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", about.Name, err)
	}
	about.UID = config.UID
	which := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", reason, out.Backend, out.Since.UnixNano()))
	err := o.Client.Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.SystemNamespace, Name: fmt.Sprintf("%s.%x", protocol.BackendsConfigMap, which[:8])},
		EventTime:  metav1.NewMicroTime(o.Clock.Now()), ReportingController: "tidewaiter", ReportingInstance: "tidewaiter-manager",
		Type: kind, Reason: reason, Action: "Observed", Regarding: about, Note: fmt.Sprintf(note, args...),
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("tell of the backend %s: %w", out.Backend, err)
	}
	return nil
}
