// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream serves tests as model providers serve the world: HTTP/2 over TLS, on connections that a NAT between
// may forget.
package upstream

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// Server speaks HTTP/2, and HTTP/1.1 with clients that offer nothing else.
type Server struct {
	*httptest.Server

	listener *listener
}

// Start a server that ends with the test.
func Start(t testing.TB, handler http.Handler) *Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	l := &listener{Listener: s.Listener, conns: map[*conn]bool{}}
	s.Listener, s.EnableHTTP2 = l, true
	s.StartTLS()
	t.Cleanup(func() {
		l.closeForgotten()
		s.Close()
	})
	return &Server{Server: s, listener: l}
}

// Forget the connections of this moment, as a NAT does that has kept an idle one for too long. Nothing passes on them in either direction
// any more, and neither side learns about it. New connections work. The machine's own TCP still acknowledges data, so that only a request
// with an expected answer reveals it.
func (s *Server) Forget() { s.listener.forget() }

// Accepted is how many connections have been made.
func (s *Server) Accepted() int { return int(s.listener.accepted.Load()) }

// listener knows the connections that it accepted.
type listener struct {
	net.Listener

	accepted atomic.Int64

	mu    sync.Mutex
	conns map[*conn]bool
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, of: l}
	l.accepted.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	return c, nil
}

func (l *listener) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.forgotten.Store(true)
	}
}

// closeForgotten connections, whose requests the server would wait for.
func (l *listener) closeForgotten() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.forgotten.Load() {
			_ = c.Conn.Close()
		}
	}
}

// conn passes nothing on once it is forgotten.
type conn struct {
	net.Conn

	of        *listener
	forgotten atomic.Bool
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.forgotten.Load() {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.forgotten.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
