// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command worker is the agent of the runtime worker; see internal/app/worker.
package main

import (
	"context"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/app/worker"
)

func main() {
	os.Exit(worker.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stderr))
}
