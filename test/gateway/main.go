// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway is what benchmarks measure as a process: the way of model calls through a gateway, without the API server. It
// serves on the listener that it inherits, until its standard input ends; see internal/testkit/gateway.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"

	"github.com/tidewaiter/tidewaiter/internal/testkit/gateway"
)

// profileEnv names the file that gets a CPU profile of the process; empty for none. Of several gateways in one run, the last one's is kept.
const profileEnv = "TIDEWAITER_PROFILE"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run() error {
	caller := gateway.Rich
	switch {
	case len(os.Args) == 4 && os.Args[3] == "checks":
		caller = gateway.Checked
	case len(os.Args) != 3:
		return fmt.Errorf("usage: %s DIRECTORY PROVIDER [checks] 3<LISTENER", os.Args[0])
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	if path := os.Getenv(profileEnv); path != "" {
		file, err := os.Create(path) //nolint:gosec // who measures says where
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		cancel()
	}()
	return gateway.Main(ctx, l, os.Args[1], os.Args[2], caller)
}
