// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Manager reconciles Tidewaiter's objects and serves watchdogs.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidewaiter/tidewaiter/internal/app/manager"
)

func main() {
	if err := manager.Main(ctrl.SetupSignalHandler(), os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}
