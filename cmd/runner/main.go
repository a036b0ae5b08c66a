// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command runner is PID 1 of the agent's container; see internal/app/runner.
package main

import (
	"os"

	"github.com/tidewaiter/tidewaiter/internal/app/runner"
)

func main() {
	os.Exit(runner.Run(runner.DefaultOptions(), os.Stderr))
}
