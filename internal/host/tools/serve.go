// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
)

// Bounds of what one agent can have the watchdog hold for it.
const (
	// maxBody of a request: a patch whose every byte is escaped in JSON, and a little more.
	maxBody = 6*contract.MaxPatchBytes + 64<<10
	// maxConnections at once; a client needs one or two.
	maxConnections = 16
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
)

// Options of a server.
type Options struct {
	Desk       Desk
	Repository *git.Repository
	Log        *slog.Logger
}

// Listen on a loopback address, and on no other: whoever reaches it is in the agent's own pod.
func Listen(address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("address of the tools: %w", err)
	}
	if !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("address of the tools: %s is not a loopback address", at)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the agent's tools: %w", err)
	}
	return &limited{Listener: l, slots: make(chan struct{}, maxConnections)}, nil
}

// URL under which a listener's tools are found.
func URL(l net.Listener) string { return "http://" + l.Addr().String() + contract.MCPPath }

// Serve answers until the context ends.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	server := &http.Server{
		Handler:           handler(l.Addr().String(), o),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       idleTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the agent's tools: %w", err)
	}
	return nil
}

// handler speaks MCP without sessions: nothing is kept for a client between two requests, however many it begins.
func handler(address string, o Options) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "tidewaiter", Version: "1"}, &mcp.ServerOptions{Instructions: instructions})
	register(server, o)
	stream := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
	})
	mux := http.NewServeMux()
	mux.Handle(contract.MCPPath, stream)
	return guard(address, mux)
}

// guard refuses what no client in the pod sends: a page in somebody's browser that has been led here has an Origin, or
// asks for a host name that it made point here.
func guard(address string, next http.Handler) http.Handler {
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

// limited bounds the connections that are open at once: others wait in the kernel.
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

// Close closes the connection.
func (s *slot) Close() error {
	defer s.free()
	return s.Conn.Close()
}
