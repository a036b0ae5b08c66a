// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidewaiter/tidewaiter/internal/app/gateway"
	"github.com/tidewaiter/tidewaiter/internal/app/manager"
	"github.com/tidewaiter/tidewaiter/internal/app/preflight"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/inspect"
	"github.com/tidewaiter/tidewaiter/internal/app/worker"
	coreworker "github.com/tidewaiter/tidewaiter/internal/core/worker"
)

// program has flags that users set.
type program struct {
	name, about string
	flags       *pflag.FlagSet
}

func programs() []program {
	of := func(name, about string, bind func(*pflag.FlagSet)) program {
		flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
		bind(flags)
		return program{name, about, flags}
	}
	all := []program{
		of("manager", "You set these flags in the Deployment `tidewaiter-manager`, with Helm in `controller.extraArgs`.", new(manager.Options).Flags),
		of("gateway", "You set these flags in the Deployment `tidewaiter-gateway`, with Helm in `gateway.extraArgs`.\n"+
			"If you set `GOMEMLIMIT` or `GOGC` in its environment, they have precedence over `--memory-limit`.", new(gateway.Options).Flags),
		of("tidewaiter preflight", "[Preflight](preflight.md) says what the program checks.", new(preflight.Options).Flags),
		of("worker", "You set these flags in `spec.agent.args` of a Feature with the runtime [worker](runtimes/worker.md).", func(flags *pflag.FlagSet) {
			own := flag.NewFlagSet("", flag.ContinueOnError)
			(&worker.Options{Bounds: coreworker.DefaultBounds}).Flags(own)
			flags.AddGoFlagSet(own)
		}),
	}
	for _, flags := range inspect.Flags() {
		all = append(all, of(flags.Name(), "You run this command on a volume: see [Audit](../tasks/audit.md#read-a-volume-without-the-api-server).",
			func(all *pflag.FlagSet) { all.AddGoFlagSet(flags) }))
	}
	return all
}

// flagsPage is docs/reference/flags.md: the flags of the programs that users start or configure. Only the manager starts the others.
func flagsPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("<!-- Made from the programs' flags by `make reference`. Do not edit. -->\n# Flags\n\n" +
		"This page lists the flags that you can set. The manager sets the flags of the other programs.\n")
	for _, p := range programs() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Flag | Type | Default | Meaning |\n|---|---|---|---|\n", p.name, p.about)
		p.flags.VisitAll(func(f *pflag.Flag) {
			names := "`--" + f.Name + "`"
			if f.Shorthand != "" {
				names += ", `-" + f.Shorthand + "`"
			}
			usage, standard := meaning(f)
			kind := f.Value.Type()
			if kind == "stringArray" {
				kind = "string, repeatable"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", names, kind, standard, inCell(usage))
		})
	}
	return []byte(b.String()), nil
}

// variable of the environment.
var variable = regexp.MustCompile(`\b[A-Z_]{5,}\b`)

// meaning of a flag, and its default. A usage text that ends in (default: …) says what no value can say, such as an environment variable.
func meaning(f *pflag.Flag) (usage, standard string) {
	if usage, standard, ok := strings.Cut(f.Usage, " (default: "); ok {
		return usage, variable.ReplaceAllString(inCell(strings.TrimSuffix(standard, ")")), "`$0`")
	}
	if f.DefValue == "" || f.DefValue == "[]" {
		return f.Usage, ""
	}
	return f.Usage, "`" + f.DefValue + "`"
}
