// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Gateway is the only way out of the pods of Features.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidewaiter/tidewaiter/internal/app/gateway"
)

func main() {
	if err := gateway.Main(ctrl.SetupSignalHandler(), os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}
