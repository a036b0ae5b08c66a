// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// reply is the way back to the agent.
type reply struct {
	w http.ResponseWriter
	// started: its head was sent; streams: what follows it are events.
	started atomic.Bool
	streams bool
	// returns: the last line of events ended with CR and LF; last is the last byte of them.
	returns bool
	last    byte
	// uncounted leaves out the count of tokens that the agent has not asked for; nil where nothing is left out.
	uncounted *dialect.UsageFilter
	// patience with an agent that does not read, beyond what it takes to read at unreadRate; spent is what it has let writes wait, and
	// written how many bytes it has read. Stalled: it was too long.
	patience, spent time.Duration
	written         int64
	stalled         bool
	// alive ends the comments that are sent meanwhile; nil where there are none.
	alive func()
}

// start sends the head, once.
func (r *reply) start(status int) {
	if !r.started.Swap(true) {
		r.w.WriteHeader(status)
	}
}

// unreadRate is the slowest at which an agent reads a long answer, in bytes per second.
const unreadRate = 1 << 20

// begin with a connection on which another answer may have left a deadline.
func (r *reply) begin() {
	_ = http.NewResponseController(r.w).SetWriteDeadline(time.Time{}) // where there is none, none is needed
}

// deadline of the next write: an agent that does not read its answer is cut off, and its slots and memory are free.
func (r *reply) deadline() {
	left := r.patience - r.spent + time.Duration(r.written/unreadRate)*time.Second
	_ = http.NewResponseController(r.w).SetWriteDeadline(time.Now().Add(left))
}

// pass a part of the backend's answer on, without what is left out of it; false where the agent is gone, or does not read.
func (r *reply) pass(part []byte) bool {
	if r.uncounted == nil {
		return r.write(part)
	}
	for chunk := range slices.Chunk(part, 32<<10) { // the filter copies each
		if !r.write(r.uncounted.Pass(chunk)) {
			return false
		}
	}
	return true
}

// end of the backend's answer.
func (r *reply) end() {
	if r.uncounted != nil {
		r.write(r.uncounted.Rest())
	}
}

// write a part of the answer; false where the agent is gone, or does not read.
func (r *reply) write(part []byte) bool {
	const step = 64 << 10
	for len(part) > 0 {
		n := min(len(part), step)
		began := time.Now()
		r.deadline()
		_, err := r.w.Write(part[:n])
		if r.streams {
			r.ends(part[:n])
		}
		if flushed := http.NewResponseController(r.w).Flush(); err == nil {
			err = flushed
		}
		r.spent += time.Since(began)
		r.written += int64(n)
		if err != nil {
			r.stalled = errors.Is(err, os.ErrDeadlineExceeded)
			return false
		}
		part = part[n:]
	}
	return true
}

// ends notes how the lines of a part of a stream end.
func (r *reply) ends(part []byte) {
	switch i := bytes.LastIndexByte(part, '\n'); {
	case i > 0:
		r.returns = part[i-1] == '\r'
	case i == 0:
		r.returns = r.last == '\r'
	}
	r.last = part[len(part)-1]
}

// alike gives lines that end with LF the ends that the stream's lines have: clients that look for either end of an event take two events for one where
// the ends differ.
func (r *reply) alike(lines []byte) []byte {
	if !r.returns && r.last != '\r' {
		return lines
	}
	lines = bytes.ReplaceAll(lines, []byte("\n"), []byte("\r\n"))
	if r.last == '\r' { // a line was cut in its end
		lines = lines[1:]
	}
	return lines
}

// keepAlive sends comments during silence, until settle is called: clients give up a call that is silent for too long.
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
