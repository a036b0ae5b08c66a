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
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/loopback"
)

// Bounds of what one agent can have the watchdog hold for it.
const (
	// maxBody of a request: a patch whose every byte is escaped in JSON, and a little more.
	maxBody = 6*protocol.MaxPatchBytes + 64<<10
	// maxConnections at once; a client needs one or two.
	maxConnections = 16
	// smallBody is what a request without a patch needs. Larger ones, and ones without a size, are read maxLargeBodies at a time: each takes
	// several times its size while it is decoded.
	smallBody      = 64 << 10
	maxLargeBodies = 2
	// writeTimeout ends an answer, and with it a connection whose client does not read: it is counted from the request's
	// header, so it is longer than the longest question and the longest check of a patch.
	writeTimeout  = 5 * time.Minute
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Options of a server.
type Options struct {
	Backend Backend
	// ReadOnly serves all tools. Without it the agent can write to the workspace, and has only the tools that need the supervisor.
	ReadOnly bool
	// Words returns the text to add to the result of the next call; "" for none. A nil Words adds nothing.
	Words      func() string
	Directives Directives
	// Understood takes the agent's acknowledgments. The error is for the agent.
	Understood func(said ...notice.Understood) error
	Repository *git.Repository
	Log        *slog.Logger
}

// Listen for an agent's calls.
func Listen(address string) (net.Listener, error) { return loopback.Listen(address, maxConnections) }

// URL under which a listener's tools are found.
func URL(l net.Listener) string { return "http://" + l.Addr().String() + protocol.MCPPath }

// Serve answers until the context ends.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	server := newServer(ctx, handler(l.Addr().String(), o), o.Log)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	// What ends the context may have closed the listener first.
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serve the agent's tools: %w", err)
	}
	return nil
}

// newServer has a bound for everything that a client may take its time for.
func newServer(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       idleTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// handler speaks MCP without sessions: nothing is kept for a client between two requests, however many it begins.
func handler(address string, o Options) http.Handler {
	asking, silent := o.server(true), o.server(false)
	choose := func(*http.Request) *mcp.Server { // each task has a policy of its own
		if o.Backend.Asks() {
			return asking
		}
		return silent
	}
	stream := mcp.NewStreamableHTTPHandler(choose, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
	})
	mux := http.NewServeMux()
	mux.Handle(protocol.MCPPath, stream)
	return loopback.Guard(address, fewLarge(mux))
}

// server of the tools, with the one for questions or without it.
func (o Options) server(asks bool) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "tidewaiter", Version: "1"}, &mcp.ServerOptions{Instructions: instructions(o.ReadOnly, asks)})
	register(server, o, asks)
	if o.Words != nil {
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { return beside(next, o.Words) })
	}
	server.AddReceivingMiddleware(unanswered)
	return server
}

// codeAway is the code of ErrAway, one of the codes that JSON-RPC 2.0 leaves to servers (-32000 to -32099) and MCP does not use.
const codeAway = -32050

// unanswered turns a call that has no result into an error of the protocol: clients do not take that for the tool's answer.
func unanswered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		answer, err := next(ctx, method, request)
		if result, is := answer.(*mcp.CallToolResult); is && result != nil && errors.Is(result.GetError(), ErrAway) {
			return nil, &jsonrpc.Error{Code: codeAway, Message: ErrAway.Error()}
		}
		return answer, err
	}
}

// beside the result of a tool call, the agent gets a message in a text of its own.
func beside(next mcp.MethodHandler, words func() string) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		answer, err := next(ctx, method, request)
		result, is := answer.(*mcp.CallToolResult)
		if err != nil || !is || ctx.Err() != nil || errors.Is(result.GetError(), ErrAway) {
			return answer, err
		}
		if text := words(); text != "" {
			result.Content = append(result.Content, &mcp.TextContent{Text: text})
		}
		return result, nil
	}
}

// fewLarge lets few requests with large bodies in at once; others wait before anything of theirs is read.
func fewLarge(next http.Handler) http.Handler {
	slots := make(chan struct{}, maxLargeBodies)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength >= 0 && r.ContentLength <= smallBody {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}
