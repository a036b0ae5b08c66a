// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process has the common parts of the processes in the system namespace: flags, logs, and a controller-runtime manager with caches,
// probes and a clean shutdown.
package process

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/tidewaiter/tidewaiter/internal/redacted"
)

// Options are the options of every process.
type Options struct {
	// Namespace of the system, with global policies, leases and the CA.
	Namespace string
	// HealthAddress is listened on.
	HealthAddress string
	// LogFormat is json or text; LogLevel is 0 or, for more, 1.
	LogFormat string
	LogLevel  int
}

// Flags binds the options to flags; defaults come from the environment if Kubernetes sets them (downward API).
func (o *Options) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the system (default: environment POD_NAMESPACE)")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
	flags.IntVar(&o.LogLevel, "log-level", 0, "1 logs more than 0")
}

// Validate names the first flag that cannot be used.
func (o *Options) Validate() error {
	switch {
	case o.Namespace == "":
		return errors.New("--namespace is missing: give it, or set POD_NAMESPACE by the downward API")
	case o.LogFormat != "json" && o.LogFormat != "text":
		return fmt.Errorf("--log-format is json or text, not %q", o.LogFormat)
	}
	return nil
}

// Logs is what writes logs to out, without secrets.
func (o *Options) Logs(out io.Writer) slog.Handler {
	options := redacted.Logs(slog.Level(-o.LogLevel))
	if o.LogFormat == "text" {
		return slog.NewTextHandler(out, options)
	}
	return slog.NewJSONHandler(out, options)
}

// Flagged are options of a process.
type Flagged interface {
	// Flags binds the options to flags.
	Flags(flags *pflag.FlagSet)
	// Validate names the first flag that cannot be used.
	Validate() error
}

// Parse reads the command-line arguments of a process, and writes help and complaints to out. The error is pflag.ErrHelp if the arguments ask for help.
func Parse(name string, options Flagged, args []string, out io.Writer) error {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SetOutput(out)
	options.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: this program takes flags only", flags.Arg(0))
	}
	return options.Validate()
}
