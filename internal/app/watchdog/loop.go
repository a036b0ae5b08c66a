// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/toolbackend"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// leaveWithin bounds the end of a pod after the signal to end: the last checkpoint and its report. The kubelet kills after
// 60 seconds, the runner gives up after 45.
const leaveWithin = 40 * time.Second

// quiet is the least time between two looks at what has changed: an agent that writes all the time must not keep the
// watchdog busy with counting.
const quiet = 100 * time.Millisecond

// repeated is how many checkpoints in a row have to fail, or stay unsettled, before it is reported: a single one is normal in a busy
// workspace, and the next one makes up for it.
const repeated = 2

// loop supervises: it asks supervise.Next what to do, has it done, and tells the state machine what came of it. All of its
// fields belong to the goroutine of run. Acts run next to it, one at a time, and get what they need of the state
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
	spoken int64
	state  supervise.State
	latest protocol.Orders
	// unjournaled: the journal does not have the newest orders.
	unjournaled bool
	warnings    warnings
	lines       lines

	backend *toolbackend.Backend
	queue   *toolbackend.Queue

	// done has the result of the act under way, which cancel calls off; answer is given first once it is there.
	done    chan result
	cancel  context.CancelFunc
	answer  func()
	working sync.WaitGroup

	// early is an exit that was heard before the start was noted.
	early *protocol.RunnerExited

	// crashed has why a service next to the loop ends the process.
	crashed chan error

	timer      <-chan time.Time // of wait
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

// newLoop continues where the journal says; the agent is nil where there is none.
func newLoop(s *services, agent *runnerlink.Runner, latest protocol.Orders) *loop {
	a := s.attempt
	l := &loop{attempt: a, services: s, agent: agent, latest: latest, done: make(chan result, 1), crashed: make(chan error, 1), ending: make(chan struct{})}
	l.acts = &acts{attempt: a, services: s, agent: agent, ending: l.ending, gateExits: make(chan protocol.RunnerExited, 1),
		teller: &teller{writer: newWriter(agent.Input, a.journal, a.options.Log), journal: a.journal, log: a.options.Log}}
	l.backend, l.queue = toolbackend.New(a.journal, func() (*objects.Tree, error) {
		_, now, err := s.workspace.Engine().Trees()
		return now, err
	}, s.directives.Answered, a.options.Now)
	l.state = restored(a.journal.State(), agent == nil || a.options.Gate != "", a.options.Now())
	l.state.ForGate = a.options.Gate
	gating, _ := a.journal.State().Gating()
	l.acts.spoilt = gating != ""
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
		l.acts.teller.writer.drain(beside)
		l.services.retain.Wait()
	}()
	l.terminated = ctx.Done()
	l.working.Go(func() { l.acts.teller.writer.run(beside) })
	l.working.Go(func() {
		if err := l.services.handover.Serve(beside); err != nil {
			l.crashed <- err
		}
	})
	l.checkWatcher()
	if l.agent != nil {
		if err := l.attempt.reports.Plan(); err != nil {
			return err
		}
	}
	l.after(beside, l.begun())
	if j := l.attempt.journal.State(); j.Finished {
		l.start(beside, supervise.Action{Kind: supervise.Finish, Final: *j.Final})
	}
	for !l.state.Over() {
		if err := l.hurry(beside); err != nil {
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

func (l *loop) now() time.Time { return l.attempt.options.Now() }

// say reports how things stand.
func (l *loop) say(ctx context.Context, s supervise.State) {
	base := ""
	if b := l.attempt.journal.State().Base; b != nil {
		base = b.Commit
	}
	r := s.Status(base)
	j := l.attempt.journal.State()
	works, proved := j.Works(), j.ShownGates()
	for i := range r.Tasks {
		t := &r.Tasks[i]
		t.Work, t.Gates = works[t.Name], proved[t.Name]
		if t.Work == nil && t.State == protocol.TaskAborted { // so that the status stays small
			t.Message = ""
		}
	}
	r.DeliveryGates = proved[""]
	r.Directives, r.Reviews = l.services.directives.Status(), j.Reviewed
	r.KnowledgeToReview = plain.CutList(j.Unconfirmed, protocol.MaxKnowledgeToReview)
	r.Role, r.Runtime, r.Contracts = l.latest.Agent.Role, l.latest.Agent.Runtime, l.latest.Locks
	if s.Agent.Running {
		r.Unacknowledged = l.steering.Silent()
	}
	l.attempt.say(ctx, r)
}

// start has an act carried out next to the loop, so that orders and signals are heard meanwhile.
func (l *loop) start(ctx context.Context, a supervise.Action) {
	l.state = l.state.Begin(a)
	l.after(ctx, nil)
	if a.Kind == supervise.Start {
		l.calls.begin()
	}
	if a.Kind == supervise.Finish {
		l.after(ctx, l.accounts.close(ctx, l.state))
		l.after(ctx, supervise.Conversed{Conversation: l.steering.Conversation()})
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

// finished takes the result of the act that was under way.
func (l *loop) finished(ctx context.Context, r result) (supervise.Event, error) {
	l.cancel()
	if l.answer != nil {
		l.answer()
		l.answer = nil
	}
	if r.err != nil {
		return nil, r.err
	}
	l.after(ctx, r.event)
	if e := l.early; e != nil {
		l.early = nil
		if _, started := r.event.(supervise.Started); started { // otherwise the runner tells of it when it connects
			exited, err := l.exited(ctx, *e)
			if err != nil {
				return nil, err
			}
			l.after(ctx, exited)
		}
	}
	switch r.event.(type) {
	case supervise.Planned, supervise.Polished, supervise.Directed: // there are other tasks
		o, journaled := l.given()
		if err := l.follow(ctx, o); err != nil {
			return nil, err
		}
		l.after(ctx, l.ordered(l.latest, journaled))
	}
	if l.services.repository != nil {
		l.services.retain.Tidy(ctx)
	}
	return l.changed(), nil
}

// terminate starts the clock of a pod that has to end.
func (l *loop) terminate() supervise.Event {
	if l.deadline == nil {
		l.terminated, l.deadline = nil, time.After(leaveWithin)
		close(l.ending)
	}
	return supervise.Terminated{}
}

// changed counts what has changed in the workspace.
func (l *loop) changed() supervise.Event {
	engine := l.services.workspace.Engine()
	if engine == nil {
		return nil
	}
	return supervise.Changed{Paths: engine.Changed()}
}

// given are the newest orders as intake has sent them, without a plan. Before any have come, they are the journaled ones.
func (l *loop) given() (o protocol.Orders, journaled bool) {
	if o := l.attempt.orders.get(); o != nil {
		return *o, false
	}
	return l.latest, true
}

// begun are the journaled orders. Their requests are as old as their last change: what intake has sent since counts.
func (l *loop) begun() supervise.Ordered {
	o, journaled := *l.attempt.journal.State().Orders, true
	if sent := l.attempt.orders.get(); sent != nil {
		o.Requests, journaled = sent.Requests, false
	}
	return l.ordered(o, journaled)
}

// hear takes new orders.
func (l *loop) hear(ctx context.Context, _ struct{}) (supervise.Event, error) {
	if err := l.follow(ctx, *l.attempt.orders.get()); err != nil {
		return nil, err
	}
	return l.ordered(l.latest, false), nil
}

// follow orders. The error ends the process.
func (l *loop) follow(ctx context.Context, o protocol.Orders) error {
	l.latest, l.unjournaled = l.attempt.complete(o), true
	if err := l.catchUp(); err != nil {
		if steps.Fatal(err) {
			return err
		}
		l.attempt.options.Log.WarnContext(ctx, "Following orders, but cannot journal them", "error", err.Error())
	}
	return nil
}

// catchUp journals the newest orders if the journal does not have them.
func (l *loop) catchUp() error {
	if !l.unjournaled {
		return nil
	}
	if err := l.attempt.noteOrders(l.latest); err != nil {
		return fmt.Errorf("journal the newest orders (%d bytes): %w; make room on the trusted volume, or shorten the spec of the Feature", len(gist(l.latest)), err)
	}
	l.unjournaled = false
	return nil
}

func (l *loop) ordered(o protocol.Orders, journaled bool) supervise.Ordered {
	have := l.attempt.journal.State()
	var made supervise.Made
	if p := have.Planned; p != nil && p.Plan != nil {
		made.Hash, made.Request = plans.Hash(*p.Plan), p.Request
		made.Approved = made.Hash == have.Approved
	}
	return supervise.Ordered{
		Orders:    o,
		Journaled: journaled,
		Answered:  func(id string) bool { _, answered := have.Requests[id]; return answered },
		Done:      func(task string) bool { return have.Tasks[task].Done },
		Aborted:   func(task string) bool { return have.Tasks[task].Aborted },
		AnyDone:   slices.ContainsFunc(slices.Collect(maps.Keys(have.Tasks)), func(name string) bool { return have.Tasks[name].Done && !protocol.Extra(name) }),
		Made:      made,
		Planned:   have.Planned != nil,
	}
}

// look tells the state machine what the agent has asked for through its tools, and the tools how things stand.
func (l *loop) look() {
	l.state = l.state.Apply(l.queue.See(l.state, l.latest), l.now())
}

// after does, in this order, what follows each event, nil for one that does not concern the state machine: directives are followed before
// tools may ask for one, and the state is settled before the agent gets any message.
func (l *loop) after(ctx context.Context, e supervise.Event) {
	occasion := moves(e)
	if occasion {
		l.services.directives.Follow(l.latest)
	}
	if e != nil {
		l.state = l.state.Apply(e, l.now())
	}
	if occasion {
		l.state = l.state.Apply(l.breakpoint(), l.now())
	}
	l.look()
	settle(l)
	l.rearm()
	l.checkCaptures()
	l.speak()
	if occasion {
		l.lines.direct(l)
	}
	l.steering.Idle(!l.state.Agent.Running || l.state.Question != nil || l.state.Agent.Frozen)
	l.noteBreaker(ctx)
}

// moves says whether directives may have become older, or an agent may take the lines that it did not take before: an act, the runner or orders
// told of something. Other events come often and change neither; an agent that does not read is not tried again and again.
func moves(e supervise.Event) bool {
	switch e.(type) {
	case nil, supervise.Allowed, supervise.AnswerRejected, supervise.Changed, supervise.Conversed, supervise.Steered:
		return false
	}
	return true
}

// noteBreaker keeps the journal's breaker as it is.
func (l *loop) noteBreaker(ctx context.Context) {
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
		log.WarnContext(ctx, "Cannot journal the breaker", "error", err.Error())
	}
}

// checkCaptures tells when checkpoints fail again and again.
func (l *loop) checkCaptures() {
	problem := ""
	if c := l.state.Checkpoints; c.Failures >= repeated {
		problem = "checkpoints fail repeatedly, and the watchdog promotes no work before one succeeds: " + c.Failure.Message
	}
	l.attempt.health.Tell(health.Capture, problem)
}

// checkWatcher reports when only scans find changes.
func (l *loop) checkWatcher() {
	engine := l.services.workspace.Engine()
	if engine == nil || l.state.Seal {
		return
	}
	problem := ""
	if ok, reason := engine.Watching(); !ok {
		problem = "the watchdog finds changes by scanning only: " + reason
	}
	l.attempt.health.Tell(health.Watcher, problem)
}
