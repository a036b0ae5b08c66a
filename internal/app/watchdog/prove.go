// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/agentproxy"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// Prove runs one gate of a task or before the delivery, in a pod where no agent has been. When nothing is left to prove or to do, it delivers.
func Prove(ctx context.Context, o Options) error {
	a, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer a.end()
	s, err := resume(ctx, a)
	if err != nil {
		return err
	}
	defer s.close()
	proxy, err := agentproxy.Listen(o.Proxy) // before the runner can connect, as for agents
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer func() {
		stop()
		_ = proxy.Close()
		serving.Wait()
	}()
	agent, err := runnerlink.Listen(o.Paths.socket(), trusted.NewSession(o.Paths.trusted(), o.Attempt))
	if err != nil {
		return fmt.Errorf("listen for the runner: %w", err)
	}
	defer func() { _ = agent.Close() }()
	serving.Go(func() { a.serveProxy(ctx, proxy) })
	l := newLoop(s, agent, *a.journal.State().Orders)
	l.acts.proxyURL = agentproxy.URL(proxy)
	if err := l.run(ctx); err != nil {
		return err
	}
	steps.Pause(ctx, o.Linger)
	return nil
}

// serveProxy lets the command of a gate reach the hosts that the policy lists for agents.
func (a *attempt) serveProxy(ctx context.Context, l net.Listener) {
	o := a.options
	err := agentproxy.Serve(ctx, l, agentproxy.Options{Gateway: o.Gateway, Name: o.GatewayName, Token: o.Paths.Token, CA: o.Paths.CA, Log: o.Log})
	if err != nil {
		o.Log.ErrorContext(ctx, "The proxy of the gate is gone", "error", err.Error())
	}
}

// settled ends the attempt if a checkpoint is not complete: the workspace that belongs to it is not in this pod.
func (p *preparation) settled(ctx context.Context, orders protocol.Orders) error {
	s := p.attempt.journal.State()
	switch {
	case s.Base == nil:
		return errors.New("no attempt has fetched the base: there is nothing to prove")
	case s.Pending == nil:
		return nil
	}
	return p.attempt.conclude(ctx, orders, protocol.FinalReport{Outcome: protocol.OutcomeUnfinished, Reason: protocol.ReasonCorrecting, Head: s.Head().Commit,
		Message: fmt.Sprintf("checkpoint %d is not complete, and only an attempt with the workspace can complete it", s.Pending.Sequence)})
}

// checkOut makes the empty workspace the tree that is to be proved.
func (p *preparation) checkOut(ctx context.Context, orders protocol.Orders) error {
	return p.layOutTree(ctx, orders, p.attempt.journal.State().Proving())
}

// deliveryGate runs a gate on the tree of the delivery head, once: what it leaves in ignored files and in /tmp could change a second run.
func (x *acts) deliveryGate(ctx context.Context, a supervise.Action) (supervise.Event, error) {
	j := x.attempt.journal.State()
	ran, err := x.prove(ctx, j.Head().Tree, j.Orders.Policy.Changes, a.Gate, 1)
	if err != nil {
		return x.gateMissed(ctx, a, err)
	}
	x.log().InfoContext(ctx, "Gate before the delivery", "gate", a.Gate.Name, "state", string(ran.Result.State), "code", ran.Result.ExitCode,
		"duration", ran.Result.Duration.String(), "changed", len(ran.Result.Changed)+ran.Result.ChangedMore)
	return supervise.DeliveryGated{Result: ran.Result}, x.note(journal.Record{DeliveryGateRan: &ran.Result}, "delivery gate ran")
}

// addTask gives an agent the task to correct what gates before the delivery have found.
func (x *acts) addTask(ctx context.Context, o protocol.Orders) (supervise.Event, error) {
	j := x.attempt.journal.State()
	var ran []protocol.Gate
	for _, g := range o.Delivery.Gates {
		if gates.Find(j.Proofs, g, j.Head().Tree) != nil {
			ran = append(ran, g)
		}
	}
	added := journal.TaskAdded{Name: j.NextAdded(), Text: gates.DeliveryCorrection(ran, gates.On(j.Proofs, ran, j.Head().Tree))}
	x.log().InfoContext(ctx, "Gates before the delivery have failed: an agent corrects the work", "task", added.Name)
	if err := x.note(journal.Record{TaskAdded: &added}, "task added"); err != nil {
		return nil, err
	}
	return supervise.Added{Task: added.Name}, x.attempt.noteOrders(x.attempt.complete(o))
}
