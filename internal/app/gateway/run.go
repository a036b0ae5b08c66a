// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/app/process"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/egressproxy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/pki"
)

const (
	// drainTime lets answers and open tunnels finish after the signal to end, and lastTime lets those be recorded that did
	// not; its pod has 30 seconds.
	drainTime, lastTime = 20 * time.Second, 4 * time.Second
	// shutdownTimeout is a little longer.
	shutdownTimeout = 26 * time.Second
	// qps and burst are what the API server may be asked for: three reads for each pod in 30 seconds.
	qps, burst = 100, 200
)

// Main runs the gateway with command-line arguments until the context ends. Logs go to out.
func Main(ctx context.Context, args []string, out io.Writer) error {
	var options Options
	return process.Main("gateway", &options, args, out, func(config *rest.Config) error {
		return Run(ctx, config, options, options.Logs(out))
	})
}

// Run runs the gateway until the context ends.
func Run(ctx context.Context, config *rest.Config, options Options, logs slog.Handler) error {
	modelserver.KeepBelow(options.MemoryLimit)
	return process.Run(ctx, config, process.Process{
		Logger: logr.FromSlogHandler(logs), QPS: qps, Burst: burst,
		// A manager without controllers: it brings caches, probes and an orderly end. Every replica serves.
		Manager: ctrl.Options{
			GracefulShutdownTimeout: ptr.To(shutdownTimeout), Cache: cache.Options{ByObject: watched(options.Namespace)},
			HealthProbeBindAddress: options.HealthAddress, Metrics: metricsserver.Options{BindAddress: "0"}, // ServeMetrics does
		},
		SetUp: func(mgr ctrl.Manager, live client.Client) error { return setUp(ctx, mgr, live, options, logs) },
	})
}

func setUp(ctx context.Context, mgr ctrl.Manager, live client.Client, o Options, logs slog.Handler) error {
	log := logr.FromSlogHandler(logs)
	certificate := pki.NewFollower(pki.Options{Live: live, Namespace: o.Namespace, Clock: clock.RealClock{}, Logger: log.WithName("pki")}, pki.GatewaySecret)
	authenticator, err := identity.New(identity.Options{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}})
	if err != nil {
		return fmt.Errorf("set up authentication: %w", err)
	}
	// Caches are filled before anything is served, not at the first question.
	for _, kind := range []client.Object{&v1alpha1.Feature{}, &v1alpha1.SupervisorPolicy{}, &v1alpha1.Template{}, identity.Namespace()} {
		if _, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	measured, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	if err := process.ServeMetrics(mgr, o.MetricsAddress, certificate.TLS()); err != nil {
		return err
	}
	found := &pods{authenticator: authenticator, objects: mgr.GetClient(), systemNamespace: o.Namespace}
	served := make(chan struct{})
	ledgerLog := slog.New(logs).With("logger", "ledger")
	kept := &recorder{options: o, retention: retention{pods: found, log: ledgerLog}, log: ledgerLog, dropped: measured.dropped, unused: served}
	pins, err := newPins(kept)
	if err != nil {
		return err
	}
	limits, err := newBudgets(slog.New(logs).With("logger", "budgets"))
	if err != nil {
		return err
	}
	keys := newProjectKeys(mgr.GetAPIReader(), types.NamespacedName{Namespace: o.Namespace, Name: protocol.GatewayAccount})
	announced := newAnnouncer(live, o.Namespace, o.Replica, slog.New(logs).With("logger", "backends"))
	b := newBackends(mgr.GetCache(), o.Namespace, slog.New(logs).With("logger", "backends"), measured.configured, announced.say)
	if err := b.watch(ctx, mgr.GetCache()); err != nil {
		return err
	}
	answers := modelserver.New(modelserver.Options{
		Authorizer: toModels{pods: found, pins: pins, keys: keys, budgets: limits, log: slog.New(logs).With("logger", "models")}, Table: b.table.Load, Ledger: kept, Now: time.Now, Logger: slog.New(logs).With("logger", "models"), Observe: measured.call, Avoided: func(backend string, avoided bool) { measured.avoid(backend, avoided); announced.again() },
		Limits: modelserver.Limits{Memory: o.MemoryLimit / 8 * 3},
	})
	announced.reached = answers.Reached
	dialer := net.Dialer{KeepAlive: 30 * time.Second}
	s := &service{address: o.ProxyAddress, certificate: certificate, served: served, answers: answers, log: slog.New(logs).With("logger", "gateway"), proxy: egressproxy.New(egressproxy.Options{
		Authorizer: toHosts{pods: found, backends: func() []string { return b.table.Load().Hosts() }}, Resolver: net.DefaultResolver, Dial: dialer.DialContext, Now: time.Now,
		Logger: slog.New(logs).With("logger", "egress"), Observe: measured.connection, Others: &changes{
			pods: found, budgets: limits, ledger: kept, slots: callers.NewSlots(mostChanges, 1), next: answers, log: slog.New(logs).With("logger", "changes"), observe: measured.handed, step: measured.step, happened: measured.happened,
		},
	})}
	if err := errors.Join(
		mgr.Add(certificate), mgr.Add(b), mgr.Add(announced), mgr.Add(kept), mgr.Add(s),
		mgr.Add(&turns{
			address: o.LedgerAddress, manager: "system:serviceaccount:" + o.Namespace + ":" + protocol.ManagerAccount, tls: certificate.TLS,
			reviews: mgr.GetClient(), ledger: kept, log: slog.New(logs).With("logger", "turns"),
		}),
		// Unauthenticated: the kubelet's probes.
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("certificate", certificate.Check),
		mgr.AddReadyzCheck("proxy", s.check),
		mgr.AddReadyzCheck("ledger", kept.check),
	); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return nil
}

// service is the proxy as a part of the process.
type service struct {
	address     string
	certificate *pki.Follower
	proxy       *egressproxy.Proxy
	answers     *modelserver.Server
	log         *slog.Logger
	serving     atomic.Bool
	// served is closed when nothing is served any more.
	served chan<- struct{}
}

// NeedLeaderElection is false: every replica serves.
func (s *service) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *service) Start(ctx context.Context) error {
	defer close(s.served)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen for CONNECT: %w", err)
	}
	s.serving.Store(true)
	defer s.serving.Store(false)
	err = s.proxy.Serve(ctx, listener, s.certificate.TLS(), drainTime)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	switch drained := s.answers.Drain(last); {
	case drained != nil, errors.Is(err, context.DeadlineExceeded):
		s.log.WarnContext(ctx, "Cut off answers or tunnels that did not end within the grace period", "error", errors.Join(err, drained).Error())
	case err != nil:
		return fmt.Errorf("serve CONNECT: %w", err)
	}
	return nil
}

func (s *service) check(*http.Request) error {
	if !s.serving.Load() {
		return errors.New("the proxy is not serving")
	}
	return nil
}
