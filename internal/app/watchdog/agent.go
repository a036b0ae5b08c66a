// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// unreachable ends an act that the runner did not answer. The link tells by an event when it is gone, and when it is
// back; the pause is there because that event may be behind this one.
func (x *acts) unreachable(ctx context.Context, err error) (supervise.Event, error) {
	x.log().WarnContext(ctx, "The runner did not carry out a command", "error", err.Error())
	steps.Pause(ctx, retryLink)
	return supervise.CalledOff{}, nil
}

// resisted ends a kill, freeze or thaw that failed. Where the runner was out of reach nothing was tried; a runner that is
// there and does not answer cannot do it either.
func (x *acts) resisted(ctx context.Context, act string, err error) (supervise.Event, error) {
	if errors.Is(err, runnerlink.ErrDisconnected) || errors.Is(err, runnerlink.ErrLost) || ctx.Err() != nil {
		return x.unreachable(ctx, err)
	}
	x.log().ErrorContext(ctx, "Cannot stop the agent's processes", "act", act, "error", err.Error())
	steps.Pause(ctx, resistedPause)
	return supervise.Resisted{Message: plain.CutBytes(fmt.Sprintf("%s: %v", act, err), maxResistance)}, nil
}

func (x *acts) kill(ctx context.Context) (supervise.Event, error) {
	within, cancel := context.WithTimeout(ctx, x.attempt.options.Grace+killWithin)
	defer cancel()
	if err := x.agent.Kill(within, x.attempt.options.Grace); err != nil {
		return x.resisted(ctx, "kill", err)
	}
	if err := x.mend(ctx); err != nil {
		return x.gateMissed(ctx, supervise.Action{Kind: supervise.Kill}, err)
	}
	return supervise.Killed{}, nil
}

func (x *acts) freeze(ctx context.Context) (supervise.Event, error) {
	within, cancel := context.WithTimeout(ctx, 2*startWithin)
	defer cancel()
	f, err := x.agent.Freeze(within, protocol.RunnerFreeze{Timeout: startWithin, Limit: supervise.FreezeLimit})
	if err != nil {
		return x.resisted(ctx, "freeze", err)
	}
	x.log().WarnContext(ctx, "The agent is frozen until a user acts", "processes", f.Processes, "settled", f.Settled)
	return supervise.FrozenNow{}, nil
}

func (x *acts) thaw(ctx context.Context) (supervise.Event, error) {
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if _, err := x.agent.Thaw(within); err != nil {
		return x.resisted(ctx, "thaw", err)
	}
	return supervise.ThawedNow{}, nil
}
