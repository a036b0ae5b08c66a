// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
)

// accountWithin bounds the question what the last calls have used, before the last status is said. The ledger has it in any
// case.
const accountWithin = 3 * time.Second

// accounts are what an agent has used of models, and may use. The zero value is that of a pod without an agent.
type accounts struct {
	models *modelproxy.Proxy
	log    *slog.Logger
}

// told has what the gateway has said.
func (a accounts) told() <-chan protocol.Allowance {
	if a.models == nil {
		return nil
	}
	return a.models.Allowances()
}

// rejected has why the task cannot be done, when that is because of what a model has answered.
func (a accounts) rejected() <-chan modelproxy.Rejection {
	if a.models == nil {
		return nil
	}
	return a.models.Rejections()
}

// close asks what the last calls have used.
func (a accounts) close(ctx context.Context, s supervise.State) supervise.Event {
	if a.models != nil {
		ctx, cancel := context.WithTimeout(ctx, accountWithin)
		defer cancel()
		if latest, ok := a.models.Latest(ctx); ok {
			return a.event(ctx, s, latest)
		}
	}
	return supervise.Allowed{Allowance: s.Allowance}
}

// event of what the gateway has said.
func (a accounts) event(ctx context.Context, s supervise.State, now protocol.Allowance) supervise.Event {
	switch was := s.Allowance.Exceeded; {
	case now.Exceeded != "" && was == "":
		a.log.WarnContext(ctx, "A budget is used up: the agent stays frozen until there is more", "message", now.Exceeded)
	case now.Exceeded == "" && was != "":
		a.log.InfoContext(ctx, "The budget has room again: the agent continues")
	}
	return supervise.Allowed{Allowance: now}
}
