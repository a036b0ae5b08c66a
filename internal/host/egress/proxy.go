// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress is an HTTP CONNECT proxy that lets authenticated callers reach the hosts that their policy lists, and
// nothing else. internal/core/egress decides; this package resolves, dials and copies.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/host/callers"
)

const (
	// User is the user name of the Basic credentials; the password is the caller's token.
	User = "tidewaiter"

	// headerTime bounds the wait for a request.
	headerTime = 5 * time.Second

	// Reasons that are not decisions about a target.
	reasonNotConnect      = "NotConnect"
	reasonUnauthenticated = "Unauthenticated"
	reasonUnavailable     = "Unavailable"
	reasonTooMany         = "TooManyConnections"
	reasonUnresolved      = "Unresolved"
	reasonUnreachable     = "Unreachable"
	reasonConnected       = "Connected"
)

// Caller is who may reach what.
type Caller struct {
	// Feature as namespace/name.
	Feature string
	// Hosts that it may reach.
	Hosts []policy.Host
	// Field of a policy that lists them.
	Field egress.Field
}

// Authorizer knows callers by their tokens. Its errors are those of package callers.
type Authorizer interface {
	Authorize(ctx context.Context, token string) (Caller, error)
}

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Record is what became of one request; it is given to Options.Observe.
type Record struct {
	// Feature as namespace/name; empty before it is known.
	Feature string
	// Target as host:port; empty where it could not be read.
	Target string
	// Reason in one word; Connected for a tunnel that ended in order.
	Reason string
	// Sent and Received are the bytes that went to and came from the target.
	Sent, Received int64
	// Duration of the tunnel.
	Duration time.Duration
}

// Limits bound what callers can use up. Zero values mean DefaultLimits.
type Limits struct {
	// Total of open tunnels, and of those of one Feature.
	Total, PerFeature int
	// Dial bounds resolving and connecting, Hello the wait for the first bytes of TLS, Idle a tunnel without a byte in
	// either direction, Linger one that is closed in one direction.
	Dial, Hello, Idle, Linger time.Duration
}

// DefaultLimits are generous for Git: a clone is one or two connections.
var DefaultLimits = Limits{
	Total: 1024, PerFeature: 16,
	Dial: 15 * time.Second, Hello: 10 * time.Second, Idle: 5 * time.Minute, Linger: 30 * time.Second,
}

// Options of a Proxy. All but Observe, Limits and Others are required.
type Options struct {
	Authorizer Authorizer
	Resolver   Resolver
	// Dial connects to an address and port; (*net.Dialer).DialContext fits.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Now     func() time.Time
	Logger  *slog.Logger
	Limits  Limits
	Observe func(Record)
	// Others answers what is not CONNECT; nil refuses it.
	Others http.Handler
}

// Proxy serves CONNECT. Make it with New.
type Proxy struct {
	options Options
	slots   *callers.Slots
}

// New makes a Proxy.
func New(options Options) *Proxy {
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits
	}
	if options.Observe == nil {
		options.Observe = func(Record) {}
	}
	return &Proxy{options: options, slots: callers.NewSlots(options.Limits.Total, options.Limits.PerFeature)}
}

// Serve accepts connections until the context ends, and then lets open tunnels finish for at most grace.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener, config *tls.Config, grace time.Duration) error {
	config = config.Clone()
	// CONNECT of HTTP/2 is a stream of a shared connection: one kind of tunnel is enough.
	config.NextProtos = []string{"http/1.1"}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: p, Protocols: protocols,
		// A token is 1 to 2 KiB.
		ReadHeaderTimeout: headerTime, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(p.options.Logger.Handler(), slog.LevelDebug),
		// Tunnels outlive the request to stop: they have grace to finish.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		err := errors.Join(server.Shutdown(last), p.slots.Drain(last))
		_ = server.Close() // whoever is not a tunnel learns that it is over, too
		stopped <- err
	}()
	if err := server.Serve(tls.NewListener(listener, config)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// ServeHTTP answers one request. Callers: the watchdog, prepare and seal of a Feature's current attempt, by the token of
// their pod; everybody else is told to authenticate.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect && p.options.Others != nil {
		p.options.Others.ServeHTTP(w, r)
		return
	}
	record, code, err := p.request(w, r)
	if err != nil {
		p.refuse(w, record, code, err)
	}
	p.options.Observe(record)
}

// request carries out a CONNECT. With an error nothing has been sent yet, and code is the status to answer with.
func (p *Proxy) request(w http.ResponseWriter, r *http.Request) (Record, int, error) {
	if r.Method != http.MethodConnect {
		return Record{Reason: reasonNotConnect}, http.StatusMethodNotAllowed, errors.New("this is a CONNECT proxy: other methods are not served")
	}
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return Record{Reason: string(egress.ReasonBadTarget)}, http.StatusBadRequest, errors.New("a CONNECT request has no body")
	}
	caller, reason, code, err := p.authenticate(r)
	record := Record{Feature: caller.Feature, Reason: reason}
	if err != nil {
		return record, code, err
	}
	target, grant, err := decide(r.RequestURI, caller)
	if err != nil {
		return refused(record, err)
	}
	record.Target = target.String()
	release, ok := p.slots.Take(caller.Feature)
	if !ok {
		record.Reason = reasonTooMany
		return record, http.StatusServiceUnavailable, errors.New("too many open connections: close some, or try again later")
	}
	defer release()
	upstream, reason, code, err := p.connect(r.Context(), target, grant, caller.Field)
	if err != nil {
		record.Reason = reason
		return record, code, err
	}
	defer upstream.Close()
	return p.carry(w, record, target, upstream)
}

func (p *Proxy) authenticate(r *http.Request) (Caller, string, int, error) {
	token, ok := proxyToken(r)
	if !ok {
		return Caller{}, reasonUnauthenticated, http.StatusProxyAuthRequired, errors.New("give user tidewaiter and the pod's token as Basic credentials")
	}
	caller, err := p.options.Authorizer.Authorize(callers.WithSource(r.Context(), r.RemoteAddr), token)
	switch {
	case err == nil:
		return caller, "", 0, nil
	case errors.Is(err, callers.ErrUnauthenticated):
		return caller, reasonUnauthenticated, http.StatusProxyAuthRequired, err
	default:
		return caller, reasonUnavailable, http.StatusServiceUnavailable, err
	}
}

// proxyToken takes the password of the Basic credentials.
func proxyToken(r *http.Request) (string, bool) {
	values := r.Header.Values("Proxy-Authorization")
	if len(values) != 1 {
		return "", false
	}
	basic := http.Request{Header: http.Header{"Authorization": values}}
	user, password, ok := basic.BasicAuth()
	return password, ok && user == User && password != ""
}

func decide(authority string, caller Caller) (egress.Target, egress.Grant, error) {
	target, err := egress.ParseTarget(authority)
	if err != nil {
		return target, egress.Grant{}, err
	}
	grant, err := egress.Decide(caller.Hosts, caller.Field, target)
	return target, grant, err
}

// refused gives the status of a decision against a target.
func refused(record Record, err error) (Record, int, error) {
	var refusal *egress.Refusal
	if !errors.As(err, &refusal) {
		return record, http.StatusInternalServerError, err
	}
	record.Reason = string(refusal.Reason)
	if refusal.Reason == egress.ReasonBadTarget {
		return record, http.StatusBadRequest, err
	}
	return record, http.StatusForbidden, err
}

// refuse answers with what is wrong, and says so in the log: it is where an operator learns which field to change.
func (p *Proxy) refuse(w http.ResponseWriter, record Record, code int, err error) {
	message := err.Error()
	p.options.Logger.Warn("Refused a connection", "feature", record.Feature, "target", record.Target,
		"reason", record.Reason, "code", code, "message", message)
	header := w.Header()
	header.Set(callers.ReasonHeader, record.Reason)
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	// A refused CONNECT may be followed by anything: the connection is closed without reading any of it. Where no
	// deadline can be set, the server's own end it.
	header.Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(p.options.Now())
	switch code {
	case http.StatusProxyAuthRequired:
		header.Set("Proxy-Authenticate", `Basic realm="tidewaiter"`)
	case http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodConnect)
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", strconv.Itoa(1))
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(message + "\n")) // whoever hung up does not read it
}
