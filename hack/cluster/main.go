// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a real single-node Kubernetes on this machine, built from Go modules and Debian packages, with
// no container registry: see README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1)
	}
}
