// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback has the common parts of the watchdog's servers for the agent. Their only caller is the agent, in their own pod.
package loopback

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Listen on a loopback address, and on no other. So many connections are open at once; others wait in the kernel.
func Listen(address string, connections int) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("address for the agent: %w", err)
	}
	if !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("address for the agent: %s is not a loopback address", at)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	return &limited{Listener: l, slots: make(chan struct{}, connections)}, nil
}

// Guard refuses requests that no client in the pod sends. A web page in a browser that reaches this server sends an Origin, or a host name
// that an attacker made point here.
func Guard(address string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != address && r.Host != "localhost:"+port:
			http.Error(w, "the Host header must be "+address, http.StatusForbidden)
		case r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+r.Host:
			http.Error(w, "requests from web pages are refused", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// limited bounds the connections that are open at once.
type limited struct {
	net.Listener

	slots chan struct{}
}

// Accept takes the next connection once there is room for it.
func (l *limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slot{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// slot is a connection that gives its room back, once.
type slot struct {
	net.Conn

	free func()
}

// CloseWrite ends what is sent, so that the other side can still be read.
func (s *slot) CloseWrite() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok {
		return s.Close()
	}
	return half.CloseWrite()
}

// Close closes the connection.
func (s *slot) Close() error {
	defer s.free()
	return s.Conn.Close()
}
