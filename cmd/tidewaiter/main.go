// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tidewaiter looks at a cluster from outside; see internal/app/preflight.
package main

import (
	"os"

	"github.com/tidewaiter/tidewaiter/internal/app/preflight"
)

func main() { os.Exit(preflight.Main(os.Args[1:], os.Stdout, os.Stderr)) }
