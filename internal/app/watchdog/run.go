// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/link"
)

// leaveWithin bounds the end of a pod that is asked to go: the last checkpoint and its report. The kubelet kills after
// 60 seconds, the runner gives up after 45.
const leaveWithin = 40 * time.Second

// quiet is the least time between two looks at what has changed: an agent that writes all the time must not keep the
// watchdog busy with counting.
const quiet = 100 * time.Millisecond

// run supervises: it asks supervise.Next what to do, does it, and tells what came of it.
type run struct {
	workshop

	agent  *link.Runner // nil in a seal run
	state  supervise.State
	latest contract.Orders
	told   string // violations that the agent was told of last, as a digest
	noted  string // judgement whose untold violations were logged last

	warnings warnings

	desk       *desk
	toolsURL   string // empty where the agent has no tools
	serving    sync.WaitGroup
	closeTools context.CancelFunc

	done       chan result // of the act under way
	working    sync.WaitGroup
	cancel     context.CancelFunc
	quiet      <-chan time.Time
	terminated <-chan struct{}
	deadline   <-chan time.Time
	ending     chan struct{} // closed when the pod is asked to end
	tidying    atomic.Bool
	stopTidy   atomic.Pointer[context.CancelFunc] // of the tidying under way or over
}

func newRun(a *attempt) *run {
	r := &run{workshop: workshop{attempt: a}, done: make(chan result, 1), ending: make(chan struct{}), closeTools: func() {}}
	r.desk = newDesk(r)
	return r
}

// result of an act: what it means to the state machine, or why the process must end.
type result struct {
	event supervise.Event
	err   error
}

// Run supervises the agent until the attempt has ended. It is started again after a crash, and goes on where it was.
func Run(ctx context.Context, o Options) error {
	a, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer a.end()
	r := newRun(a)
	defer r.close()
	if err := r.resume(ctx); err != nil {
		return err
	}
	if err := r.serveTools(ctx); err != nil {
		return err
	}
	defer r.serving.Wait()
	defer func() { r.closeTools() }()
	if r.agent, err = link.Listen(o.Paths.socket(), &runnerSession{path: o.Paths.session(), attempt: o.Attempt}); err != nil {
		return fmt.Errorf("listen for the runner: %w", err)
	}
	defer func() { _ = r.agent.Close() }()
	if err := r.loop(ctx); err != nil {
		return err
	}
	pause(ctx, o.Linger)
	return nil
}

// resume reads what earlier processes have left, completes what they could not, and starts to watch.
func (r *run) resume(ctx context.Context) error {
	book, err := openBook(r.Paths.journal(), r.FoldAbove, r.Now)
	if err != nil {
		return err
	}
	r.book = book
	s := r.journal()
	if s.Epoch != r.Attempt || s.Orders == nil || s.Base == nil {
		return fmt.Errorf("%w: attempt %d was not prepared: the journal is of attempt %d", errCorrupt, r.Attempt, s.Epoch)
	}
	if r.repo, err = git.Open(ctx, r.Paths.repository(), git.Options{}); err != nil {
		return err
	}
	if err := r.openWorkspace(ctx, *s.Orders); err != nil {
		return err
	}
	if err := r.verify(ctx, *s.Orders); err != nil {
		return err
	}
	recalled, err := r.engine.Recall(ctx)
	if err != nil {
		return err
	}
	if err := r.engine.Watch(ctx); err != nil {
		return fmt.Errorf("watch workspace: %w", err)
	}
	r.Log.InfoContext(ctx, "Watching the workspace", "knownFromPrepare", recalled)
	r.checkWatcher()
	r.latest = *s.Orders
	r.state = restored(r.journal(), false, r.Now())
	return nil
}

// checkWatcher tells when changes are found by scanning alone.
func (r *run) checkWatcher() {
	if r.engine == nil || r.state.Seal {
		return
	}
	problem := ""
	if ok, reason := r.engine.Watching(); !ok {
		problem = "changes are found by scanning only: " + reason
	}
	r.health.tell(watcherHealth, problem)
}

// restored is where the state machine goes on, according to the journal.
func restored(j journal.State, seal bool, now time.Time) supervise.State {
	s := supervise.State{Seal: seal, Rules: supervise.RulesOf(j.Orders.Policy), Earlier: j.Final}
	s.Checkpoints.Last, s.Checkpoints.Unseen = now, !seal
	if j.Breaker.Open {
		s.Checkpoints.Breaker, s.Checkpoints.Failures, s.Checkpoints.Failure = true, j.Breaker.Failures, j.Breaker.Fault
	}
	s.Delivery.Head, s.Delivery.Pushed = j.Promoted.Commit, j.Pushed
	if j.Squashed != nil {
		s.Delivery.Squashed = j.Squashed.Reason
	}
	s.Delivery.Changed = j.Base != nil && j.Promoted.Tree != j.Base.Tree
	for _, t := range j.Orders.Tasks {
		task := supervise.Task{Name: t.Name, Phase: supervise.Pending}
		switch have := j.Tasks[t.Name]; {
		case have.Done:
			task.Phase = supervise.Done
		case have.Ended:
			task.Phase, task.ExitCode = supervise.Exited, have.ExitCode
		case have.Begun:
			task.Phase, s.Rules = supervise.Running, supervise.RulesOf(have.Policy)
		}
		s.Tasks = append(s.Tasks, task)
	}
	return s
}

// loop runs until the attempt is over, or an error ends the process.
func (r *run) loop(ctx context.Context) error {
	acts, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		stop()
		r.working.Wait()
	}()
	r.terminated = ctx.Done()
	r.apply(acts, r.ordered(*r.journal().Orders))
	if j := r.journal(); j.Finished {
		r.start(acts, supervise.Action{Kind: supervise.Finish, Final: *j.Final})
	}
	for !r.state.Over() {
		switch a := supervise.Next(r.state, r.Now()); a.Kind {
		case supervise.Wait:
			if r.state.Doing != supervise.Finish { // the last status has been said
				r.checkWatcher()
				r.say(acts, r.state.Status(r.base()))
			}
			if err := r.wait(acts, a.Until); err != nil {
				return err
			}
		case supervise.Cancel:
			r.state = r.state.Begin(a)
			r.cancel()
		default:
			r.start(acts, a)
		}
	}
	return nil
}

// terminate starts the clock of a pod that has to end.
func (r *run) terminate() {
	if r.deadline == nil {
		r.terminated, r.deadline = nil, time.After(leaveWithin)
		close(r.ending)
	}
}

// base commit, empty when there is none yet.
func (r *run) base() string {
	if b := r.journal().Base; b != nil {
		return b.Commit
	}
	return ""
}

// start carries an act out beside the loop, so that orders and signals are heard meanwhile.
func (r *run) start(ctx context.Context, a supervise.Action) {
	r.state = r.state.Begin(a)
	r.lookAtDesk()
	if a.Kind == supervise.Finish {
		last := r.state
		last.Final = &a.Final
		r.say(ctx, last.Status(r.base()))
	}
	work := r.work(a)
	ctx, r.cancel = context.WithCancel(ctx)
	r.working.Go(func() {
		event, err := work(ctx)
		r.done <- result{event: event, err: err}
	})
}

// wait takes one thing that happens, or lets the time come that was asked for.
func (r *run) wait(ctx context.Context, until time.Time) error {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(until.Sub(r.Now()))
	}
	select {
	case <-timer:
	case done := <-r.done:
		if r.cancel(); done.err != nil {
			return done.err
		}
		r.apply(ctx, done.event)
		r.notice(ctx)
		r.tidy(ctx)
	case <-r.orders.changed:
		return r.hear(ctx)
	case e, open := <-r.events():
		if open {
			r.heard(ctx, e)
		}
	case <-r.wake():
		r.quiet = time.After(quiet)
		r.notice(ctx)
		r.warnings.changed(r.Now())
	case <-r.quiet:
		r.quiet = nil
	case <-r.warnings.due:
		r.forewarn(ctx)
	case <-r.desk.notify:
		r.lookAtDesk()
	case <-r.terminated:
		r.terminate()
		r.Log.InfoContext(ctx, "Asked to end")
		r.apply(ctx, supervise.Terminated{})
	case <-r.deadline:
		return errors.New("the pod has to end, and what was under way took too long")
	}
	return nil
}

// events of the runner; none in a seal run.
func (r *run) events() <-chan link.Event {
	if r.agent == nil {
		return nil
	}
	return r.agent.Events()
}

// wake delivers when the workspace changes, but not all the time.
func (r *run) wake() <-chan struct{} {
	if r.engine == nil || r.quiet != nil {
		return nil
	}
	return r.engine.Wake()
}

// tidy keeps this process and the trusted repository small, beside everything else.
func (r *run) tidy(ctx context.Context) {
	if r.repo == nil {
		return
	}
	r.repo.Store().Recent().Clear()
	if !r.tidying.CompareAndSwap(false, true) {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	r.stopTidy.Store(&stop)
	r.working.Go(func() {
		defer r.tidying.Store(false)
		defer stop()
		ReturnMemory()
		done, err := r.repo.Tidy(ctx, r.MaxPacks)
		switch {
		case err != nil && ctx.Err() == nil:
			r.Log.WarnContext(ctx, "The trusted repository is not tidied", "error", err.Error())
		case done:
			r.Log.InfoContext(ctx, "Packs of the trusted repository were put together")
		}
	})
}

// notice counts what has changed in the workspace.
func (r *run) notice(ctx context.Context) {
	if r.engine != nil {
		r.apply(ctx, supervise.Changed{Paths: r.engine.Changed()})
	}
}

// hear takes new orders.
func (r *run) hear(ctx context.Context) error {
	o := *r.orders.get()
	if err := r.noteOrders(o); err != nil {
		if fatal(err) {
			return err
		}
		r.Log.WarnContext(ctx, "Orders are followed, but not journaled", "error", err.Error())
	}
	r.latest = o
	r.apply(ctx, r.ordered(o))
	return nil
}

func (r *run) ordered(o contract.Orders) supervise.Ordered {
	return supervise.Ordered{Orders: o, Answered: func(id string) bool {
		_, answered := r.journal().Requests[id]
		return answered
	}}
}

// lookAtDesk tells the state machine what the agent has put on the desk, and the desk how things stand.
func (r *run) lookAtDesk() {
	r.state = r.state.Apply(r.desk.see(r.state, r.latest), r.Now())
}

// apply tells the state machine what happened, and keeps the journal's breaker as it is there.
func (r *run) apply(ctx context.Context, e supervise.Event) {
	r.state = r.state.Apply(e, r.Now())
	r.lookAtDesk()
	r.checkCaptures()
	c := r.state.Checkpoints
	if c.Breaker == r.journal().Breaker.Open {
		return
	}
	b := &journal.Breaker{Open: c.Breaker}
	if c.Breaker {
		b.Failures, b.Fault = c.Failures, c.Failure
		r.Log.ErrorContext(ctx, "Breaker opens", "failures", c.Failures, "reason", c.Failure.Reason, "message", c.Failure.Message)
	}
	if err := r.book.Note(journal.Record{Breaker: b}); err != nil {
		r.Log.WarnContext(ctx, "The breaker is not journaled", "error", err.Error())
	}
}
