// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// Main reads command-line arguments into options and then runs a process against the cluster that it finds itself in.
func Main(name string, options Flagged, args []string, out io.Writer, run func(*rest.Config) error) error {
	if err := Parse(name, options, args, out); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	return run(config)
}

// Process is what differs between processes that run.
type Process struct {
	Logger logr.Logger
	// QPS and Burst limit the requests to the API server.
	QPS   float32
	Burst int
	// Manager's options; Run sets scheme, logger, client and what caches leave out.
	Manager ctrl.Options
	// SetUp adds what the process does. Its second client reads from the API server at every call, without a cache.
	SetUp func(mgr ctrl.Manager, live client.Client) error
}

// Run runs a process until the context ends.
func Run(ctx context.Context, config *rest.Config, p Process) error {
	ctrl.SetLogger(p.Logger)
	klog.SetLogger(p.Logger)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = p.QPS, p.Burst
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("make the scheme: %w", err)
	}
	options := p.Manager
	options.Scheme, options.Logger = scheme, p.Logger
	// Managed fields are read by nothing.
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	// Nothing may ever start to watch Secrets by reading one.
	options.Client = client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client without cache: %w", err)
	}
	if err := p.SetUp(mgr, live); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}
