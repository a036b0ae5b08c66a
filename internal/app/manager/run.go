// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidewaiter/tidewaiter/controllers"
	"github.com/tidewaiter/tidewaiter/internal/app/process"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
	"github.com/tidewaiter/tidewaiter/internal/kube/metrics"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
	"github.com/tidewaiter/tidewaiter/internal/kube/pki"
)

// What intake and the start of the process need beyond what the controllers state of themselves.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features;supervisorpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features/status,verbs=patch
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=checkpoints,verbs=get;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// In the system namespace: Services for their addresses, the PKI's Secrets by name (creation cannot be restricted so),
// leases of the leader and of each replica, and the events of leader election.
// +kubebuilder:rbac:groups="",namespace=tidewaiter-system,resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=tidewaiter-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=tidewaiter-system,resources=secrets,resourceNames=tidewaiter-ca;tidewaiter-intake-tls;tidewaiter-gateway-tls,verbs=get;update
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=tidewaiter-system,resources=leases,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",namespace=tidewaiter-system,resources=events,verbs=create;patch

const (
	leaderElectionID = "tidewaiter-manager"
	// shutdownTimeout leaves room for intake's orderly end within the pod's 20 seconds.
	shutdownTimeout = 15 * time.Second
	// qps and burst are what the API server may be asked for: 10,000 Features are within reach with it, and priority
	// and fairness of the API server protect it better than we can.
	qps, burst = 200, 400
)

// Main runs the manager with command-line arguments until the context ends. Logs go to out.
func Main(ctx context.Context, args []string, out io.Writer) error {
	var options Options
	return process.Main("manager", &options, args, out, func(config *rest.Config) error {
		return Run(ctx, config, options, logr.FromSlogHandler(options.Logs(out)))
	})
}

// Run runs the manager until the context ends.
func Run(ctx context.Context, config *rest.Config, options Options, log logr.Logger) error {
	managerOptions, err := managerOptions(options)
	if err != nil {
		return err
	}
	return process.Run(ctx, config, process.Process{
		Logger: log, QPS: qps, Burst: burst, Manager: managerOptions,
		SetUp: func(mgr ctrl.Manager, live client.Client) error { return setUp(ctx, mgr, live, options, log) },
	})
}

func managerOptions(o Options) (ctrl.Options, error) {
	cached, err := cacheOptions(o.Namespace)
	return ctrl.Options{
		LeaderElection: o.LeaderElect, LeaderElectionID: leaderElectionID, LeaderElectionNamespace: o.Namespace,
		// The process ends right after the manager: the lease may be given away at once.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		HealthProbeBindAddress:        o.HealthAddress,
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // serveMetrics does
		Cache:                         cached,
	}, err
}

// cacheOptions keep in memory what the controllers look at, and the Services of this system.
func cacheOptions(systemNamespace string) (cache.Options, error) {
	byObject, err := controllers.CacheByObject(systemNamespace)
	if err != nil {
		return cache.Options{}, fmt.Errorf("bound the cache: %w", err)
	}
	byObject[&corev1.Service{}] = cache.ByObject{Namespaces: map[string]cache.Config{systemNamespace: {}}}
	return cache.Options{ByObject: byObject}, nil
}

func setUp(ctx context.Context, mgr ctrl.Manager, live client.Client, o Options, log logr.Logger) error {
	rotator := pki.NewRotator(pki.Options{Live: live, Namespace: o.Namespace, Clock: clock.RealClock{}, Logger: log.WithName("pki")})
	server, err := newIntake(ctx, mgr, rotator, o, log.WithName("intake"))
	if err != nil {
		return err
	}
	ledger := gatewayLedger{endpoints: endpoints{reader: mgr.GetClient(), namespace: o.Namespace}, bundle: rotator.Bundle, token: o.LedgerToken, namespace: o.Namespace}
	if err := serveView(mgr, live, rotator, server, o.ViewAddress, o.Namespace, ledger, log.WithName("view")); err != nil {
		return err
	}
	status, err := newClusterStatus(mgr, live, ledger, o.Namespace, log.WithName("preflight"))
	if err != nil {
		return err
	}
	if err := serveMetrics(mgr, rotator, o.MetricsAddress); err != nil {
		return err
	}
	lease := &intake.Lease{Live: live, Namespace: o.Namespace, Replica: o.Replica, Clock: clock.RealClock{}, Logger: log.WithName("lease")}
	if err := errors.Join(
		mgr.Add(rotator), mgr.Add(server), mgr.Add(lease), mgr.Add(newBundle(live, rotator, o.Namespace, log.WithName("bundle"))), mgr.Add(status),
		// Unauthenticated: the kubelet's probes.
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("certificate", rotator.Intake().Check),
		// Intake starts when the caches are complete.
		mgr.AddReadyzCheck("intake", server.Check),
	); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := controllers.Setup(mgr, controllers.Options{
		SystemNamespace: o.Namespace, Image: o.Image, UserNamespaces: nodes.Setting(o.UserNamespaces), CABundle: rotator,
		Endpoints: endpoints{reader: mgr.GetClient(), namespace: o.Namespace}, Clock: clock.RealClock{},
	}); err != nil {
		return fmt.Errorf("set up controllers: %w", err)
	}
	return nil
}

func newIntake(ctx context.Context, mgr ctrl.Manager, rotator *pki.Rotator, o Options, log logr.Logger) (*intake.Server, error) {
	authenticator, err := identity.New(identity.Options{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}})
	if err != nil {
		return nil, fmt.Errorf("set up authentication: %w", err)
	}
	reports, err := metrics.NewReports(ctrlmetrics.Registry)
	if err != nil {
		return nil, err
	}
	server, err := intake.New(intake.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Authenticator: authenticator,
		Recorder: flow.Recorder{Inner: mgr.GetEventRecorder("tidewaiter-intake")}, Clock: clock.RealClock{},
		SystemNamespace: o.Namespace, Replica: o.Replica, Address: o.IntakeAddress, TLS: rotator.Intake().TLS(), Logger: log,
		Observe: reports.Observe,
		Errands: errands{options: o, endpoints: endpoints{reader: mgr.GetClient(), namespace: o.Namespace}, cache: mgr.GetClient()},
	})
	if err != nil {
		return nil, fmt.Errorf("set up intake: %w", err)
	}
	if err := server.Watch(ctx, mgr.GetCache()); err != nil {
		return nil, fmt.Errorf("set up intake: %w", err)
	}
	return server, nil
}
