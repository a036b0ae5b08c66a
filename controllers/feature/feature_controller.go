// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feature reconciles Features: it observes the state, lets core/lifecycle decide, carries out the decision, and writes the status once.
package feature

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
)

// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features/status,verbs=patch
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features/finalizers,verbs=update
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=supervisorpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=tidewaiter-ca,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=tidewaiter-system,verbs=get;list;watch

// fieldOwner of everything that this controller applies. Intake owns status.run under a name of its own.
const fieldOwner = client.FieldOwner("tidewaiter-feature")

// CABundle vouches for intake and gateway.
type CABundle interface {
	// Bundle is PEM, or nil while it is not known.
	Bundle() []byte
	// OnChange calls back after the bundle changed.
	OnChange(func())
}

// Endpoints are where pods find intake and gateway.
type Endpoints interface {
	// Addresses fails, naming the Service, while one has no address.
	Addresses(ctx context.Context) (intake, gateway netip.Addr, err error)
}

// Reconciler reconciles Features. All exported fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server, before anything that cannot be undone.
	Live client.Reader
	// Recorder sends events.
	Recorder events.EventRecorder
	// Locks of contracts.
	Locks *leases.Keeper
	// Clock tells the time.
	Clock clock.PassiveClock
	// CABundle and Endpoints of intake and gateway.
	CABundle  CABundle
	Endpoints Endpoints
	// SystemNamespace that Tidewaiter runs in.
	SystemNamespace string
	// Image of Tidewaiter's own containers.
	Image string
	// UserNamespaces says who decides whether a pod gets a user namespace of its own.
	UserNamespaces nodes.Setting

	// process is what this process remembers between reconciles.
	process process
	// baseIs is what every network policy of a Feature allows.
	baseOnce sync.Once
	baseIs   *isolation.Policy
}

// process is what a process remembers between reconciles. The zero value is ready.
type process struct {
	// fresh knows what was written last.
	fresh flow.Fresh
	// admission decides between the Features that want to start.
	admission admission
	// listing is held while network policies are read page by page.
	listing sync.Mutex
	// replicas whose Leases are gone, and since when this process reconciles.
	replicas replicas
	began    sync.Once
	since    time.Time
}

// base is what the network policies of Features allow.
func (r *Reconciler) base() *isolation.Policy {
	r.baseOnce.Do(func() { r.baseIs = desired.Isolation(r.SystemNamespace) })
	return r.baseIs
}

// overFeatures reconciles Features, and ends what is left of those that are gone.
func (r *Reconciler) overFeatures(from client.Reader) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		f := &v1alpha1.Feature{}
		err := from.Get(ctx, request.NamespacedName, f)
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, r.endRemains(ctx, request.NamespacedName)
		}
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("read Feature: %w", err)
		}
		return r.Reconcile(ctx, f)
	})
}

// Reconcile is the whole story of a Feature, one line per step.
func (r *Reconciler) Reconcile(ctx context.Context, f *v1alpha1.Feature) (ctrl.Result, error) {
	s := newScope(f, r.Clock.Now())
	resolve, look, attempt := r.resolver(), r.observer(), r.maker()
	err := flow.Run(ctx, s,
		r.checkFresh,               // is our own last write in the cache?
		r.addFinalizer,             // write: before there is anything that it guards
		resolve.policy,             // read + core/policy
		resolveAgent,               // does this version know runtime and mode?
		resolve.prompt,             // read
		resolveOrders,              // does everything fit?
		resolve.model,              // read: the cache, is there a backend in force?
		resolve.system,             // read: addresses and CA bundle
		look.observe,               // read: the cache
		decide,                     // pure: core/lifecycle
		r.settle,                   // read, and write what starts an attempt: gather what the decision needs, decide again
		r.removeLeftover,           // write: Jobs and pods
		attempt.ensureDependencies, // write: what a running attempt depends on
		r.renewLocks,               // write: Leases that are held
		r.freeLocks,                // write: Leases that no status names any more
		r.releaseFinalizer,         // write: finalizer, or the Feature itself
		reportUnmet,                // what could not be gathered
	)
	return flow.Finish(ctx, err, r.close(s))
}
