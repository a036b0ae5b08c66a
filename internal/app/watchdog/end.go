// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// finish sends the final report, waits for its acknowledgment, and lets the pod end.
func (x *acts) finish(ctx context.Context, a supervise.Action) (supervise.Event, error) {
	ctx, cancel := x.untilGone(ctx)
	defer cancel()
	if d := x.attempt.journal.State(); a.Final.Reason == protocol.ReasonDelivered && d.Pushed != "" && d.Pushed == a.Final.Head {
		var err error
		if a.Final.Paths, a.Final.PathCount, err = x.services.delivery.Paths(ctx); err != nil {
			x.log().WarnContext(ctx, "Cannot report which paths were delivered", "error", err.Error())
		}
	}
	if err := x.noteProving(a.Final.Task); err != nil {
		return nil, err
	}
	if err := x.attempt.reports.Conclude(ctx, a.Final); err != nil {
		return nil, err
	}
	ended := false
	if a.EndFirst {
		short, stop := context.WithTimeout(ctx, endWithin)
		ended = x.release(short, protocol.RunnerBlindCode)
		stop()
	}
	if err := x.attempt.spool.Drained(ctx); err != nil {
		return nil, err
	}
	short, stop := context.WithTimeout(ctx, x.attempt.options.Handover)
	x.services.handover.Drained(short)
	stop()
	if !ended {
		x.release(ctx, 0)
	}
	return supervise.Finished{Final: &a.Final}, nil
}

// noteProving notes, once, that the gates of a task run in pods of their own.
func (x *acts) noteProving(task string) error {
	if t := x.attempt.journal.State().Tasks[task]; task == "" || t.Gating == "" || t.InPods {
		return nil
	}
	return x.note(journal.Record{TaskProving: &journal.TaskProving{Name: task}}, "task proving")
}

// untilGone is a context that ends a little after the signal to end.
func (x *acts) untilGone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-x.ending:
			steps.Pause(ctx, farewell)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// leave ends without a final report: the next attempt continues. It sends the reports for which there is time.
func (x *acts) leave(ctx context.Context) (supervise.Event, error) {
	short, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	if err := x.attempt.spool.Drained(short); err != nil {
		x.log().WarnContext(ctx, "Ending with reports that the next attempt sends", "reports", x.attempt.spool.Pending())
	}
	x.services.handover.Drained(short)
	// If the runner is out of reach, its container is gone, or ends by itself.
	short, stop := context.WithTimeout(ctx, 5*retryLink)
	defer stop()
	x.release(short, codeTerminated)
	return supervise.Finished{}, nil
}

// codeTerminated is the exit code of a process that ends because of SIGTERM.
const codeTerminated = 128 + 15

// release tells the runner to end its container, and says whether it did. A runner that has not come yet is waited for,
// because its container would stay for ever.
func (x *acts) release(ctx context.Context, code int) bool {
	if x.agent == nil {
		return true
	}
	for ctx.Err() == nil {
		err := x.agent.Exit(ctx, code)
		if err == nil || errors.Is(err, runnerlink.ErrLost) {
			return true
		}
		steps.Pause(ctx, retryLink)
	}
	return false
}
