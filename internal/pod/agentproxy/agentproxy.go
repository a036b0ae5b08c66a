// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentproxy is the HTTP proxy of an agent, on the loopback address of its pod. It accepts only CONNECT, and asks the gateway for
// each connection with the pod's token and for the agent's list of hosts. It decides nothing: the gateway knows which hosts an agent may
// reach. It connects itself to the watchdog's own servers in the pod.
package agentproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/gatewayclient"
	"github.com/tidewaiter/tidewaiter/internal/pod/loopback"
	"github.com/tidewaiter/tidewaiter/internal/tunnel"
)

const (
	// maxConnections at once, as many as the gateway lets an agent have; others wait in the kernel.
	maxConnections = 32
	// headerTime bounds the wait for a request, maxHeader its bytes.
	headerTime = 10 * time.Second
	maxHeader  = 16 << 10
	// idleTime bounds a connection that has asked for nothing.
	idleTime = time.Minute
	// requests in a second, after the first burst of them: each is a connection to the gateway, and a line in its log.
	requests, burst = 8, 64
	// answerTime bounds the wait for the gateway, which gives up a host after 15 s.
	answerTime = 30 * time.Second
	// maxAnswer bounds the header of what the gateway answers, maxMessage what it says, in bytes.
	maxAnswer  = 64 << 10
	maxMessage = 2 << 10
	// idle and linger are longer than the gateway's, which ends tunnels and says why.
	idle, linger = 6 * time.Minute, time.Minute
)

// Options of an agent's proxy.
type Options struct {
	// Gateway is its URL, and Name the name in its certificate, if it is not the host of the URL.
	Gateway, Name string
	// Token and CA are files. Both change while the pod lives.
	Token, CA string
	// Local are the addresses of the watchdog's own servers for the agent. Requests for them do not leave the pod.
	Local []string
	Log   *slog.Logger
}

// Listen for an agent's connections.
func Listen(address string) (net.Listener, error) { return loopback.Listen(address, maxConnections) }

// URL of the proxy behind a listener.
func URL(l net.Listener) string { return "http://" + l.Addr().String() }

// Serve answers until the context ends, and ends its tunnels then.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	gateway, err := url.Parse(o.Gateway)
	if err != nil {
		return fmt.Errorf("address of the gateway: %w", err)
	}
	link := gatewayclient.Link{Name: o.Name, Token: o.Token, CA: o.CA}
	local, err := newLocal(o.Local, o.Log)
	if err != nil {
		return err
	}
	defer local.idle.CloseIdleConnections()
	p := &proxy{
		log: o.Log, local: local, token: link.ReadToken, pace: rate.NewLimiter(requests, burst),
		dial: func(ctx context.Context) (net.Conn, error) { return link.Dial(ctx, "tcp", gateway.Host) },
	}
	return p.serve(ctx, l)
}

type proxy struct {
	log   *slog.Logger
	token func() (string, error)
	dial  func(context.Context) (net.Conn, error)
	pace  *rate.Limiter
	local *local
}

func (p *proxy) serve(ctx context.Context, l net.Listener) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.answer(ctx, w, r) }), Protocols: protocols, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	// What ends the context may have closed the listener first.
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serve the agent's proxy: %w", err)
	}
	return nil
}

// refusal is what an agent is answered.
type refusal struct {
	status          int
	reason, message string
	// again: it may work if it is tried again.
	again bool
}

// Reasons that are this proxy's own.
const (
	reasonNotConnect  = "NotConnect"
	reasonUnavailable = "Unavailable"
)

// unavailable says that the gateway could not be asked.
func unavailable(message string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, reason: reasonUnavailable, message: message, again: true}
}

// answer one request of the agent. Nothing of it goes to the gateway but the host and port, in their one spelling. A tunnel ends
// with the context; that of the request ends with what the agent sends.
func (p *proxy) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect && p.local.asked(r) {
		p.local.forward.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodConnect && p.answerLocal(ctx, w, r) {
		return
	}
	if err := p.pace.Wait(r.Context()); err != nil {
		return // nobody waits
	}
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		w.Header().Set("Connection", "close")
		w.Header().Set(protocol.ReasonHeader, reasonNotConnect)
		http.Error(w, "tidewaiter: this proxy carries only TLS: use a URL that begins with https://, for which clients send CONNECT; http:// is only for "+p.local.urls(), http.StatusMethodNotAllowed)
		return
	}
	target, err := egress.ParseTarget(r.RequestURI)
	if err != nil || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		message := "a CONNECT request has no body"
		if err != nil {
			message = err.Error()
		}
		p.refuse(w, r, &refusal{status: http.StatusBadRequest, reason: string(egress.ReasonBadTarget), message: message})
		return
	}
	upstream, refused := p.connect(r.Context(), target)
	if refused != nil {
		p.refuse(w, r, refused)
		return
	}
	defer upstream.Close()
	p.carry(ctx, w, upstream, idle)
}

// answerLocal answers a CONNECT request for one of the watchdog's own servers; false where it is for none.
func (p *proxy) answerLocal(ctx context.Context, w http.ResponseWriter, r *http.Request) bool {
	address, is := p.local.server(r.RequestURI)
	if !is || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return false
	}
	server, refused := p.local.connect(r.Context(), address)
	if refused != nil {
		p.refuse(w, r, refused)
		return true
	}
	defer server.Close()
	p.carry(ctx, w, server, localIdle)
	return true
}

// connect asks the gateway for a connection to the target.
func (p *proxy) connect(ctx context.Context, target egress.Target) (net.Conn, *refusal) {
	token, err := p.token()
	if err != nil {
		p.log.ErrorContext(ctx, "Cannot read the token", "error", err.Error())
		return nil, unavailable("the pod's token cannot be read at the moment; try again")
	}
	conn, err := p.dial(ctx)
	if err != nil {
		p.log.WarnContext(ctx, "Cannot reach the gateway", "target", target.String(), "error", err.Error())
		return nil, unavailable("the gateway cannot be reached at the moment; try again")
	}
	given := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the agent has given up
	upstream, refused, err := ask(conn, target, token)
	given()
	if err != nil || refused != nil {
		_ = conn.Close()
	}
	if err != nil {
		p.log.WarnContext(ctx, "The gateway does not answer", "target", target.String(), "error", err.Error())
		return nil, unavailable("the gateway does not answer at the moment; try again")
	}
	return upstream, refused
}

// ask the gateway over a connection to it, which is the tunnel then.
func ask(conn net.Conn, target egress.Target, token string) (net.Conn, *refusal, error) {
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return nil, nil, fmt.Errorf("set a deadline: %w", err)
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target.String()}, Host: target.String(), Header: http.Header{}}
	request.SetBasicAuth(egress.FieldAgent.User(), token)
	request.Header = http.Header{"Proxy-Authorization": request.Header["Authorization"], "User-Agent": {"tidewaiter-watchdog"}}
	if err := request.Write(conn); err != nil {
		return nil, nil, fmt.Errorf("ask: %w", err)
	}
	head := &io.LimitedReader{R: conn, N: maxAnswer}
	reader := bufio.NewReader(head)
	answer, err := http.ReadResponse(reader, request) //nolint:bodyclose // the body is the connection
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case answer.StatusCode == http.StatusOK:
		head.N = math.MaxInt64
		return &ahead{Conn: conn, reader: reader}, nil, nil
	case answer.StatusCode == http.StatusProxyAuthRequired:
		// The agent has nothing to authenticate with: it is its watchdog that is not known.
		return nil, unavailable("the gateway does not accept this pod's token at the moment; try again"), nil
	case answer.StatusCode < http.StatusBadRequest, answer.StatusCode > 599:
		return nil, nil, fmt.Errorf("the answer has status %d", answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
	if err != nil && len(text) == 0 {
		return nil, nil, fmt.Errorf("read the answer: %w", err)
	}
	return nil, &refusal{
		status: answer.StatusCode, reason: answer.Header.Get(protocol.ReasonHeader), message: string(text), again: answer.Header.Get("Retry-After") != "",
	}, nil
}

// ahead is a connection of which something has been read ahead.
type ahead struct {
	net.Conn

	reader *bufio.Reader
}

// Read takes what was read ahead first.
func (a *ahead) Read(b []byte) (int, error) { return a.reader.Read(b) }

// CloseWrite ends what is sent, so that the rest can still be read.
func (a *ahead) CloseWrite() error {
	half, ok := a.Conn.(interface{ CloseWrite() error })
	if !ok {
		return a.Conn.Close()
	}
	return half.CloseWrite()
}

// carry tells the agent that it is connected, and copies until both sides are done.
func (p *proxy) carry(ctx context.Context, w http.ResponseWriter, upstream net.Conn, idle time.Duration) {
	agent, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.log.ErrorContext(ctx, "Cannot take over a connection", "error", err.Error())
		return
	}
	defer agent.Close()
	stop := context.AfterFunc(ctx, func() { // what is taken over, the server does not end
		_ = agent.Close()
		_ = upstream.Close()
	})
	defer stop()
	if err := agent.SetDeadline(time.Now().Add(idle)); err != nil {
		return
	}
	if _, err := io.WriteString(agent, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	through := &tunnel.Tunnel{Client: agent, Upstream: upstream, From: buffered.Reader, Idle: idle, Linger: linger}
	if err := through.Run(); err != nil {
		p.log.DebugContext(ctx, "A connection of the agent broke off", "error", err.Error())
	}
}

// refuse says why in the status line, too: it is all that many clients show of a refused CONNECT.
func (p *proxy) refuse(w http.ResponseWriter, r *http.Request, refused *refusal) {
	message := "tidewaiter: " + visible(refused.message)
	p.log.WarnContext(r.Context(), "Refusing a connection of the agent", "target", visible(r.RequestURI), "status", refused.status, "reason", refused.reason, "message", message)
	agent, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.log.ErrorContext(r.Context(), "Cannot take over a connection", "error", err.Error())
		return
	}
	defer agent.Close()
	if err := agent.SetDeadline(time.Now().Add(headerTime)); err != nil {
		return
	}
	answer := &http.Response{
		StatusCode: refused.status, Status: fmt.Sprint(refused.status, " ", message), ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}, protocol.ReasonHeader: {visible(refused.reason)}},
		ContentLength: int64(len(message) + 1), Body: io.NopCloser(strings.NewReader(message + "\n")),
	}
	if refused.again {
		answer.Header.Set("Retry-After", "1")
	}
	_ = answer.Write(agent) // a client that hung up does not read it
}

// visible keeps what may stand in a header: visible ASCII characters and single spaces, and no more than maxMessage of them.
func visible(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\r', r == '\n', r == '\t':
			return ' '
		case r < ' ', r > '~':
			return '?'
		}
		return r
	}, text[:min(len(text), maxMessage)])
	return strings.Join(strings.Fields(clean), " ")
}
