// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runnerlink

import (
	"errors"
	"runtime"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// fill leaves no room for events: one is offered to the watchdog, and as many as may wait do.
func fill(r *Runner) (n int) {
	for n <= maxQueued {
		if r.events.push(Event{Exited: &protocol.RunnerExited{Start: int64(n)}}) == nil {
			n++
		}
		runtime.Gosched()
	}
	return n
}

// TestFullQueueEndsTheConnection: a runner whose event finds no room is dropped, and that is told once there is room; the
// next runner is let in after that, and says how things stand.
func TestFullQueueEndsTheConnection(t *testing.T) {
	r, path := listening(t)
	conn := greet(t, r, path, protocol.RunnerHello{})
	n := fill(r)
	if err := conn.Send(protocol.RunnerEvent{Exited: &protocol.RunnerExited{Start: int64(n)}}); err != nil {
		t.Fatal(err)
	}
	if command, err := conn.Receive(); err == nil {
		t.Fatalf("the connection holds, and brings %+v", command)
	}
	for i := range n {
		if e := next(t, r); e.Exited == nil || e.Exited.Start != int64(i) {
			t.Fatalf("event %d = %+v", i, e)
		}
	}
	if e := next(t, r); !errors.Is(e.Lost, errTooManyEvents) {
		t.Errorf("event = %+v, want Lost with %q", e, errTooManyEvents)
	}
	greet(t, r, path, protocol.RunnerHello{LastExit: &protocol.RunnerExited{Start: int64(n)}})
}

// TestFullQueueRefusesARunner: a runner is not kept when its hello cannot be told.
func TestFullQueueRefusesARunner(t *testing.T) {
	r, path := listening(t)
	n := fill(r)
	conn := dial(t, path)
	if err := conn.Send(protocol.RunnerEvent{Hello: &protocol.RunnerHello{Version: protocol.Version}}); err != nil {
		t.Fatal(err)
	}
	take(t, conn)
	if command, err := conn.Receive(); err == nil {
		t.Fatalf("the connection holds, and brings %+v", command)
	}
	for range n {
		next(t, r)
	}
	if e := next(t, r); !errors.Is(e.Lost, errTooManyEvents) {
		t.Errorf("event = %+v, want Lost with %q", e, errTooManyEvents)
	}
	greet(t, r, path, protocol.RunnerHello{})
}

// TestCloseWithFullQueue: Close does not wait for room that nobody makes.
func TestCloseWithFullQueue(t *testing.T) {
	r, path := listening(t)
	conn := greet(t, r, path, protocol.RunnerHello{})
	fill(r)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
