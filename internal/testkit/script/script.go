// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package script is a connection whose other side follows a script: it has sent everything that it will ever send, and reads. Fuzz
// targets have no time for sockets.
package script

import (
	"bytes"
	"net"
	"os"
	"sync"
	"time"
)

// Conn reads what the other side says and then its end, and keeps what is written to it.
type Conn struct {
	// Closed is closed with the connection.
	Closed chan struct{}

	says  *bytes.Reader
	close sync.Once
	// poked by a deadline of reads.
	poked chan struct{}

	mu    sync.Mutex
	heard bytes.Buffer
}

var _ net.Conn = (*Conn)(nil)

// New is a connection to a side that sends this.
func New(says ...[]byte) *Conn {
	return &Conn{Closed: make(chan struct{}), poked: make(chan struct{}, 1), says: bytes.NewReader(bytes.Join(says, nil))}
}

// Heard is what was written to the other side.
func (c *Conn) Heard() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.heard.Bytes())
}

// Read takes what the other side says. A read of one byte at its end waits for a deadline: net/http uses such a read to find out whether a
// client is still there, and this one is.
func (c *Conn) Read(b []byte) (int, error) {
	select {
	case <-c.Closed:
		return 0, net.ErrClosed
	default:
	}
	c.mu.Lock()
	n, err := c.says.Read(b)
	c.mu.Unlock()
	if n > 0 || len(b) != 1 {
		return n, err
	}
	select {
	case <-c.Closed:
		return 0, net.ErrClosed
	case <-c.poked:
		return 0, os.ErrDeadlineExceeded
	}
}

// Write writes to the other side.
func (c *Conn) Write(b []byte) (int, error) {
	select {
	case <-c.Closed:
		return 0, net.ErrClosed
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard.Write(b)
}

// CloseWrite does nothing: the other side does not notice it.
func (c *Conn) CloseWrite() error { return nil }

// Close closes the connection.
func (c *Conn) Close() error {
	c.close.Do(func() { close(c.Closed) })
	return nil
}

// LocalAddr is some address.
func (c *Conn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// RemoteAddr is some address.
func (c *Conn) RemoteAddr() net.Addr { return c.LocalAddr() }

// SetDeadline is not needed: nobody waits.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline ends a read that waits.
func (c *Conn) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now()) {
		select {
		case c.poked <- struct{}{}:
		default:
		}
	}
	return nil
}

// SetWriteDeadline is not needed either.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// Listener gives a server the connections of its channel.
type Listener chan net.Conn

// Accept the next one.
func (l Listener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close does nothing: who closes the channel ends the server.
func (l Listener) Close() error { return nil }

// Addr is some address.
func (l Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
