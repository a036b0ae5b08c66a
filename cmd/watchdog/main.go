// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command watchdog supervises the agent of one Feature.
package main

import (
	"os"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
)

func main() { os.Exit(watchdog.Main(os.Args[1:], os.Stdout, os.Stderr)) }
