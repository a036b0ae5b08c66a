// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/gates/toolreport"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/internal/redacted"
)

const (
	// gateGrace is how long a gate may take to end after its timeout, on SIGTERM.
	gateGrace = 10 * time.Second
	// stopGateWithin bounds the end of a gate that is called off, and of what it changed, in a pod that may have to end.
	stopGateWithin = 20 * time.Second
)

// output of a gate, which may have secrets in it.
type output struct{ Text string }

// gate runs one gate on the tree of its task's closing checkpoint. Whatever it changes in captured paths goes back.
func (x *acts) gate(ctx context.Context, a supervise.Action) (supervise.Event, error) {
	if a.Task == "" {
		return x.deliveryGate(ctx, a)
	}
	j := x.attempt.journal.State()
	task, tries := j.Tasks[a.Task], gates.Tries
	if j.Run == protocol.RunGate { // what a try leaves in ignored files and in /tmp could change the next one
		tries = 1
	}
	ran, err := x.prove(ctx, task.Gating, task.Policy.Changes, a.Gate, tries)
	if err != nil {
		return x.gateMissed(ctx, a, err)
	}
	ran.Task = a.Task
	x.log().InfoContext(ctx, "Gate", "task", a.Task, "gate", a.Gate.Name, "state", string(ran.Result.State), "code", ran.Result.ExitCode,
		"duration", ran.Result.Duration.String(), "changed", len(ran.Result.Changed)+ran.Result.ChangedMore)
	return supervise.Gated{Task: a.Task, Result: ran.Result}, x.note(journal.Record{GateRan: &ran}, "gate ran")
}

// gateMissed says what a gate failed of that is not the agent's fault: it is run again.
func (x *acts) gateMissed(ctx context.Context, a supervise.Action, err error) (supervise.Event, error) {
	switch {
	case steps.Fatal(err):
		return nil, err
	case ctx.Err() != nil:
		return supervise.CalledOff{}, nil //nolint:nilerr // an act that was called off is an event, not an error
	case errors.Is(err, runnerlink.ErrDisconnected), errors.Is(err, runnerlink.ErrLost):
		return x.unreachable(ctx, err)
	}
	fault := faults.Of(err, protocol.ReasonCheckpointFailed)
	x.log().ErrorContext(ctx, "Cannot run a gate", "task", a.Task, "gate", a.Gate.Name, "reason", fault.Reason, "error", err.Error())
	return supervise.Missed{Action: a, Fault: fault}, nil
}

// prove runs a gate, at most so many times if it does not end in its time, and puts back what each run changed.
func (x *acts) prove(ctx context.Context, tree string, changes policy.Changes, g protocol.Gate, tries int) (ran journal.GateRan, err error) {
	_, found, err := x.services.checkpoint.PutBack(ctx, tree, changes, nil) // a crash may have left something of an earlier run
	if err != nil {
		return ran, err
	}
	ran.Result = gates.Result{Gate: g.Name, Definition: gates.Sum(g), Tree: tree}
	x.spoilt = true
	var paths []string
	for try := 1; try <= tries; try++ {
		exit, err := x.runGate(ctx, g, &ran)
		if err == nil {
			err = x.readReport(g, &ran.Result)
		}
		if err != nil {
			return ran, errors.Join(err, x.callOff(ctx, tree, changes, found))
		}
		x.keep(ctx, exit, &ran.Result)
		if ran.Result.State != gates.TimedOut || try == tries {
			break
		}
		back, _, err := x.services.checkpoint.PutBack(ctx, tree, changes, &found)
		if err != nil {
			return ran, err
		}
		paths = append(paths, back...)
	}
	if err := x.attempt.options.Probe.After("gate ended"); err != nil {
		return ran, err
	}
	back, _, err := x.services.checkpoint.PutBack(ctx, tree, changes, &found)
	x.spoilt = err != nil
	paths = append(paths, back...)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if g.Report != nil { // to write it is what the gate is there for
		paths = slices.DeleteFunc(paths, func(path string) bool { return path == g.Report.Path })
	}
	ran.Result.Changes(paths)
	return ran, err
}

// findings are what a gate's report says, in words that may have secrets in them.
type findings struct {
	Summary toolreport.Summary
	Problem string
}

// readReport reads the report of a gate that has ended by itself. No process of the container may run.
func (x *acts) readReport(g protocol.Gate, r *gates.Result) error {
	if g.Report == nil || r.State != gates.Passed && r.State != gates.Failed {
		return nil
	}
	data, err := x.services.workspace.Engine().ReadFile(g.Report.Path, toolreport.MaxBytes)
	if _, unfit := errors.AsType[*workspace.UnfitError](err); err != nil && !unfit {
		return fmt.Errorf("read the report of gate %q: %w", g.Name, err)
	}
	var s findings
	if err == nil {
		s.Summary, err = toolreport.Read(g.Report.Format, data)
	}
	if err != nil {
		s.Problem = plain.CutBytes(err.Error(), faults.MaxMessage)
	}
	if s = redacted.Document(s); s.Problem != "" {
		err = errors.New(s.Problem)
	}
	r.Reported(g, s.Summary, err)
	return nil
}

// clean is what is kept of a gate's output, without secrets, and whether its middle is missing. There, a secret may have lost its end or its
// beginning: what it may be in is left out.
func clean(exit protocol.RunnerExited) (text string, cut bool) {
	missing := exit.OutputSize - int64(len(exit.Head)+len(exit.Tail))
	if missing <= 0 {
		return redacted.Document(output{string(exit.Head) + string(exit.Tail)}).Text, false
	}
	head, tail := redacted.Document(output{string(exit.Head)}).Text, redacted.Document(output{string(exit.Tail)}).Text
	end := redacted.Document(output{string(exit.Head[max(0, len(exit.Head)-protocol.LongestSecret):])}).Text
	begin := redacted.Document(output{string(exit.Tail[:min(protocol.LongestSecret, len(exit.Tail))])}).Text
	if end == redacted.Withheld {
		end = head
	}
	if begin == redacted.Withheld {
		begin = tail
	}
	head, tail = head[:max(0, len(head)-len(end))], tail[min(len(begin), len(tail)):]
	return fmt.Sprintf("%s\n[… %d bytes are not kept …]\n%s", head, exit.OutputSize-int64(len(head)+len(tail)), tail), true
}

// keep what a gate has written: the end in its result, and all that there is beside the journal. An output that cannot be kept is no reason to run the
// gate again.
func (x *acts) keep(ctx context.Context, exit protocol.RunnerExited, r *gates.Result) {
	text, cut := clean(exit)
	r.Output, r.Kept = gates.End(text, cut), ""
	if text == "" {
		return
	}
	var err error
	if r.Kept, err = trusted.NewOutputs(trusted.Dir(x.attempt.options.Paths.Trusted)).Keep([]byte(text)); err != nil {
		x.log().WarnContext(ctx, "Cannot keep the output of a gate", "gate", r.Gate, "error", err.Error())
	}
}

// runGate starts a gate, waits for its end or its timeout, and ends what it left.
func (x *acts) runGate(ctx context.Context, g protocol.Gate, ran *journal.GateRan) (exit protocol.RunnerExited, err error) {
	nothing := ""
	select {
	case <-x.gateExits: // of a gate that was called off
	default:
	}
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if g.Report != nil { // what is there already, this run has not written
		if err := x.services.workspace.Engine().RemoveFile(g.Report.Path); err != nil {
			return exit, fmt.Errorf("remove the report of an earlier run of gate %q: %w", g.Name, err)
		}
	}
	began := x.attempt.options.Now()
	env := slices.Concat(g.Env, runtimes.ProxyEnv(x.proxyURL))
	id, _, err := x.agent.Start(within, protocol.RunnerStart{Argv: g.Command, Env: env, Dir: x.attempt.options.Paths.Workspace, Input: &nothing, Gate: true})
	if refused, is := errors.AsType[*runnerlink.RefusedError](err); is && refused.BadCommand {
		ran.Result.State, ran.Result.Message = gates.NotStarted, plain.CutBytes(refused.Reason, faults.MaxMessage)
		return exit, nil
	}
	if err != nil {
		return exit, err
	}
	ran.Start = id
	timeout := time.NewTimer(g.Timeout)
	defer timeout.Stop()
	timedOut := false
	for exit.Start != id {
		select {
		case exit = <-x.gateExits:
		case <-timeout.C:
			timedOut = true
			if err := x.endGate(ctx, gateGrace); err != nil {
				return exit, err
			}
			if exit, err = x.lastExit(ctx, id); err != nil {
				return exit, err
			}
		case <-ctx.Done():
			return exit, ctx.Err()
		}
	}
	ran.Result.State, ran.Result.ExitCode, ran.Result.Duration = gates.Of(exit.Code, timedOut), exit.Code, x.attempt.options.Now().Sub(began)
	if ran.Result.State == gates.NotStarted {
		ran.Result.Message = fmt.Sprintf("exit code %d says that a command was not found or is not executable", exit.Code)
	}
	return exit, x.endGate(ctx, 0)
}

// lastExit waits for the exit of a gate that was killed.
func (x *acts) lastExit(ctx context.Context, id int64) (protocol.RunnerExited, error) {
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		select {
		case exit := <-x.gateExits:
			if exit.Start == id {
				return exit, nil
			}
		case <-within.Done():
			return protocol.RunnerExited{}, fmt.Errorf("the runner does not tell how the gate ended: %w", within.Err())
		}
	}
}

// mend puts back what gates changed that nobody could wait for. No process of the container may run.
func (x *acts) mend(ctx context.Context) error {
	if !x.spoilt {
		return nil
	}
	j := x.attempt.journal.State()
	tree := j.Workspace.Tree
	if j.Run == protocol.RunGate {
		tree = j.Proving()
	}
	_, _, err := x.services.checkpoint.PutBack(ctx, tree, j.Orders.Policy.Changes, nil)
	x.spoilt = x.spoilt && err != nil
	return err
}

// endGate ends every process of the container.
func (x *acts) endGate(ctx context.Context, grace time.Duration) error {
	within, cancel := context.WithTimeout(ctx, grace+killWithin)
	defer cancel()
	return x.agent.Kill(within, grace)
}

// callOff ends a gate that is called off or cannot be waited for, and puts back what it changed, as far as that goes: the next run begins with the same.
func (x *acts) callOff(ctx context.Context, tree string, changes policy.Changes, found checkpoint.Found) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGateWithin)
	defer cancel()
	if err := x.endGate(ctx, 0); err != nil {
		return err
	}
	_, _, err := x.services.checkpoint.PutBack(ctx, tree, changes, &found)
	x.spoilt = err != nil
	return err
}
