// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"os"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/program"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	program.Main(Main)
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}
