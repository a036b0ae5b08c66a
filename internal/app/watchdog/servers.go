// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/direct"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/pod/agentproxy"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// servers are what the agent reaches on its loopback address: models, a proxy to other hosts, and the tools that its
// mode and its runtime give it.
type servers struct {
	models, tools, connect        net.Listener // tools is nil if the agent has none
	modelsURL, toolsURL, proxyURL string
	proxy                         *modelproxy.Proxy
	steering                      *steer.Service
	calls                         *calls
	stop                          context.CancelFunc
	serving                       sync.WaitGroup
}

// terms that hold of the conversation now.
func (a *attempt) terms() session.Terms {
	j := a.journal.State()
	task := j.Working()
	rules := j.Orders.Policy
	if task != "" {
		rules = j.Tasks[task].Policy
	}
	return session.NewTerms(task, &rules, j.Orders.Agent.Role, compaction(a.options.Runtimes, j.Orders.Agent.Runtime))
}

// serves says whether the agent has tools of the watchdog.
func (a *attempt) serves() bool {
	o := a.journal.State().Orders
	i := slices.IndexFunc(a.options.Runtimes, func(r runtimes.Runtime) bool { return r.Name == o.Agent.Runtime })
	return i >= 0 && a.options.Runtimes[i].Serves(o.Mode)
}

// listenForAgent must come before the runner can connect: a process of the agent that had a port first would look like the watchdog.
func listenForAgent(a *attempt, recorder steer.Recorder, directives *direct.Service) (*servers, error) {
	s := &servers{stop: func() {}}
	var err error
	if s.models, err = modelproxy.Listen(a.options.Models); err != nil {
		return nil, err
	}
	s.modelsURL = modelproxy.URL(s.models)
	o := a.options
	s.steering = steer.New(steer.Options{
		Terms: a.terms, Cache: trusted.NewConversationCache(o.Paths.trusted()), Recorder: recorder, Attempt: o.Attempt, Reach: a.reach(), Directives: directives, Told: a.told, Acknowledged: a.acknowledged, Now: o.Now, Log: o.Log,
	})
	s.calls = newCalls(a.journal, o.Now, o.Log)
	if s.proxy, err = modelproxy.New(modelproxy.Options{
		Gateway: o.Gateway, Name: o.GatewayName, Token: o.Paths.Token, CA: o.Paths.CA, Log: o.Log, Pause: o.BudgetPause,
		Task: func() string { return a.journal.State().Working() }, Observer: s.steering, Fared: s.calls.heard,
	}); err != nil {
		s.close()
		return nil, err
	}
	if s.connect, err = agentproxy.Listen(o.Proxy); err != nil {
		s.close()
		return nil, err
	}
	s.proxyURL = agentproxy.URL(s.connect)
	if !a.serves() {
		return s, nil
	}
	if s.tools, err = tools.Listen(a.options.Tools); err != nil {
		s.close()
		return nil, err
	}
	s.toolsURL = tools.URL(s.tools)
	return s, nil
}

// serve the agent of a loop.
func (s *servers) serve(ctx context.Context, l *loop) {
	o := l.attempt.options
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	serve := func(what, url string, run func() error) {
		s.serving.Go(func() {
			if err := run(); err != nil {
				o.Log.ErrorContext(ctx, "A server of the agent is gone", "server", what, "error", err.Error())
			}
		})
		o.Log.InfoContext(ctx, "Serving the agent", "server", what, "url", url)
	}
	serve("models", s.modelsURL, func() error { return s.proxy.Serve(ctx, s.models) })
	s.serving.Go(func() { s.steering.Follow(ctx, l.agent.Pulse) })
	own := []string{s.models.Addr().String()}
	if s.tools != nil {
		own = append(own, s.tools.Addr().String())
	}
	serve("proxy", s.proxyURL, func() error {
		return agentproxy.Serve(ctx, s.connect, agentproxy.Options{Gateway: o.Gateway, Name: o.GatewayName, Token: o.Paths.Token, CA: o.Paths.CA, Local: own, Log: o.Log})
	})
	if s.tools != nil {
		serve("tools", s.toolsURL, func() error {
			return tools.Serve(ctx, s.tools, tools.Options{
				Backend: l.backend, ReadOnly: l.attempt.journal.State().Orders.Mode == policy.ModeDeterministic, Words: s.steering.Words, Directives: l.services.directives, Understood: s.steering.Understood, Repository: l.services.repository, Log: o.Log,
			})
		})
	}
}

// close ends the servers and waits for them.
func (s *servers) close() {
	s.stop()
	for _, l := range []net.Listener{s.models, s.connect, s.tools} {
		if l != nil {
			_ = l.Close() // it is closed already where it was served
		}
	}
	s.serving.Wait()
}
