// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command engine is what benchmarks measure the memory and CPU of: a process with all that a watchdog's has, and without the
// rest of the world. Its arguments are the directory of a place and its base; see internal/testkit/engine.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/testkit/engine"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: engine DIRECTORY BASE")
		os.Exit(2)
	}
	if err := engine.Main(context.Background(), os.Args[1], os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}
