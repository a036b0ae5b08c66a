// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/toolbackend"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// source is something that the loop listens to.
type source struct {
	name string
	// channel as things stand: a nil channel is not listened to.
	channel func(*loop) reflect.Value
	// handle what came. The event is its news for the state machine, nil for none; an error ends the process.
	handle func(context.Context, *loop, reflect.Value) (supervise.Event, error)
}

// from makes a source of a channel and a handler. The handler of a channel that was closed gets the zero value.
func from[T any](name string, channel func(*loop) <-chan T, handle func(*loop, context.Context, T) (supervise.Event, error)) source {
	return source{
		name:    name,
		channel: func(l *loop) reflect.Value { return reflect.ValueOf(channel(l)) },
		handle: func(ctx context.Context, l *loop, v reflect.Value) (supervise.Event, error) {
			came, _ := reflect.TypeAssert[T](v)
			return handle(l, ctx, came)
		},
	}
}

// urgent sources are also looked at before each decision, in this order: an answer may end its task, and a restart must not come before what
// steering wants.
var urgent = []source{
	from("rejection", func(l *loop) <-chan modelproxy.Rejection { return l.accounts.rejected() }, (*loop).rejected),
	from("measure", func(l *loop) <-chan struct{} {
		if l.state.Doing == supervise.Start { // an agent may be heard before its start is noted: it is waited for
			return nil
		}
		return l.steering.Wanted()
	}, func(l *loop, ctx context.Context, _ struct{}) (supervise.Event, error) { return l.measure(ctx) }),
}

// sources are all that the loop listens to while it waits. Of several that have something, any comes first.
var sources = slices.Concat(urgent, []source{
	from("time", func(l *loop) <-chan time.Time { return l.timer }, nothing),
	from("act", func(l *loop) <-chan result { return l.done }, (*loop).finished),
	from("crash", func(l *loop) <-chan error { return l.crashed }, func(_ *loop, _ context.Context, err error) (supervise.Event, error) {
		return nil, err
	}),
	from("orders", func(l *loop) <-chan struct{} { return l.attempt.orders.changed }, (*loop).hear),
	from("runner", (*loop).events, (*loop).heard),
	from("allowance", func(l *loop) <-chan protocol.Allowance { return l.accounts.told() }, func(l *loop, ctx context.Context, a protocol.Allowance) (supervise.Event, error) {
		return l.accounts.event(ctx, l.state, a), nil
	}),
	from("conversation", func(l *loop) <-chan struct{} { return l.steering.Changed() }, func(l *loop, _ context.Context, _ struct{}) (supervise.Event, error) {
		return supervise.Conversed{Conversation: l.steering.Conversation(), Told: l.steering.Told()}, nil
	}),
	from("words", func(l *loop) <-chan struct{} { return l.steering.Unspoken() }, nothing),                // after says it
	from("directives", func(l *loop) <-chan struct{} { return l.services.directives.Changed() }, nothing), // the status says it
	from("tools", func(l *loop) <-chan toolbackend.Call { return l.backend.Calls() }, func(l *loop, _ context.Context, c toolbackend.Call) (supervise.Event, error) {
		l.queue.Handle(c)
		return nil, nil
	}),
	from("workspace", (*loop).wake, func(l *loop, _ context.Context, _ struct{}) (supervise.Event, error) {
		l.quiet = time.After(quiet)
		l.steering.Moved()
		l.warnings.changed(l.now())
		return l.changed(), nil
	}),
	from("quiet", func(l *loop) <-chan time.Time { return l.quiet }, func(l *loop, _ context.Context, _ time.Time) (supervise.Event, error) {
		l.quiet = nil
		return nil, nil
	}),
	from("warning", func(l *loop) <-chan time.Time { return l.warnings.due }, (*loop).forewarn),
	from("signal", func(l *loop) <-chan struct{} { return l.terminated }, func(l *loop, ctx context.Context, _ struct{}) (supervise.Event, error) {
		l.attempt.options.Log.InfoContext(ctx, "Asked to end")
		return l.terminate(), nil
	}),
	from("deadline", func(l *loop) <-chan time.Time { return l.deadline }, func(*loop, context.Context, time.Time) (supervise.Event, error) {
		return nil, errors.New("the pod has to end, and what was under way took too long")
	}),
})

// nothing is to be done but what follows every event.
//
//nolint:revive // The loop comes before the context, as in the method expressions of the table.
func nothing[T any](*loop, context.Context, T) (supervise.Event, error) { return nil, nil }

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

// wait takes one thing that happens, or waits for the requested time.
func (l *loop) wait(ctx context.Context, until time.Time) error {
	l.timer = nil
	if !until.IsZero() {
		l.timer = time.After(until.Sub(l.now()))
	}
	cases := make([]reflect.SelectCase, len(sources))
	for i, s := range sources {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: s.channel(l)}
	}
	i, came, _ := reflect.Select(cases)
	return l.take(ctx, sources[i], came)
}

// hurry takes what urgent sources have.
func (l *loop) hurry(ctx context.Context) error {
	for _, s := range urgent {
		if came, is := s.channel(l).TryRecv(); is {
			if err := l.take(ctx, s, came); err != nil {
				return err
			}
		}
	}
	return nil
}

// take what came from a source.
func (l *loop) take(ctx context.Context, s source, came reflect.Value) error {
	e, err := s.handle(ctx, l, came)
	if err == nil {
		l.after(ctx, e)
	}
	return err
}
