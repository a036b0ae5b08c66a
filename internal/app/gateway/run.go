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
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/host/egress"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/pki"
)

const (
	// drainTime lets open tunnels finish when the process is asked to end; its pod has 30 seconds.
	drainTime = 20 * time.Second
	// shutdownTimeout is a little longer.
	shutdownTimeout = 25 * time.Second
	// qps and burst are what the API server may be asked for: three reads for each pod in 30 seconds.
	qps, burst = 100, 200
)

// Main runs the gateway with command-line arguments until the context ends. Logs go to out.
func Main(ctx context.Context, args []string, out io.Writer) error {
	var options Options
	if err := options.parse(args, out); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	return Run(ctx, config, options, handler(options, out))
}

func handler(o Options, out io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.Level(-o.LogLevel)}
	if o.LogFormat == "text" {
		return slog.NewTextHandler(out, options)
	}
	return slog.NewJSONHandler(out, options)
}

// Run runs the gateway until the context ends.
func Run(ctx context.Context, config *rest.Config, options Options, logs slog.Handler) error {
	log := logr.FromSlogHandler(logs)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = qps, burst
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("make the scheme: %w", err)
	}
	// A manager without controllers: it brings caches, probes and an orderly end. Every replica serves.
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: log, GracefulShutdownTimeout: ptr.To(shutdownTimeout),
		HealthProbeBindAddress: options.HealthAddress, Metrics: metricsserver.Options{BindAddress: options.MetricsAddress},
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// Nothing may ever start to watch Secrets by reading one.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := setUp(ctx, mgr, options, logs); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

func setUp(ctx context.Context, mgr ctrl.Manager, o Options, logs slog.Handler) error {
	log := logr.FromSlogHandler(logs)
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client without cache: %w", err)
	}
	certificate := pki.NewFollower(pki.Options{Live: live, Namespace: o.Namespace, Clock: clock.RealClock{}, Logger: log.WithName("pki")}, pki.GatewaySecret)
	authenticator, err := identity.New(identity.Options{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}})
	if err != nil {
		return fmt.Errorf("set up authentication: %w", err)
	}
	// Caches are filled before anything is served, not at the first question.
	for _, kind := range []client.Object{&v1alpha1.Feature{}, &v1alpha1.SupervisorPolicy{}, identity.Namespace()} {
		if _, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	observe, err := metrics()
	if err != nil {
		return err
	}
	dialer := net.Dialer{KeepAlive: 30 * time.Second}
	s := &service{address: o.ProxyAddress, certificate: certificate, proxy: egress.New(egress.Options{
		Authorizer: &authorizer{pods: authenticator, policies: mgr.GetClient(), systemNamespace: o.Namespace},
		Resolver:   net.DefaultResolver, Dial: dialer.DialContext, Now: time.Now, Logger: slog.New(logs).With("logger", "egress"), Observe: observe,
	})}
	if err := errors.Join(
		mgr.Add(certificate), mgr.Add(s),
		// Unauthenticated: the kubelet's probes.
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("certificate", certificate.Check),
		mgr.AddReadyzCheck("proxy", s.check),
	); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return nil
}

// service is the proxy as a part of the process.
type service struct {
	address     string
	certificate *pki.Follower
	proxy       *egress.Proxy
	serving     atomic.Bool
}

// NeedLeaderElection is false: every replica serves.
func (s *service) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *service) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen for CONNECT: %w", err)
	}
	s.serving.Store(true)
	defer s.serving.Store(false)
	if err := s.proxy.Serve(ctx, listener, s.certificate.TLS(), drainTime); err != nil {
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
