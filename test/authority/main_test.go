// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authority holds what the roles of a cluster let people do against what they must not be able to do: change a
// verdict, a delivery, a record, or the orders of a watchdog.
package authority

import (
	"os"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// env is set once by TestMain.
var env *kubetest.Env

func TestMain(m *testing.M) {
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}
