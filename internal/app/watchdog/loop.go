// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/toolbackend"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/runnerlink"
)

// leaveWithin bounds the end of a pod that is asked to go: the last checkpoint and its report. The kubelet kills after
// 60 seconds, the runner gives up after 45.
const leaveWithin = 40 * time.Second

// quiet is the least time between two looks at what has changed: an agent that writes all the time must not keep the
// watchdog busy with counting.
const quiet = 100 * time.Millisecond

// repeated is how many checkpoints in a row have to fail, or stay unsettled, before that is told: one alone is what a busy
// workspace does now and then, and the next one makes up for it.
const repeated = 2

// loop supervises: it asks supervise.Next what to do, has it done, and tells the state machine what came of it. All of its
// fields belong to the goroutine of run. Acts are carried out beside it, one at a time, and get what they need of the state
// as values.
type loop struct {
	attempt  *attempt
	services *services
	acts     *acts
	agent    *runnerlink.Runner // nil without an agent
	accounts accounts
	steering *steer.Service // nil without an agent
	calls    *calls         // nil without an agent
	// spoken is the step of steering of which the agent was sent a line last.
	spoken   int64
	state    supervise.State
	latest   protocol.Orders
	warnings warnings
	lines    lines

	backend *toolbackend.Backend
	queue   *toolbackend.Queue

	// done has the result of the act under way, which cancel calls off; after is done first once it is there.
	done    chan result
	cancel  context.CancelFunc
	after   func()
	working sync.WaitGroup

	// early is an exit that was heard before the start was noted.
	early *protocol.RunnerExited

	// crashed has why a service beside the loop ends the process.
	crashed chan error

	quiet      <-chan time.Time
	terminated <-chan struct{}
	deadline   <-chan time.Time
	ending     chan struct{} // closed when the pod is asked to end
}

// result of an act: what it means to the state machine, or why the process must end.
type result struct {
	event supervise.Event
	err   error
}

// newLoop goes on where the journal says; the agent is nil where there is none.
func newLoop(s *services, agent *runnerlink.Runner, latest protocol.Orders) *loop {
	a := s.attempt
	l := &loop{attempt: a, services: s, agent: agent, latest: latest, done: make(chan result, 1), crashed: make(chan error, 1), ending: make(chan struct{})}
	l.acts = &acts{attempt: a, services: s, agent: agent, ending: l.ending,
		teller: &teller{agent: agent, journal: a.journal, log: a.options.Log}}
	l.backend, l.queue = toolbackend.New(a.journal, func() (*objects.Tree, error) {
		_, now, err := s.workspace.Engine().Trees()
		return now, err
	}, s.directives.Answered)
	l.state = restored(a.journal.State(), agent == nil, a.options.Now())
	l.state.Sessions = sessions(a.options.Runtimes, latest.Agent.Runtime)
	return l
}

// run until the attempt is over, or an error ends the process.
func (l *loop) run(ctx context.Context) error {
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		stop()
		l.backend.Close()
		l.working.Wait()
		l.services.retain.Wait()
	}()
	l.terminated = ctx.Done()
	l.working.Go(func() {
		if err := l.services.handover.Serve(beside); err != nil {
			l.crashed <- err
		}
	})
	l.checkWatcher()
	l.lines.direct(beside, l)
	l.apply(beside, l.ordered(*l.attempt.journal.State().Orders))
	if j := l.attempt.journal.State(); j.Finished {
		l.start(beside, supervise.Action{Kind: supervise.Finish, Final: *j.Final})
	}
	for !l.state.Over() {
		if err := urgent(beside, l); err != nil {
			return err
		}
		switch a := supervise.Next(l.state, l.now()); a.Kind {
		case supervise.Wait:
			if l.state.Doing != supervise.Finish { // the last status has been said
				l.checkWatcher()
				l.say(beside, l.state)
			}
			if err := l.wait(beside, a.Until); err != nil {
				return err
			}
		case supervise.Cancel:
			l.state = l.state.Begin(a)
			l.cancel()
		default:
			l.start(beside, a)
		}
	}
	return nil
}

// urgent takes what must be known before anything is decided: an answer that ends its task, and what steering wanted before a restart.
func urgent(ctx context.Context, l *loop) error {
	select {
	case r := <-l.accounts.rejected():
		if err := rejected(ctx, l, r); err != nil {
			return err
		}
	default:
	}
	select {
	case <-wanted(l):
		return measure(ctx, l)
	default:
		return nil
	}
}

func (l *loop) now() time.Time { return l.attempt.options.Now() }

// say reports how things stand.
func (l *loop) say(ctx context.Context, s supervise.State) {
	base := ""
	if b := l.attempt.journal.State().Base; b != nil {
		base = b.Commit
	}
	r := s.Status(base)
	r.Directives = l.services.directives.Status()
	r.Role, r.Runtime, r.Contracts = l.latest.Agent.Role, l.latest.Agent.Runtime, l.latest.Locks
	if s.Agent.Running {
		r.Unacknowledged = l.steering.Silent()
	}
	l.attempt.say(ctx, r)
}

// start has an act carried out beside the loop, so that orders and signals are heard meanwhile.
func (l *loop) start(ctx context.Context, a supervise.Action) {
	l.state = l.state.Begin(a)
	l.look()
	if a.Kind == supervise.Start {
		l.calls.begin()
	}
	if a.Kind == supervise.Finish {
		l.apply(ctx, l.accounts.close(ctx, l.state))
		l.apply(ctx, supervise.Conversed{Conversation: l.steering.Conversation()})
		last := l.state
		last.Final = &a.Final
		l.say(ctx, last)
	}
	act := l.act(a)
	ctx, l.cancel = context.WithCancel(ctx)
	l.working.Go(func() {
		event, err := act(ctx)
		l.done <- result{event: event, err: err}
	})
}

// wait takes one thing that happens, or lets the time come that was asked for.
func (l *loop) wait(ctx context.Context, until time.Time) error {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(until.Sub(l.now()))
	}
	select {
	case <-timer:
	case done := <-l.done:
		return l.finished(ctx, done)
	case err := <-l.crashed:
		return err
	case <-l.attempt.orders.changed:
		return l.hear(ctx)
	case e, open := <-l.events():
		if open {
			err := l.heard(ctx, e)
			l.lines.direct(ctx, l)
			return err
		}
	case a := <-l.accounts.told():
		l.apply(ctx, l.accounts.event(ctx, l.state, a))
	case r := <-l.accounts.rejected():
		return rejected(ctx, l, r)
	case <-l.steering.Changed():
		l.apply(ctx, supervise.Conversed{Conversation: l.steering.Conversation(), Told: l.steering.Told()})
	case <-wanted(l):
		return measure(ctx, l)
	case <-l.steering.Unspoken():
		speak(ctx, l)
	case <-l.services.directives.Changed(): // the status says so
	case c := <-l.backend.Calls():
		l.queue.Handle(c)
		l.look()
	case <-l.wake():
		l.quiet = time.After(quiet)
		l.steering.Moved()
		l.notice(ctx)
		l.warnings.changed(l.now())
	case <-l.quiet:
		l.quiet = nil
	case <-l.warnings.due:
		l.forewarn(ctx)
	case <-l.terminated:
		l.terminate()
		l.attempt.options.Log.InfoContext(ctx, "Asked to end")
		l.apply(ctx, supervise.Terminated{})
	case <-l.deadline:
		return errors.New("the pod has to end, and what was under way took too long")
	}
	return nil
}

// finished takes the result of the act that was under way.
func (l *loop) finished(ctx context.Context, r result) error {
	l.cancel()
	if l.after != nil {
		l.after()
		l.after = nil
	}
	if r.err != nil {
		return r.err
	}
	l.apply(ctx, r.event)
	if e := l.early; e != nil {
		l.early = nil
		if _, started := r.event.(supervise.Started); started { // otherwise the runner tells of it when it connects
			if err := l.exited(ctx, *e); err != nil {
				return err
			}
		}
	}
	l.lines.direct(ctx, l)
	l.notice(ctx)
	if l.services.repository != nil {
		l.services.retain.Tidy(ctx)
	}
	return nil
}

// terminate starts the clock of a pod that has to end.
func (l *loop) terminate() {
	if l.deadline == nil {
		l.terminated, l.deadline = nil, time.After(leaveWithin)
		close(l.ending)
	}
}

// events of the runner; none without an agent.
func (l *loop) events() <-chan runnerlink.Event {
	if l.agent == nil {
		return nil
	}
	return l.agent.Events()
}

// wake delivers when the workspace changes, but not all the time.
func (l *loop) wake() <-chan struct{} {
	if l.services.workspace.Engine() == nil || l.quiet != nil {
		return nil
	}
	return l.services.workspace.Engine().Wake()
}

// notice counts what has changed in the workspace.
func (l *loop) notice(ctx context.Context) {
	if engine := l.services.workspace.Engine(); engine != nil {
		l.apply(ctx, supervise.Changed{Paths: engine.Changed()})
	}
}

// hear takes new orders.
func (l *loop) hear(ctx context.Context) error {
	o := *l.attempt.orders.get()
	if err := l.attempt.noteOrders(o); err != nil {
		if steps.Fatal(err) {
			return err
		}
		l.attempt.options.Log.WarnContext(ctx, "Orders are followed, but cannot be journaled", "error", err.Error())
	}
	l.latest = o
	l.lines.direct(ctx, l)
	l.apply(ctx, l.ordered(o))
	return nil
}

func (l *loop) ordered(o protocol.Orders) supervise.Ordered {
	return supervise.Ordered{Orders: o, Answered: func(id string) bool {
		_, answered := l.attempt.journal.State().Requests[id]
		return answered
	}}
}

// look tells the state machine what the agent has asked for through its tools, and the tools how things stand.
func (l *loop) look() {
	l.state = l.state.Apply(l.queue.See(l.state, l.latest), l.now())
}

// apply tells the state machine what happened, and keeps the journal's breaker as it is there.
func (l *loop) apply(ctx context.Context, e supervise.Event) {
	l.state = l.state.Apply(e, l.now())
	l.look()
	settle(l)
	l.checkCaptures()
	speak(ctx, l)
	l.steering.Idle(!l.state.Agent.Running || l.state.Question != nil || l.state.Agent.Frozen)
	c := l.state.Checkpoints
	if c.Breaker == l.attempt.journal.State().Breaker.Open {
		return
	}
	b, log := &journal.Breaker{Open: c.Breaker}, l.attempt.options.Log
	if c.Breaker {
		b.Failures, b.Fault = c.Failures, c.Failure
		log.ErrorContext(ctx, "Breaker opens", "failures", c.Failures, "reason", c.Failure.Reason, "message", c.Failure.Message)
	}
	if err := l.attempt.journal.Note(journal.Record{Breaker: b}); err != nil {
		log.WarnContext(ctx, "The breaker cannot be journaled", "error", err.Error())
	}
}

// checkCaptures tells when checkpoints fail again and again.
func (l *loop) checkCaptures() {
	problem := ""
	if c := l.state.Checkpoints; c.Failures >= repeated {
		problem = "checkpoints fail repeatedly, and nothing is promoted until one succeeds: " + c.Failure.Message
	}
	l.attempt.health.Tell(health.Capture, problem)
}

// checkWatcher tells when changes are found by scanning alone.
func (l *loop) checkWatcher() {
	engine := l.services.workspace.Engine()
	if engine == nil || l.state.Seal {
		return
	}
	problem := ""
	if ok, reason := engine.Watching(); !ok {
		problem = "changes are found by scanning only: " + reason
	}
	l.attempt.health.Tell(health.Watcher, problem)
}
