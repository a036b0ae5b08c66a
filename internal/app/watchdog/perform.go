// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/link"
)

const (
	// startWithin bounds the runner's answer to a start, and what its other answers take beyond the time they are given.
	startWithin = 30 * time.Second
	// farewell bounds what is reported before a pod that was asked to end is left.
	farewell = 10 * time.Second
	// killWithin bounds the runner's answer to a kill beyond the grace that it gives: it waits 30 s by itself.
	killWithin = 45 * time.Second
	// resistedPause is the pause after processes could not be stopped.
	resistedPause = time.Second
	// endWithin bounds the end of an agent's container whose processes could not be stopped, before it is reported.
	endWithin = 10 * time.Second
	// retryLink is the pause after the runner was out of reach.
	retryLink = 200 * time.Millisecond
	// breakerLimit is how long a freeze of the breaker lasts before it is renewed.
	breakerLimit = time.Hour
)

// work is an act, ready to be carried out beside the loop: it takes with it what it needs of the state.
type work func(context.Context) (supervise.Event, error)

// work prepares an act.
func (r *run) work(a supervise.Action) work {
	switch a.Kind {
	case supervise.Start:
		return r.startAgent(a, r.latest)
	case supervise.Checkpoint:
		return r.takeCheckpoint(a, r.occasion(a))
	case supervise.Rollback:
		return r.rollBack(a, r.occasion(a))
	case supervise.Patch:
		return r.layPatch(a, r.occasion(a))
	case supervise.Kill:
		return r.kill
	case supervise.Freeze:
		return r.freeze
	case supervise.Thaw:
		return r.thaw
	case supervise.Answer:
		return func(context.Context) (supervise.Event, error) {
			return supervise.Answered{Answer: a.Answer}, r.answer(a.Answer)
		}
	case supervise.Review:
		return r.review(r.latest)
	case supervise.Push:
		return r.push(r.latest)
	case supervise.Finish:
		return r.finish(a)
	case supervise.Leave:
		return r.leave
	case supervise.Wait, supervise.Cancel: // the loop's own: there is nothing to carry out beside it
	}
	return func(context.Context) (supervise.Event, error) { return nil, fmt.Errorf("no such act: %q", a.Kind) }
}

// startAgent pins the policy for the task, and starts it.
func (r *run) startAgent(a supervise.Action, o contract.Orders) work {
	task := r.state.Tasks[a.Task].Name
	return func(ctx context.Context) (supervise.Event, error) {
		err := r.book.Note(journal.Record{TaskBegun: &journal.TaskBegun{Name: task, Policy: o.Policy, Plan: o.Plan}})
		if err == nil {
			err = r.probe("task begun")
		}
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, startWithin)
		defer cancel()
		id, started, err := r.agent.Start(ctx, r.command(o, task))
		var refused *link.RefusedError
		switch {
		case errors.As(err, &refused):
			return supervise.NotStarted{Message: fmt.Sprintf("task %q: %s", task, refused.Reason)}, nil
		case err != nil:
			return r.unreachable(ctx, err)
		}
		r.Log.InfoContext(ctx, "Agent started", "task", task, "pid", started.PID, "policy", o.Policy.Hash)
		err = r.book.Note(journal.Record{TaskStarted: &journal.TaskStarted{Name: task, Start: id}})
		if err == nil {
			err = r.probe("task started")
		}
		return supervise.Started{Rules: supervise.RulesOf(o.Policy)}, err
	}
}

// command is how the agent is started for a task.
func (r *run) command(o contract.Orders, task string) contract.RunnerStart {
	var t contract.Task
	for _, have := range o.Tasks {
		if have.Name == task {
			t = have
		}
	}
	env := append([]string{"HOME=" + r.Paths.Home}, o.Agent.Env...)
	env = append(env, r.toolsEnv()...)
	return contract.RunnerStart{
		Argv: o.Agent.Command, Dir: r.Paths.Workspace,
		Env: append(env,
			contract.EnvFeature+"="+o.Feature.Namespace+"/"+o.Feature.Name,
			contract.EnvAttempt+"="+strconv.FormatInt(o.Attempt, 10),
			contract.EnvTask+"="+t.Name,
			contract.EnvPrompt+"="+cmp.Or(t.Prompt, o.Prompt),
			contract.EnvInstructions+"="+t.Instructions),
	}
}

// unreachable ends an act that the runner did not answer. The link tells by an event when it is gone, and when it is
// back; the pause is there because that event may be behind this one.
func (r *run) unreachable(ctx context.Context, err error) (supervise.Event, error) {
	r.Log.WarnContext(ctx, "The runner did not do what it was asked", "error", err.Error())
	pause(ctx, retryLink)
	return supervise.Aborted{}, nil
}

// resisted ends a kill, freeze or thaw that failed. Where the runner was out of reach nothing was tried; a runner that is
// there and does not answer cannot do it either.
func (r *run) resisted(ctx context.Context, act string, err error) (supervise.Event, error) {
	if errors.Is(err, link.ErrDisconnected) || errors.Is(err, link.ErrLost) || ctx.Err() != nil {
		return r.unreachable(ctx, err)
	}
	r.Log.ErrorContext(ctx, "The agent's processes could not be stopped", "act", act, "error", err.Error())
	pause(ctx, resistedPause)
	return supervise.Resisted{Message: clip(fmt.Sprintf("%s: %v", act, err), maxReason)}, nil
}

func (r *run) kill(ctx context.Context) (supervise.Event, error) {
	within, cancel := context.WithTimeout(ctx, r.Grace+killWithin)
	defer cancel()
	if err := r.agent.Kill(within, r.Grace); err != nil {
		return r.resisted(ctx, "kill", err)
	}
	return supervise.Killed{}, nil
}

func (r *run) freeze(ctx context.Context) (supervise.Event, error) {
	within, cancel := context.WithTimeout(ctx, 2*startWithin)
	defer cancel()
	f, err := r.agent.Freeze(within, contract.RunnerFreeze{Timeout: startWithin, Limit: breakerLimit})
	if err != nil {
		return r.resisted(ctx, "freeze", err)
	}
	r.Log.WarnContext(ctx, "Agent is frozen until the breaker is reset", "processes", f.Processes, "settled", f.Settled)
	return supervise.FrozenNow{}, nil
}

func (r *run) thaw(ctx context.Context) (supervise.Event, error) {
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if _, err := r.agent.Thaw(within); err != nil {
		return r.resisted(ctx, "thaw", err)
	}
	return supervise.ThawedNow{}, nil
}

// occasion of a checkpoint, as things stand.
func (r *run) occasion(a supervise.Action) occasion {
	o := occasion{trigger: a.Trigger, closes: a.Closes, hold: a.Hold, requests: a.Requests, orders: r.latest,
		policy: r.latest.Policy, plan: r.latest.Plan}
	if a.Task >= 0 {
		task := r.state.Tasks[a.Task]
		o.task, o.ending = task.Name, r.state.Ending(a.Task)
		if pinned := r.journal().Tasks[task.Name]; pinned.Begun {
			o.policy, o.plan = pinned.Policy, pinned.Plan
		}
	}
	if r.state.Agent.Connected && r.state.Agent.Leftovers {
		o.freezer = &freezer{agent: r.agent, timeout: o.policy.Execution.PauseTimeout, now: r.Now, ask: r.ask(o)}
	}
	return o
}

func (r *run) takeCheckpoint(a supervise.Action, o occasion) work {
	running, streak := r.state.Agent.Running, r.streak()
	return func(ctx context.Context) (supervise.Event, error) {
		err := r.ready(ctx, &o)
		var t taken
		if err == nil {
			t, err = r.checkpoint(ctx, o)
		}
		if err != nil {
			e, err := r.missed(ctx, a, err)
			if m, is := e.(supervise.Missed); is && running {
				r.tellFailure(ctx, streak, m.Fault)
			}
			return e, err
		}
		if running {
			r.tell(ctx, o, t)
		}
		if running && !t.snapshot.Settled {
			r.tellFailure(ctx, streak, contract.Fault{Reason: contract.ReasonCheckpointFailed, Message: supervise.Unsettled(t.snapshot.Reason)})
		}
		if err := r.shed(ctx, o.orders); err != nil {
			return nil, err
		}
		s := r.journal()
		e := supervise.Taken{Action: a, Settled: t.snapshot.Settled, Unsettled: t.snapshot.Reason, Standing: t.judgement.Verdict,
			Head: s.Promoted.Commit, Changed: s.Promoted.Tree != s.Base.Tree, Objection: objection(t.judgement)}
		e.Completes = t.intent != nil && t.intent.Completes != ""
		return e, nil
	}
}

// ready completes what a crash interrupted. Without an agent, what differs from what the last checkpoint left is not to be
// trusted: nobody knows whether whoever wrote it was done.
func (r *run) ready(ctx context.Context, o *occasion) error {
	if r.journal().Base == nil {
		return errors.New("no attempt has come so far as to lay out a workspace")
	}
	if err := r.needWorkspace(ctx, o.orders); err != nil {
		return err
	}
	if err := r.catchUp(ctx, *o); err != nil || r.agent != nil {
		return err
	}
	j, err := r.glance(ctx, *o, false)
	if err == nil && j.snapshot.Tree.String() != r.journal().Workspace.Tree {
		o.doubt = doubtful
	}
	return err
}

// missed says what a failed checkpoint failed of. Whoever asked for it is told.
func (r *run) missed(ctx context.Context, a supervise.Action, err error) (supervise.Event, error) {
	if fatal(err) {
		return nil, err
	}
	fault := faultOf(err, contract.ReasonCheckpointFailed)
	r.Log.ErrorContext(ctx, "Checkpoint failed", "trigger", a.Trigger, "reason", fault.Reason, "error", err.Error())
	requests := a.Requests
	if r.journal().Pending != nil { // completed before the next checkpoint, and answered then
		requests = nil
	}
	for _, id := range requests {
		if err := r.answer(contract.RequestReport{ID: id, Message: "the checkpoint failed: " + fault.Message}); err != nil {
			r.Log.WarnContext(ctx, "The failure is not reported", "request", id, "error", err.Error())
		}
	}
	return supervise.Missed{Action: a, Fault: fault}, nil
}

// catchUp completes an earlier checkpoint that was journaled but not acted on in full, with the agent held still.
func (r *run) catchUp(ctx context.Context, o occasion) error {
	if r.journal().Pending == nil {
		return nil
	}
	if o.freezer == nil {
		return r.recover(ctx)
	}
	_, err := o.freezer.Freeze(ctx)
	if err == nil {
		err = r.recover(ctx)
	}
	if fatal(err) {
		return err
	}
	return errors.Join(err, o.freezer.Thaw(ctx))
}

// finish says the last word, waits until it has been heard, and lets the pod end.
func (r *run) finish(a supervise.Action) work {
	f := a.Final
	return func(ctx context.Context) (supervise.Event, error) {
		ctx, cancel := r.untilGone(ctx)
		defer cancel()
		if err := r.conclude(ctx, f); err != nil {
			return nil, err
		}
		ended := false
		if a.EndFirst {
			short, stop := context.WithTimeout(ctx, endWithin)
			ended = r.release(short, contract.RunnerBlindCode)
			stop()
		}
		if err := r.spool.Drained(ctx); err != nil {
			return nil, err
		}
		if !ended {
			r.release(ctx, 0)
		}
		return supervise.Finished{Final: &f}, nil
	}
}

// untilGone is a context that ends a little after the pod is asked to end.
func (r *run) untilGone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.ending:
			pause(ctx, farewell)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// leave ends without a last word: the next attempt goes on. What can be reported in time is.
func (r *run) leave(ctx context.Context) (supervise.Event, error) {
	short, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	if err := r.spool.Drained(short); err != nil {
		r.Log.WarnContext(ctx, "Left with reports that wait for the next attempt", "reports", r.spool.Pending())
	}
	// Where the runner is out of reach its container is gone, or ends by itself.
	short, stop := context.WithTimeout(ctx, 5*retryLink)
	defer stop()
	r.release(short, codeTerminated)
	return supervise.Finished{}, nil
}

// codeTerminated is how a process ends that was asked to by SIGTERM.
const codeTerminated = 128 + 15

// release tells the runner to end its container, and says whether it did. A runner that has not come yet is waited for,
// because its container would stay for ever.
func (r *run) release(ctx context.Context, code int) bool {
	if r.agent == nil {
		return true
	}
	for ctx.Err() == nil {
		err := r.agent.Exit(ctx, code)
		if err == nil || errors.Is(err, link.ErrLost) {
			return true
		}
		pause(ctx, retryLink)
	}
	return false
}
