// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reverseproxy is the baseline of what benchmarks measure of a gateway's memory. It serves on the listener that it inherits,
// until its standard input ends; see internal/testkit/reverseproxy.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/testkit/reverseproxy"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "reverseproxy:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: %s DIRECTORY PROVIDER 3<LISTENER", os.Args[0])
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		cancel()
	}()
	return reverseproxy.Main(ctx, l, os.Args[1], os.Args[2], "/anthropic")
}
