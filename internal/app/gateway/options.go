// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the process through which the pods of Features reach the world: models, and the Git hosts that a policy
// lists. What was said to models is in its ledger.
package gateway

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/tidewaiter/tidewaiter/internal/app/process"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Options of the process.
type Options struct {
	process.Options
	// Replica is this gateway's name, unique among those that run.
	Replica string
	// ProxyAddress and MetricsAddress are listened on; "0" turns metrics off.
	ProxyAddress   string
	MetricsAddress string
	// Ledger is the URL of the ledger; LedgerFile has it instead where it exists.
	Ledger, LedgerFile string
	// LedgerSize is how much the ledger may store, in bytes; 0 is its volume, or no bound where it is on a server.
	LedgerSize int64
	// LedgerAddress is where managers read it.
	LedgerAddress string
	// MemoryLimit of the container, in bytes; 0 where it has none.
	MemoryLimit int64
}

// Flags binds the options to flags.
func (o *Options) Flags(flags *pflag.FlagSet) {
	o.Options.Flags(flags)
	flags.StringVar(&o.Replica, "replica", os.Getenv("POD_NAME"), "name of this gateway (default: environment POD_NAME)")
	flags.StringVar(&o.ProxyAddress, "proxy-bind-address", ":8444", "where models and the CONNECT proxy are served, over TLS")
	flags.StringVar(&o.LedgerAddress, "ledger-bind-address", fmt.Sprintf(":%d", protocol.LedgerPort), "where managers read the ledger, over TLS")
	flags.StringVar(&o.Ledger, "ledger", "sqlite:///var/lib/tidewaiter/ledger.db", "URL of the ledger: sqlite:///PATH or postgres://…")
	flags.StringVar(&o.LedgerFile, "ledger-file", "/etc/tidewaiter/ledger/url", "file with the URL of the ledger, for a URL with a password; if the file exists, it replaces --ledger")
	flags.Int64Var(&o.LedgerSize, "ledger-size", 0, "how much the ledger may store, in bytes, before it drops the oldest of the Feature with the most; 0 is the volume of SQLite, and no bound for PostgreSQL")
	flags.Int64Var(&o.MemoryLimit, "memory-limit", 0, "memory limit of the container in bytes: the process keeps below 3/4 of it, and model calls to 3/8; 0 is no limit, and what fits 512 MiB for model calls")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8445", "where metrics are served, over TLS, to clients that may get /metrics of the cluster; 0 is nowhere")
}
