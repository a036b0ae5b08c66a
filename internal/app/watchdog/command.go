// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"syscall"
)

const usage = `usage: watchdog prepare|run|seal|answer --namespace NAMESPACE --feature NAME --attempt N
                --intake URL --intake-name NAME --gateway URL [--gateway-name NAME]

  prepare  clone the base, lay out the workspace and the runner, then exit
  run      supervise the agent: checkpoints, tasks, delivery
  seal     deliver what earlier attempts have promoted, without an agent
  answer   reply to the inquiry in the environment (TIDEWAITER_INQUIRY) from the trusted volume, then exit

       watchdog verify [--trusted DIR] [--commit COMMIT] [--history] [--json]
       watchdog diff [--trusted DIR] [--cumulative] [--patch] [CHECKPOINT]
       watchdog log [--trusted DIR] [--files]

  verify   check the record of a Feature from base to head: exit code 0 when it is whole, 1 when a link is broken
  diff     show what a checkpoint (number or name; the newest) changed since the one before, or since the base
  log      show the journal, or the file events of every checkpoint, as lines of JSON
`

// errUsage: the command line is not understood.
var errUsage = errors.New("usage")

// memoryLimit makes the garbage collector work harder before the process grows: a watchdog stands beside every agent.
const memoryLimit = 40 << 20

// ReturnMemory gives back to the machine what a checkpoint took and nobody needs until the next one. It costs a run of the
// collector.
func ReturnMemory() { debug.FreeOSMemory() }

// LimitMemory trades time of the collector for memory, in the whole process.
func LimitMemory() {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(memoryLimit)
}

// Main runs the subcommand that args begin with and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	readers := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"verify": runVerify, "diff": runDiff, "log": runLog,
	}
	if len(args) > 0 && readers[args[0]] != nil {
		return read(args, readers[args[0]], stdout, stderr)
	}
	commands := map[string]func(context.Context, Options) error{"prepare": Prepare, "run": Run, "seal": Seal, "answer": Answer}
	if len(args) == 0 || commands[args[0]] == nil {
		_, _ = io.WriteString(stderr, usage)
		return 2
	}
	o, err := parse(args[0], args[1:], stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "watchdog %s: %v\n", args[0], err)
		return 2
	}
	LimitMemory()
	o.Log = slog.New(slog.NewJSONHandler(stderr, nil)).With(
		"command", args[0], "namespace", o.Namespace, "feature", o.Feature, "attempt", o.Attempt)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := commands[args[0]](ctx, o); err != nil {
		o.Log.ErrorContext(ctx, "Ended with an error", "error", err.Error())
		return 1
	}
	return 0
}

// read runs a subcommand that only looks at the trusted volume.
func read(args []string, command func(context.Context, []string, io.Writer, io.Writer) error, stdout, stderr io.Writer) int {
	debug.SetMemoryLimit(memoryLimit)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := command(ctx, args[1:], stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errBrokenRecord): // said in full already
		return 1
	}
	_, _ = fmt.Fprintf(stderr, "watchdog %s: %v\n", args[0], err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}
