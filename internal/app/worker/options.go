// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker is the agent of the runtime worker: a loop between a model, which it calls through the watchdog, and the watchdog's tools,
// which it calls over MCP. It does not access files itself.
package worker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/core/worker"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelclient"
	"github.com/tidewaiter/tidewaiter/internal/redacted"
)

// Exit codes.
const (
	// exitDone: the task is complete, and the server of the tools has said so.
	exitDone = 0
	// exitFailed: it is not. The last line of standard error says why.
	exitFailed = 1
	// exitUsage: the worker was not started as it has to be.
	exitUsage = 2
)

const (
	// maxTask bounds the worker's task in bytes: a prompt and instructions have some 128 KiB each.
	maxTask = 1 << 20
	// callTime bounds one request to a model, with its answer. The gateway gives up on a backend that says nothing long before.
	callTime = 30 * time.Minute
	// toolTime bounds one tool call; the watchdog answers within five minutes.
	toolTime = 6 * time.Minute
)

// Options of a worker.
type Options struct {
	// Models and Tools are the URLs that the watchdog serves these at.
	Models, Tools string
	// Speech is how the backend is spoken to.
	Speech speech.Speech
	Bounds worker.Bounds
	// Task is the task in words.
	Task string
	// Call bounds one request to a model, and Tool one tool call.
	Call, Tool time.Duration
	// Sleep waits; false when the context ended.
	Sleep func(ctx context.Context, d time.Duration) bool
	Log   *slog.Logger
}

// Main runs a worker, and returns its exit code.
func Main(ctx context.Context, args, environment []string, stdin io.Reader, stderr io.Writer) int {
	o, err := parse(args, environment, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitUsage // nothing was done, and exit code 0 would say that the task is
	}
	if err == nil {
		var task []byte
		if task, err = io.ReadAll(io.LimitReader(stdin, maxTask+1)); err == nil && len(task) > maxTask {
			err = fmt.Errorf("the task on standard input has more than %d bytes", maxTask)
		}
		o.Task = string(task)
	}
	if err != nil {
		fmt.Fprintln(stderr, "worker:", err)
		return exitUsage
	}
	if err := Run(ctx, o); err != nil {
		fmt.Fprintln(stderr, "worker:", err)
		return exitFailed
	}
	return exitDone
}

// Flags binds the options that users set in spec.agent.args to flags. The defaults are what the options have.
func (o *Options) Flags(flags *flag.FlagSet) {
	flags.IntVar(&o.Bounds.Turns, "max-turns", o.Bounds.Turns, "most answers of the model for a task")
	flags.Int64Var(&o.Bounds.MaxOutput, "max-output", o.Bounds.MaxOutput, "most tokens of one answer in the dialect anthropic, which requires a number")
}

// parse reads what the watchdog and the pod say, and what spec.agent.args says.
func parse(args, environment []string, stderr io.Writer) (Options, error) {
	o := Options{
		Bounds: worker.DefaultBounds, Call: callTime, Tool: toolTime, Sleep: modelclient.Sleep, Log: slog.New(slog.NewJSONHandler(stderr, redacted.Logs(nil))),
		Models: lookup(environment, protocol.EnvModels), Tools: lookup(environment, protocol.EnvMCP),
	}
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var wrong []error
	for name, value := range map[string]string{protocol.EnvModels: o.Models, protocol.EnvMCP: o.Tools} {
		if value == "" {
			wrong = append(wrong, fmt.Errorf("%s is not set: only Tidewaiter starts the worker, in Deterministic mode", name))
		}
	}
	name := lookup(environment, protocol.EnvDialect)
	speech, spoken := speech.Find(name)
	if o.Speech = speech; !spoken {
		wrong = append(wrong, fmt.Errorf("%s is %q, and not one of %s", protocol.EnvDialect, name, strings.Join(names(), ", ")))
	}
	if window := lookup(environment, protocol.EnvWindow); window != "" {
		tokens, err := strconv.ParseInt(window, 10, 64)
		if err != nil || tokens <= 0 {
			wrong = append(wrong, fmt.Errorf("%s is %q, and not a number of tokens", protocol.EnvWindow, window))
		}
		o.Bounds.Window = tokens
	}
	if o.Bounds.Turns <= 0 || o.Bounds.MaxOutput <= 0 {
		wrong = append(wrong, errors.New("--max-turns and --max-output must be positive"))
	}
	if flags.NArg() > 0 {
		wrong = append(wrong, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	return o, errors.Join(wrong...)
}

// lookup a variable; of several the last one counts.
func lookup(environment []string, name string) (value string) {
	for _, variable := range environment {
		if v, is := strings.CutPrefix(variable, name+"="); is {
			value = v
		}
	}
	return value
}

// names of the dialects that are spoken.
func names() (list []string) {
	for _, d := range dialect.All() {
		list = append(list, d.Name)
	}
	return list
}
