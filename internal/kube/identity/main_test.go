// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

var env *kubetest.Env

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(kubetest.Run(m, func(e *kubetest.Env) { env = e }))
}
