// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// orphanFreezeTimeout bounds the freeze after a broken connection; then the watchdog is looked for all the same.
const orphanFreezeTimeout = 10 * time.Second

// connect looks for the watchdog until it is there.
func (r *runner) connect() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for {
			conn, err := r.dial(ctx, r.options.Socket)
			if err == nil {
				r.post(func() { r.connected(conn) })
				return
			}
			select {
			case <-time.After(r.options.Retry):
			case <-r.done:
				return
			}
		}
	}()
}

func (r *runner) connected(conn *runnerlink.Conn) {
	if r.stopWaiting != nil {
		r.stopWaiting()
	}
	r.everConnected = true
	r.session, r.endSession = context.WithCancel(context.Background())
	r.log.Info("Connected to the watchdog", "frozen", r.frozen)
	r.link = nil // the Hello says what ended meanwhile
	r.checkEnd()
	r.link = conn
	hello := &protocol.RunnerHello{Version: protocol.Version, Nonce: r.nonce, LastExit: r.lastExit, Frozen: r.frozen}
	if r.agent != nil {
		hello.Running = r.agent.start
	}
	r.send(protocol.RunnerEvent{Hello: hello})
	r.tellTermination()
	go r.receive(conn)
}

// receive hands on what a watchdog asks until its connection breaks.
func (r *runner) receive(conn *runnerlink.Conn) {
	for {
		command, err := conn.Receive()
		if err != nil {
			r.post(func() { r.lost(conn, err) })
			return
		}
		r.post(func() {
			if r.link == conn {
				r.obey(command)
			}
		})
	}
}

// send tells the watchdog something; a connection that does not take it is closed, which receive notices.
func (r *runner) send(event protocol.RunnerEvent) {
	if r.link == nil {
		return // the next Hello tells how things stand
	}
	if err := r.link.Send(event); err != nil {
		r.log.Error("Cannot reach the watchdog", "error", err)
		_ = r.link.Close()
	}
}

// lost stops everything before another watchdog is looked for: what still ran could take its place.
func (r *runner) lost(conn *runnerlink.Conn, cause error) {
	if r.link != conn {
		return
	}
	r.log.Error("Lost the watchdog; stopping the agent until there is one", "error", cause)
	_ = conn.Close()
	r.link = nil
	r.endSession()
	r.endFreeze()
	r.frozen = true
	r.stopWaiting = r.after(r.options.OrphanLimit, func() {
		r.log.Error("No watchdog came back; ending the agent", "waited", r.options.OrphanLimit)
		r.endAll(0, protocol.RunnerOrphanedCode)
	})
	freeze := func() {
		ctx, cancel := context.WithTimeout(context.Background(), orphanFreezeTimeout)
		defer cancel()
		frozen, err := r.processes.Freeze(ctx)
		r.post(func() {
			if err != nil { // they may run, and nobody can tell
				r.log.Error("Cannot stop the processes; ending them", "error", err)
				r.endAll(0, protocol.RunnerBlindCode)
				return
			}
			if !frozen.Settled {
				r.log.Error("Cannot stop all processes", "reason", frozen.Reason)
			}
			r.connect()
		})
	}
	if !r.enqueue(freeze) {
		r.endAll(0, protocol.RunnerOrphanedCode)
	}
}
