// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a real single-node Kubernetes on this machine, built from Go modules and Debian packages, with
// no container registry: see README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var child *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &child) && err == error(child):
		os.Exit(child.ExitCode()) // kubectl has said itself what is wrong
	default:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}
