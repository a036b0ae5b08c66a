// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows Tidewaiter's main job on a real cluster: Features side by side, on a repository that is
// served in the cluster. It exits 0 only if everything that it prints really happened.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster")
	flag.StringVar(&o.kubectl, "kubectl", "kubectl", "command line of the kubectl to show objects with")
	flag.StringVar(&o.image, "image", "", "image of the agents and of the Git server")
	flag.StringVar(&o.agent, "agent", "", "image of Claude Code; without one no real agent is shown. Its model is scripted, and takes the place of the gateway's backends")
	flag.StringVar(&o.repository, "repository", ".", "local Git repository that the server is to serve")
	flag.StringVar(&o.record, "record", "", "folder for a record of the run")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "give up after this long")
	flag.Parse()

	if err := interruptible(o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func interruptible(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return run(ctx, o)
}
