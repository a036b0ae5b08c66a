// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel copies bytes between two connections until both sides are done.
package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// chunk is how much is copied at once, in bytes: a record of TLS.
const chunk = 16 << 10

// Tunnel of two connections, which end with it.
type Tunnel struct {
	// Client is the side that requested the tunnel, and Upstream the target.
	Client, Upstream net.Conn
	// From reads what the client sends: it is Client itself, or a reader that begins with bytes that were read before.
	From io.Reader
	// Idle ends a tunnel without a byte in either direction, Linger a tunnel that is closed in one direction.
	Idle, Linger time.Duration
	// Life ends a tunnel however busy it is; 0 never does.
	Life time.Duration

	sent, received atomic.Int64
	// closing is set once one direction has ended.
	closing atomic.Bool
}

// Run copies until both directions have ended. A clean end, in one direction after the other, is not an error.
func (t *Tunnel) Run() error {
	var expired atomic.Bool
	if t.Life > 0 {
		end := time.AfterFunc(t.Life, func() {
			expired.Store(true)
			t.closing.Store(true)
			_ = t.Client.Close()
			_ = t.Upstream.Close()
		})
		defer end.Stop()
	}
	t.touch()
	var both sync.WaitGroup
	var up, down error
	both.Go(func() { up = t.copy(t.Upstream, t.Client, t.From, &t.sent) })
	both.Go(func() { down = t.copy(t.Client, t.Upstream, t.Upstream, &t.received) })
	both.Wait()
	if expired.Load() {
		return fmt.Errorf("a connection may be open for %s", t.Life)
	}
	return errors.Join(up, down)
}

// Sent returns the bytes that went to the upstream side, and Received the bytes that came from it.
func (t *Tunnel) Sent() int64 { return t.sent.Load() }

// Received returns the bytes that came from the upstream side.
func (t *Tunnel) Received() int64 { return t.received.Load() }

// copy moves bytes one way until the end, then closes that way only: HTTP servers answer after the client's last byte.
func (t *Tunnel) copy(to, from net.Conn, reader io.Reader, count *atomic.Int64) error {
	buffer := make([]byte, chunk)
	for {
		n, err := reader.Read(buffer)
		if n > 0 {
			t.touch()
			if _, err := to.Write(buffer[:n]); err != nil {
				return t.broken("write", err)
			}
			count.Add(int64(n))
		}
		// TLS ends with a message of its own, which many clients leave out; what is inside the tunnel has its own end.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.closing.Store(true)
			t.touch()
			return closeWrite(to)
		}
		if err != nil {
			return t.broken("read", err)
		}
	}
}

// broken ends both directions. An error after a clean end of the other side is not worth reporting.
func (t *Tunnel) broken(what string, err error) error {
	quiet := t.closing.Swap(true)
	_ = t.Client.Close()
	_ = t.Upstream.Close()
	if quiet {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// touch puts off the end of an idle tunnel. It also replaces deadlines of an HTTP server.
func (t *Tunnel) touch() {
	idle := t.Idle
	if t.closing.Load() {
		idle = t.Linger
	}
	deadline := time.Now().Add(idle)
	// A failure means that the connection is closed, which the next read or write will say.
	_ = t.Client.SetDeadline(deadline)
	_ = t.Upstream.SetDeadline(deadline)
}

func closeWrite(conn net.Conn) error {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return conn.Close()
	}
	if err := half.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("end one direction: %w", err)
	}
	return nil
}
