// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager is the process that reconciles Tidewaiter's objects and serves watchdogs: controllers on the elected
// replica, intake on each.
package manager

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tidewaiter/tidewaiter/internal/app/process"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
)

// Options of the process.
type Options struct {
	process.Options
	// Replica is this replica's name, unique among the running replicas.
	Replica string
	// Image of prepare, watchdog and seal: the product's own.
	Image string
	// UserNamespaces says who decides whether the pods of Features get user namespaces (hostUsers: false).
	UserNamespaces string
	// LeaderElect lets one of several replicas reconcile.
	LeaderElect bool
	// IntakeAddress, MetricsAddress and ViewAddress are listened on; "0" turns metrics and the aggregated API off.
	IntakeAddress  string
	MetricsAddress string
	ViewAddress    string
	// LedgerToken is the file with the token for reading the gateway's ledger.
	LedgerToken string
}

// Flags binds the options to flags; defaults come from the environment if Kubernetes sets them (downward API).
func (o *Options) Flags(flags *pflag.FlagSet) {
	o.Options.Flags(flags)
	flags.StringVar(&o.Replica, "replica", os.Getenv("POD_NAME"), "name of this replica (default: environment POD_NAME)")
	flags.StringVar(&o.Image, "image", "", "image of prepare, watchdog and seal in the pods of Features (required)")
	flags.StringVar(&o.UserNamespaces, "user-namespaces", string(nodes.Auto), "run the pods of Features in user namespaces: auto (if all nodes that may take a pod report them), true or false. Use false for volumes that cannot be mounted with mapped users")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "elect one of several replicas to reconcile")
	flags.StringVar(&o.IntakeAddress, "intake-bind-address", ":8443", "address for watchdogs, over TLS")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8445", "address of the metrics, over TLS, for clients that may get /metrics of the cluster; 0 means none")
	flags.StringVar(&o.LedgerToken, "ledger-token", protocol.LedgerTokenFile, "file with the token by which the gateway lets its ledger be read")
	flags.StringVar(&o.ViewAddress, "view-bind-address", "0", "where kube-apiserver finds the aggregated API view.tidewaiter.dev, over TLS; 0 is nowhere")
}

// Validate names the first flag that cannot be used.
func (o *Options) Validate() error {
	switch {
	case o.Replica == "":
		return errors.New("--replica is missing: give it, or set POD_NAME by the downward API")
	case !slices.Contains(nodes.Settings(), nodes.Setting(o.UserNamespaces)):
		return fmt.Errorf("--user-namespaces is %q: it must be auto, true or false", o.UserNamespaces)
	case o.Image == "":
		return errors.New("--image is missing: it is what the pods of Features run")
	}
	return o.Options.Validate()
}
