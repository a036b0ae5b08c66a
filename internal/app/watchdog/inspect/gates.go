// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// errNoGate: no gate of that name has run after that task.
var errNoGate = errors.New("no such gate has run")

// beforeDelivery stands for the task of a gate that ran before the delivery. No task has this name.
const beforeDelivery = "-"

// run of a gate.
type run struct {
	at     time.Time
	task   string
	result gates.Result
}

// runOf a record; false if the record is about something else.
func runOf(r journal.Record) (run, bool) {
	switch {
	case r.GateRan != nil:
		return run{r.Time, r.GateRan.Task, r.GateRan.Result}, true
	case r.DeliveryGateRan != nil:
		return run{r.Time, beforeDelivery, *r.DeliveryGateRan}, true
	}
	return run{}, false
}

// writeGates lists the results of gates, the oldest first, or writes the newest one of a gate of a task with its output.
func writeGates(d trusted.Dir, q protocol.Inquiry, out io.Writer) error {
	data, err := trusted.ReadJournal(d)
	if err != nil {
		return err
	}
	records, _, err := journal.Decode(data)
	if err != nil {
		return fmt.Errorf("%w: %w", trusted.ErrCorrupt, err)
	}
	var ran []run
	for _, r := range records {
		if g, is := runOf(r); is && (q.Task == "" || q.Task == g.task) && (q.Gate == "" || q.Gate == g.result.Gate) {
			ran = append(ran, g)
		}
	}
	shown := plain.NewWriter(out)
	switch {
	case q.Task == "" || q.Gate == "":
		err = listGates(ran, shown)
	case len(ran) == 0:
		return fmt.Errorf("%w: gate %q after task %q", errNoGate, q.Gate, q.Task)
	default:
		err = writeGate(d, ran[len(ran)-1], shown)
	}
	return errors.Join(err, shown.Flush())
}

func listGates(ran []run, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "TIME\tTASK\tGATE\tSTATE\tEXIT\tSECONDS\tTESTS\tFAILED\tCOVERAGE") // Flush has the error
	for _, r := range ran {
		g := r.result
		tests, failed, coverage := "-", "-", "-"
		if s := g.Report; s != nil && s.Lines > 0 {
			coverage = s.Percent()
		} else if s != nil {
			tests, failed = fmt.Sprint(s.Tests), fmt.Sprint(s.Failed)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%.0f\t%s\t%s\t%s\n",
			r.at.UTC().Format(time.RFC3339), r.task, g.Gate, g.State, g.ExitCode, g.Duration.Seconds(), tests, failed, coverage)
	}
	return table.Flush()
}

func writeGate(d trusted.Dir, r run, out io.Writer) error {
	g := r.result
	output := []byte(g.Output)
	var err error
	if g.Kept != "" {
		if output, err = trusted.NewOutputs(d).Read(g.Kept); err != nil {
			return err
		}
	}
	note := "its output"
	if output == nil {
		output, note = []byte(g.Output), "the end of its output: newer outputs have taken the room of the whole"
	}
	if _, err := fmt.Fprintf(out, "task %s, gate %s, %s on tree %s: %s\n", r.task, g.Gate, r.at.UTC().Format(time.RFC3339), g.Tree, g.Say()); err != nil {
		return err
	}
	if s := g.Report; s != nil {
		if _, err := fmt.Fprintf(out, "its report: %d tests, %d failed, %d skipped, %d of %d lines covered\n", s.Tests, s.Failed, s.Skipped, s.Covered, s.Lines); err != nil {
			return err
		}
		for _, name := range s.Failures {
			if _, err := fmt.Fprintf(out, "failed: %s\n", name); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Fprintf(out, "%s:\n%s", note, output)
	return err
}
