// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the process through which the pods of Features reach the world: models, and the Git hosts that a policy
// lists. Its ledger records the model calls.
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
	// Replica is this gateway's name, unique among the running gateways.
	Replica string
	// ProxyAddress and MetricsAddress are listened on; "0" turns metrics off.
	ProxyAddress   string
	MetricsAddress string
	// Ledger is the URL of the ledger; the file LedgerFile, if it exists, has it instead.
	Ledger, LedgerFile string
	// LedgerSize is how much the ledger may store, in bytes; 0 means the size of its volume, or unlimited on a server.
	LedgerSize int64
	// LedgerAddress is where managers read it.
	LedgerAddress string
	// MemoryLimit of the container, in bytes; 0 if it has none.
	MemoryLimit int64
}

// Flags binds the options to flags.
func (o *Options) Flags(flags *pflag.FlagSet) {
	o.Options.Flags(flags)
	flags.StringVar(&o.Replica, "replica", os.Getenv("POD_NAME"), "name of this gateway (default: environment POD_NAME)")
	flags.StringVar(&o.ProxyAddress, "proxy-bind-address", ":8444", "address of the models and the CONNECT proxy, over TLS")
	flags.StringVar(&o.LedgerAddress, "ledger-bind-address", fmt.Sprintf(":%d", protocol.LedgerPort), "where managers read the ledger, over TLS")
	flags.StringVar(&o.Ledger, "ledger", "sqlite:///var/lib/tidewaiter/ledger.db", "URL of the ledger: sqlite:///PATH or postgres://…")
	flags.StringVar(&o.LedgerFile, "ledger-file", "/etc/tidewaiter/ledger/url", "file with the URL of the ledger, for a URL with a password; if the file exists, it replaces --ledger")
	flags.Int64Var(&o.LedgerSize, "ledger-size", 0, "how many bytes the ledger may store before it drops the oldest of the largest Feature; 0 means SQLite's volume, and no bound for PostgreSQL")
	flags.Int64Var(&o.MemoryLimit, "memory-limit", 0, "memory limit of the container in bytes. The process stays below 3/4 of it, and model calls below 3/8. 0 means no limit, and what fits 512 MiB for model calls")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8445", "address of the metrics, over TLS, for clients that may get /metrics of the cluster; 0 means none")
}
