// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
)

// act is one that was decided, ready to be carried out beside the loop: it took with it what it needs of the state.
type act func(context.Context) (supervise.Event, error)

// executors prepare acts in the loop's goroutine, where its state may be read.
var executors = map[supervise.Kind]func(*loop, supervise.Action) act{
	supervise.Start: func(l *loop, a supervise.Action) act {
		o := l.latest
		task, _ := l.state.Task(a.Task)
		if err := l.catchUp(); err != nil { // by the journaled orders, the task before may not be over
			return func(ctx context.Context) (supervise.Event, error) { return l.acts.unstarted(ctx, a.Task, err) }
		}
		return func(ctx context.Context) (supervise.Event, error) {
			return l.acts.start(ctx, o, task.Name, task.Correction)
		}
	},
	supervise.Checkpoint: func(l *loop, a supervise.Action) act {
		if a.Closes { // the journaled orders say which gates must pass before the task is done
			if err := l.catchUp(); err != nil {
				return func(ctx context.Context) (supervise.Event, error) { return l.acts.missed(ctx, a, err) }
			}
		}
		o, running, streak := l.occasion(a), l.state.Agent.Running, streakOf(l.state)
		return func(ctx context.Context) (supervise.Event, error) {
			return l.acts.checkpoint(ctx, a, o, running, streak)
		}
	},
	supervise.Rollback: func(l *loop, a supervise.Action) act {
		o, running := l.occasion(a), l.state.Agent.Running
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.rollback(ctx, a, o, running) }
	},
	supervise.Plan: func(l *loop, a supervise.Action) act {
		o, _ := l.given()
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.plan(ctx, o, a.Request) }
	},
	supervise.ApprovePlan: func(l *loop, a supervise.Action) act {
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.approvePlan(ctx, a) }
	},
	supervise.Gate: func(l *loop, a supervise.Action) act {
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.gate(ctx, a) }
	},
	supervise.Consult: func(l *loop, a supervise.Action) act {
		o := l.latest
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.consult(ctx, o, a.Reviewer) }
	},
	supervise.Direct: func(l *loop, _ supervise.Action) act {
		open := l.services.directives.CriticalOfReviewers()
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.direct(ctx, open) }
	},
	supervise.Polish: func(l *loop, _ supervise.Action) act {
		open := l.services.directives.OpenOfReviewers()
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.polish(ctx, open) }
	},
	supervise.Patch:  (*loop).patch,
	supervise.Kill:   func(l *loop, _ supervise.Action) act { return l.acts.kill },
	supervise.Freeze: func(l *loop, _ supervise.Action) act { return l.acts.freeze },
	supervise.Thaw:   func(l *loop, _ supervise.Action) act { return l.acts.thaw },
	supervise.Release: func(*loop, supervise.Action) act {
		return func(context.Context) (supervise.Event, error) { return supervise.Released{}, nil }
	},
	supervise.Answer: func(l *loop, a supervise.Action) act {
		return func(context.Context) (supervise.Event, error) {
			return supervise.Answered{Answer: a.Answer}, l.attempt.reports.Answer(a.Answer)
		}
	},
	supervise.AddTask: func(l *loop, _ supervise.Action) act {
		o := l.latest
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.addTask(ctx, o) }
	},
	supervise.Park: func(l *loop, a supervise.Action) act {
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.park(ctx, a.Task, a.Question) }
	},
	supervise.Abort: func(l *loop, a supervise.Action) act {
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.abort(ctx, a) }
	},
	supervise.Drop: func(l *loop, a supervise.Action) act {
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.drop(ctx, a.Task) }
	},
	supervise.Review: func(l *loop, _ supervise.Action) act {
		o := l.latest
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.review(ctx, o) }
	},
	supervise.Push: func(l *loop, _ supervise.Action) act {
		o := l.latest
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.push(ctx, o) }
	},
	supervise.Finish: func(l *loop, a supervise.Action) act {
		return func(ctx context.Context) (supervise.Event, error) { return l.acts.finish(ctx, a) }
	},
	supervise.Leave: func(l *loop, _ supervise.Action) act { return l.acts.leave },
}

// act prepares an act.
func (l *loop) act(a supervise.Action) act {
	if prepare, known := executors[a.Kind]; known {
		return prepare(l, a)
	}
	return func(context.Context) (supervise.Event, error) { return nil, fmt.Errorf("no such act: %q", a.Kind) }
}

// occasion of a checkpoint, as things stand.
func (l *loop) occasion(a supervise.Action) checkpoint.Occasion {
	o := checkpoint.Occasion{Trigger: a.Trigger, Closes: a.Closes, Aborts: a.Aborts, Hold: a.Hold, Requests: a.Requests, Orders: l.latest, Terms: checkpoint.TermsOf(l.latest)}
	if task, ok := l.state.Task(a.Task); ok {
		o.Task, o.Ending = task.Name, l.state.Ending(task)
		if !a.Aborts { // what is left without the task has to comply with the policy of now
			o.Pin(l.attempt.journal.State().Tasks[task.Name])
		}
	}
	if l.state.Agent.Connected && l.state.Agent.Leftovers {
		var ask *protocol.RunnerAsk
		if !l.state.Agent.Frozen { // one that is frozen does not answer
			ask = askToPause(l.attempt.options.adapter(l.latest.Agent.Runtime), l.attempt.journal.State().Sequence, o)
		}
		o.Freezer = &freezer{agent: l.agent, timeout: o.Terms.Policy.Execution.PauseTimeout, keep: l.state.Agent.Frozen, now: l.attempt.options.Now, ask: ask}
	}
	return o
}

// patch takes the one that waits longest. Its caller is answered when the result is there, by the loop.
func (l *loop) patch(a supervise.Action) act {
	o, call := l.occasion(a), l.queue.Take()
	var result tools.PatchResult
	var failure error
	l.answer = func() { l.queue.Finish(result, failure) }
	return func(ctx context.Context) (event supervise.Event, err error) {
		if call == nil {
			return supervise.CalledOff{}, nil
		}
		if result, event, failure, err = l.acts.patch(ctx, a, o, call.Patch); err != nil {
			failure = tools.ErrAway // this process ends; the next one says
		}
		return event, err
	}
}
