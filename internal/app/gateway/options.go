// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the process through which the pods of Features reach the world: so far the Git hosts that a policy
// lists.
package gateway

import (
	"github.com/spf13/pflag"

	"github.com/tidewaiter/tidewaiter/internal/app/process"
)

// Options of the process.
type Options struct {
	process.Options
	// ProxyAddress and MetricsAddress are listened on; "0" turns metrics off.
	ProxyAddress   string
	MetricsAddress string
}

// Flags binds the options to flags.
func (o *Options) Flags(flags *pflag.FlagSet) {
	o.Options.Flags(flags)
	flags.StringVar(&o.ProxyAddress, "proxy-bind-address", ":8444", "where the CONNECT proxy is served, over TLS")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "where metrics are served, over plain HTTP; 0 is nowhere")
}
