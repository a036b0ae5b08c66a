// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// childVariable makes this test's program a manager: replicas are processes, as they are in a cluster.
const childVariable = "TIDEWAITER_TEST_MANAGER"

var env *kubetest.Env

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := Main(ctx, os.Args[1:], os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}
