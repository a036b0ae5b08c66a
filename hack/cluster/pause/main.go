// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause is the first process of every pod's sandbox: it keeps the pod's namespaces, reaps orphaned processes if the pod shares one
// process namespace, and ends on a signal.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
