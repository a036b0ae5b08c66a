// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"net/http"
	"sync/atomic"
	"time"
)

// reply is the way back to the agent.
type reply struct {
	w http.ResponseWriter
	// started: its head was sent; streams: what follows it are events.
	started atomic.Bool
	streams bool
	// alive ends the comments that are sent meanwhile; nil where there are none.
	alive func()
}

// start sends the head, once.
func (r *reply) start(status int) {
	if !r.started.Swap(true) {
		r.w.WriteHeader(status)
	}
}

// write a part of the answer; false where the agent is gone.
func (r *reply) write(part []byte) bool {
	_, gone := r.w.Write(part)
	_ = http.NewResponseController(r.w).Flush() // the next write says what is wrong
	return gone == nil
}

// keepAlive sends comments while nothing else is sent, until settle is called: clients take a call for lost that is silent for
// too long.
func (r *reply) keepAlive(every time.Duration) {
	if r.alive != nil {
		return
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	r.alive = func() { close(stop); <-stopped }
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			r.start(http.StatusOK)
			if !r.write([]byte(": the answer is checked\n\n")) {
				return // the backend's answer finds that out
			}
		}
	}()
}

// settle ends the comments: the answer is sent now.
func (r *reply) settle() {
	if r.alive != nil {
		r.alive()
		r.alive = nil
	}
}
