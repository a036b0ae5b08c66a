// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/inspect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/intakeclient"
	"github.com/tidewaiter/tidewaiter/internal/redacted"
)

const usage = `usage: watchdog prepare|run|prove|seal|answer --namespace NAMESPACE --feature NAME --attempt N
                --intake URL --intake-name NAME --gateway URL [--gateway-name NAME] [--gate SUM]

  prepare  clone the base, prepare the workspace and the runner, then exit
  run      supervise the agent: checkpoints, tasks, delivery
  prove    run one gate where no agent has been, and deliver once the work is done and all gates have passed
  seal     deliver what earlier attempts have promoted, without an agent
  answer   reply to the inquiry in the environment (TIDEWAITER_INQUIRY) from the trusted volume, then exit

       watchdog verify [--trusted DIR] [--commit COMMIT] [--history] [--json]
       watchdog diff [--trusted DIR] [--cumulative] [--patch] [CHECKPOINT]
       watchdog log [--trusted DIR] [--files]

  verify   check the record of a Feature from base to head: exit code 0 when it is whole, 1 when a link is broken
  diff     show what a checkpoint (number or name; the newest) changed since the one before, or since the base
  log      show the journal, or the file events of every checkpoint, as lines of JSON
`

// memoryLimit makes the garbage collector work harder before the process grows: every agent has a watchdog next to it.
const memoryLimit = 40 << 20

// LimitMemory trades time of the collector for memory, in the whole process.
func LimitMemory() {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(memoryLimit)
}

// Main runs the subcommand that args begin with and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	readers := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"verify": inspect.Verify, "diff": inspect.Diff, "log": inspect.Log,
	}
	if len(args) > 0 && readers[args[0]] != nil {
		return read(args, readers[args[0]], stdout, stderr)
	}
	commands := map[string]func(context.Context, Options) error{"prepare": Prepare, "run": Run, "prove": Prove, "seal": Seal, "answer": Answer}
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
	o.Log = NewLog(stderr).With(
		"command", args[0], "namespace", o.Namespace, "feature", o.Feature, "attempt", o.Attempt)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := commands[args[0]](ctx, o); err != nil {
		o.Log.ErrorContext(ctx, "Ended with an error", "error", err.Error())
		return 1
	}
	return 0
}

// NewLog makes the log of a watchdog, without secrets, because agents choose parts of its text.
func NewLog(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(stderr, redacted.Logs(nil)))
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
	case errors.Is(err, inspect.ErrBroken): // said in full already
		return 1
	}
	_, _ = fmt.Fprintf(stderr, "watchdog %s: %v\n", args[0], err)
	if errors.Is(err, inspect.ErrUsage) {
		return 2
	}
	return 1
}

// Answer answers the single inquiry in the environment, and ends. It is the command of the pod for a Feature without an attempt.
func Answer(ctx context.Context, o Options) error {
	var q protocol.Inquiry
	if err := json.Unmarshal([]byte(os.Getenv(protocol.EnvInquiry)), &q); err != nil {
		return fmt.Errorf("read %s: %w", protocol.EnvInquiry, err)
	}
	client := intakeclient.NewClient(intakeclient.Options{URL: o.Intake, ServerName: o.IntakeName, CAPath: o.Paths.CA, TokenPath: o.Paths.Token})
	return inspect.Send(ctx, client, o.Paths.trusted(), q)
}
