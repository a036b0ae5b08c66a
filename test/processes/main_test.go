// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package processes tries manager and gateway together on a real API server.
package processes

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/tidewaiter/tidewaiter/internal/app/gateway"
	"github.com/tidewaiter/tidewaiter/internal/app/manager"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/program"
)

var env *kubetest.Env

// programs by their names, which are the first argument of a process.
var programs = map[string]func(context.Context, []string, io.Writer) error{"gateway": gateway.Main, "manager": manager.Main}

func TestMain(m *testing.M) {
	program.Main(func(ctx context.Context, args []string, out io.Writer) error {
		if len(args) == 0 || programs[args[0]] == nil {
			return fmt.Errorf("%q names no program", args)
		}
		return programs[args[0]](ctx, args[1:], out)
	})
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}

// start a program with the rights that it is installed with, and wait until it is ready.
func start(t *testing.T, name string, args ...string) *program.Program {
	t.Helper()
	health := addresses.Free()
	p := program.Start(t, []string{"KUBECONFIG=" + env.Kubeconfig(t, "tidewaiter-"+name), "POD_NAMESPACE=" + kubetest.SystemNamespace, "POD_NAME=" + name + "-a"},
		append([]string{name, "--health-probe-bind-address=" + health}, args...)...)
	gomega.NewWithT(t).Eventually(func() bool { return program.Passes(health, "/readyz") }, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue(), "%s is ready", name)
	return p
}
