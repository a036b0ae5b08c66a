// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the process through which the pods of Features reach the world: so far the Git hosts that a policy
// lists.
package gateway

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

// Options of the process.
type Options struct {
	// Namespace of the system.
	Namespace string
	// ProxyAddress and HealthAddress are listened on.
	ProxyAddress  string
	HealthAddress string
	// MetricsAddress too; "0" turns metrics off.
	MetricsAddress string
	// LogFormat is json or text; LogLevel is 0 or, for more, 1.
	LogFormat string
	LogLevel  int
}

// Flags binds the options to flags; defaults come from the environment where Kubernetes gives them (downward API).
func (o *Options) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the system (default: environment POD_NAMESPACE)")
	flags.StringVar(&o.ProxyAddress, "proxy-bind-address", ":8444", "where the CONNECT proxy is served, over TLS")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "where metrics are served, over plain HTTP; 0 is nowhere")
	flags.StringVar(&o.LogFormat, "log-format", "json", "json or text")
	flags.IntVar(&o.LogLevel, "log-level", 0, "1 logs more than 0")
}

// parse reads command-line arguments; what is to be said about them goes to out.
func (o *Options) parse(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	flags.SetOutput(out)
	o.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: everything is said by flags", flags.Arg(0))
	}
	return o.Validate()
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
