// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"net"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/host/tools"
)

// toolServer serves an agent's tools, where it is to work through them; it has no URL where it is not.
type toolServer struct {
	listener net.Listener
	url      string
	stop     context.CancelFunc
	serving  sync.WaitGroup
}

// listenForTools must come before the runner can connect: a process of the agent that had the port first would be taken for
// the watchdog.
func listenForTools(a *attempt) (*toolServer, error) {
	s := &toolServer{stop: func() {}}
	if a.journal.State().Orders.Mode != policy.ModeDeterministic {
		return s, nil
	}
	l, err := tools.Listen(a.options.Tools)
	if err != nil {
		return nil, err
	}
	s.listener, s.url = l, tools.URL(l)
	return s, nil
}

// serve the tools of a loop.
func (s *toolServer) serve(ctx context.Context, l *loop) {
	if s.listener == nil {
		return
	}
	log := l.attempt.options.Log
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.serving.Go(func() {
		if err := tools.Serve(ctx, s.listener, tools.Options{Desk: l.backend, Repository: l.services.repository, Log: log}); err != nil {
			log.ErrorContext(ctx, "The agent's tools are gone", "error", err.Error())
		}
	})
	log.InfoContext(ctx, "Serving the agent's tools", "url", s.url)
}

// close ends the server and waits for it.
func (s *toolServer) close() {
	s.stop()
	if s.listener != nil {
		_ = s.listener.Close() // it is closed already where it was served
	}
	s.serving.Wait()
}
