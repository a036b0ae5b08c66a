// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runnerlink

import (
	"errors"
	"sync"
)

// maxQueued bounds the events that wait for the watchdog. A runner sends a handful in its life; more do not come from a runner.
const maxQueued = 1024

var errTooManyEvents = errors.New("the runner sends events faster than they are taken")

// queue hands events on in their sequence without ever making the reader of the connection wait.
type queue struct {
	out  chan Event
	wake chan struct{}
	stop chan struct{}

	mu      sync.Mutex
	waiting []Event
}

func newQueue() *queue {
	q := &queue{out: make(chan Event), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	go q.run()
	return q
}

func (q *queue) push(e Event) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxQueued {
		return errTooManyEvents
	}
	q.waiting = append(q.waiting, e)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

func (q *queue) run() {
	defer close(q.out)
	for {
		select {
		case <-q.wake:
		case <-q.stop:
			return
		}
		for e, ok := q.next(); ok; e, ok = q.next() {
			select {
			case q.out <- e:
			case <-q.stop:
				return
			}
		}
	}
}

func (q *queue) next() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return Event{}, false
	}
	e := q.waiting[0]
	q.waiting = q.waiting[1:]
	return e, true
}

func (q *queue) close() { close(q.stop) }
