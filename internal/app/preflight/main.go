// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight is the program tidewaiter: it says whether a cluster has what Tidewaiter needs. It makes a namespace with pods that try it out, and
// removes everything again.
package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidewaiter/tidewaiter/internal/app/preflight/probe"
	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
)

// productVersion of this program; a release is linked with its own.
var productVersion = "0.1.0"

// defaultImage is the image of this version.
func defaultImage() string { return "tidewaiter:" + productVersion }

// Exit codes of the program.
const (
	exitPassed = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `usage: tidewaiter preflight [flags]

Says whether the cluster has what Tidewaiter needs. It makes a namespace of its own with pods of Tidewaiter's image, and removes it at the end.
The exit code is 0 if no check failed.

`

// Options of the preflight.
type Options struct {
	Kubeconfig, Context string
	// SystemNamespace is where Tidewaiter runs, if it is installed.
	SystemNamespace string
	// Image of the probes; empty: that of the installation, or this version's own.
	Image string
	// PullSecrets to pull it with, each as NAMESPACE/NAME, or NAME for one of SystemNamespace; empty: the pull secrets of the installation.
	PullSecrets []string
	// Git and Providers are URLs that a pod is to reach.
	Git, Providers []string
	// Timeout of everything but the removal.
	Timeout time.Duration
	// Output is text or json.
	Output string
}

// Flags binds the options to flags.
func (o *Options) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig (default: KUBECONFIG, ~/.kube/config, or the cluster that this runs in)")
	flags.StringVar(&o.Context, "context", "", "context of the kubeconfig")
	flags.StringVar(&o.SystemNamespace, "namespace", "tidewaiter-system", "namespace of Tidewaiter, if it is installed")
	flags.StringVar(&o.Image, "image", "", "image of Tidewaiter for the probe pods (default: the image of the installation, else "+defaultImage()+")")
	flags.StringArrayVar(&o.PullSecrets, "image-pull-secret", nil, "Secret to pull the image with, as NAME in --namespace or as NAMESPACE/NAME; again for each further one (default: the pull secrets of the installation)")
	flags.StringArrayVar(&o.Git, "git", nil, "URL of a Git repository that Features work on, without a password; again for each further one")
	flags.StringArrayVar(&o.Providers, "provider", nil, "base URL of a model provider; again for each further one (default: the backends of the gateway's configuration)")
	flags.DurationVar(&o.Timeout, "timeout", 3*time.Minute, "time for all checks; the removal of the pods is not part of it")
	flags.StringVarP(&o.Output, "output", "o", "text", "text or json")
}

// maxTargets bounds what pods are to reach.
const maxTargets = 32

// Validate names the first flag that cannot be used.
func (o *Options) Validate() error {
	if o.Output != "text" && o.Output != "json" {
		return fmt.Errorf("--output is text or json, not %q", o.Output)
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout is %s: it must be positive", o.Timeout)
	}
	if len(o.Git)+len(o.Providers) > maxTargets {
		return fmt.Errorf("--git and --provider name %d servers, and the limit is %d", len(o.Git)+len(o.Providers), maxTargets)
	}
	for flag, list := range map[string][]string{"--git": o.Git, "--provider": o.Providers} {
		for _, text := range list {
			u, err := url.Parse(text)
			switch {
			case err != nil || u.Scheme != "https" || u.Host == "":
				return fmt.Errorf("%s: it must be a URL like https://example.com/path", flag)
			case u.User != nil:
				return fmt.Errorf("%s: leave user and password out of the URL: the preflight needs none", flag)
			}
		}
	}
	return nil
}

// Main runs the program with command-line arguments, and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	probe.Launch()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if len(args) > 0 && args[0] == "probe" {
		if err := probe.Main(ctx, args[1:]); err != nil {
			fmt.Fprintln(stderr, "tidewaiter:", err)
			return exitFailed
		}
		return exitPassed
	}
	options, err := parse(args, stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitPassed
	case err != nil:
		fmt.Fprintln(stderr, "tidewaiter:", err)
		return exitUsage
	}
	findings, err := Run(ctx, options, stderr)
	if err == nil {
		err = write(stdout, options.Output, findings)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "tidewaiter: preflight:", preflight.Line(err.Error()))
		return exitFailed
	case preflight.Worst(findings) == preflight.Failed:
		return exitFailed
	}
	return exitPassed
}

func parse(args []string, out io.Writer) (Options, error) {
	var o Options
	flags := pflag.NewFlagSet("tidewaiter preflight", pflag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() { fmt.Fprint(out, usage, flags.FlagUsages()) }
	o.Flags(flags)
	if len(args) == 0 || args[0] != "preflight" {
		flags.Usage()
		if len(args) > 0 && (args[0] == "help" || args[0] == "--help" || args[0] == "-h") {
			return o, pflag.ErrHelp
		}
		return o, errors.New("name a command: preflight")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return o, fmt.Errorf("flags: %w", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: preflight takes flags only", flags.Arg(0))
	}
	return o, o.Validate()
}

// write the findings, one a line.
func write(out io.Writer, format string, findings []preflight.Finding) error {
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Status   preflight.Status    `json:"status"`
			Findings []preflight.Finding `json:"findings"`
		}{preflight.Worst(findings), findings})
	}
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%-8s %-19s %s\n", f.Status, f.Check, f.Text())
	}
	_, err := io.WriteString(out, text.String())
	return err
}
