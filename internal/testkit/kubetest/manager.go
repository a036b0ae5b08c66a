// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// StartManager runs what setUp adds to a manager, with the rights that are shipped, until the test ends.
func (e *Env) StartManager(t testing.TB, byObject map[client.Object]cache.ByObject, setUp func(ctrl.Manager) error, change ...func(*ctrl.Options)) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	// Not the test's own log: the manager's last events may fail to be written after the test has ended.
	options := ctrl.Options{
		Scheme: e.Scheme, Logger: logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)), Cache: cache.Options{ByObject: byObject},
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		// Each test has a manager of its own.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	for _, c := range change {
		c(&options)
	}
	mgr, err := ctrl.NewManager(e.ConfigAs(Manager), options)
	if err != nil {
		t.Fatal(err)
	}
	if err := setUp(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
}
