// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress is an HTTP CONNECT proxy that lets authenticated callers reach the hosts that their policy lists, and
// nothing else. The user of the credentials says which list: a watchdog uses one for Git and one for its agent.
// internal/core/egress decides; this package resolves, dials and copies.
package egressproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

const (
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

// Caller is an authenticated caller and the hosts that it may reach.
type Caller struct {
	// Feature as namespace/name.
	Feature string
	// Hosts of the list that the caller has named.
	Hosts []policy.Host
	// BesideGateway lets an agent reach providers of models directly, and Backends are the hosts of the gateway's backends.
	BesideGateway bool
	Backends      []string
}

// Authorizer finds callers by their tokens, and the hosts in a list of their policy. It returns the errors of package callers.
type Authorizer interface {
	Authorize(ctx context.Context, token string, list egress.Field) (Caller, error)
}

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Outcome is the result of one request, for Options.Observe.
type Outcome struct {
	// Feature as namespace/name; empty before it is known.
	Feature string
	// List of hosts that the request names; empty before it is known.
	List egress.Field
	// Target as host:port; empty if it could not be read.
	Target string
	// Reason in one word; Connected for a tunnel that ended cleanly.
	Reason string
	// Sent and Received are the bytes that went to and came from the target.
	Sent, Received int64
	// Duration of the tunnel.
	Duration time.Duration
}

// Limits bound what callers can use up. Zero values mean DefaultLimits.
type Limits struct {
	// Total is the limit of open tunnels, and PerFeature the limit for one Feature. They apply to each list separately: an agent takes none of
	// its watchdog's tunnels for Git.
	Total, PerFeature int
	// Dial bounds resolving and connecting, and Hello the wait for each message at the beginning of TLS. Idle bounds a tunnel without a byte
	// in either direction, and Linger a tunnel that is closed in one direction.
	Dial, Hello, Idle, Linger time.Duration
	// GitIdle is Idle for Git, 0 for the same: the watchdog bounds the silence of a Git server by its policy, and no policy allows more than this.
	GitIdle time.Duration
	// AgentLife bounds an agent's tunnel, however busy it is: a tunnel that a policy no longer allows does not stay open.
	AgentLife time.Duration
}

// DefaultLimits are generous for Git, where a clone is one or two connections, and enough for package managers, of which npm
// opens 15.
var DefaultLimits = Limits{
	Total: 1024, PerFeature: 32,
	Dial: 15 * time.Second, Hello: 10 * time.Second, Idle: 5 * time.Minute, GitIdle: policy.MaxGitSilence + time.Minute, Linger: 30 * time.Second, AgentLife: time.Hour,
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
	Observe func(Outcome)
	// Others answers requests other than CONNECT; nil refuses them.
	Others http.Handler
}

// Proxy serves CONNECT. Make it with New.
type Proxy struct {
	options Options
	slots   map[egress.Field]*callers.Slots
}

// New makes a Proxy.
func New(options Options) *Proxy {
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits
	}
	if options.Observe == nil {
		options.Observe = func(Outcome) {}
	}
	p := &Proxy{options: options, slots: map[egress.Field]*callers.Slots{}}
	for _, list := range []egress.Field{egress.FieldGit, egress.FieldAgent} {
		p.slots[list] = callers.NewSlots(options.Limits.Total, options.Limits.PerFeature)
	}
	return p
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
		err := errors.Join(server.Shutdown(last), p.slots[egress.FieldGit].Drain(last))
		// Agents' clients keep connections that they do not use: that these are cut off is as usual.
		if cut := p.slots[egress.FieldAgent].Drain(last); cut != nil {
			p.options.Logger.Info("Cutting off connections of agents", "message", cut.Error())
		}
		_ = server.Close() // connections without a tunnel so far end, too
		stopped <- err
	}()
	if err := server.Serve(tls.NewListener(listener, config)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// ServeHTTP answers one request. Callers: the watchdog, prepare and seal of a Feature's current attempt, by the token of
// their pod; everybody else gets a request to authenticate.
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
func (p *Proxy) request(w http.ResponseWriter, r *http.Request) (Outcome, int, error) {
	if r.Method != http.MethodConnect {
		return Outcome{Reason: reasonNotConnect}, http.StatusMethodNotAllowed, errors.New("this is a CONNECT proxy: other methods are not served")
	}
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return Outcome{Reason: string(egress.ReasonBadTarget)}, http.StatusBadRequest, errors.New("a CONNECT request has no body")
	}
	caller, list, reason, code, err := p.authenticate(r)
	record := Outcome{Feature: caller.Feature, List: list, Reason: reason}
	if err != nil {
		return record, code, err
	}
	target, err := egress.ParseTarget(r.RequestURI)
	if err != nil {
		return refused(record, err)
	}
	record.Target = target.String()
	if list == egress.FieldAgent && !caller.BesideGateway {
		if err := egress.Beside(target, caller.Backends); err != nil {
			return refused(record, err)
		}
	}
	grant, err := egress.Decide(caller.Hosts, list, target)
	if err != nil {
		return refused(record, err)
	}
	release, err := p.slots[list].Take(caller.Feature)
	if err != nil {
		record.Reason = reasonTooMany
		return record, http.StatusServiceUnavailable, errors.New("too many open connections: close some, or try again later")
	}
	defer release()
	upstream, reason, code, err := p.connect(r.Context(), target, grant, list)
	if err != nil {
		record.Reason = reason
		return record, code, err
	}
	defer upstream.Close()
	return p.carry(w, record, target, upstream)
}

func (p *Proxy) authenticate(r *http.Request) (caller Caller, list egress.Field, reason string, code int, err error) {
	user, token := proxyCredentials(r)
	list, known := egress.FieldOf(user)
	if !known || token == "" {
		return caller, "", reasonUnauthenticated, http.StatusProxyAuthRequired, fmt.Errorf(
			"give the pod's token as Basic credentials, with the user %s for Git or %s for an agent", egress.FieldGit.User(), egress.FieldAgent.User())
	}
	caller, err = p.options.Authorizer.Authorize(callers.WithSource(r.Context(), r.RemoteAddr), token, list)
	switch {
	case err == nil:
		return caller, list, "", 0, nil
	case errors.Is(err, callers.ErrUnauthenticated):
		return caller, list, reasonUnauthenticated, http.StatusProxyAuthRequired, err
	default:
		return caller, list, reasonUnavailable, http.StatusServiceUnavailable, err
	}
}

// proxyCredentials takes the Basic credentials; empty where there are none, or more than one.
func proxyCredentials(r *http.Request) (user, password string) {
	values := r.Header.Values("Proxy-Authorization")
	if len(values) != 1 {
		return "", ""
	}
	basic := http.Request{Header: http.Header{"Authorization": values}}
	user, password, _ = basic.BasicAuth()
	return user, password
}

// refused gives the status of a decision against a target.
func refused(record Outcome, err error) (Outcome, int, error) {
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
func (p *Proxy) refuse(w http.ResponseWriter, record Outcome, code int, err error) {
	message := err.Error()
	p.options.Logger.Warn("Refused a connection", "feature", record.Feature, "list", record.List, "target", record.Target,
		"reason", record.Reason, "code", code, "message", message)
	header := w.Header()
	header.Set(protocol.ReasonHeader, record.Reason)
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	// A refused CONNECT may be followed by anything: the connection is closed without reading any of it. If it cannot set a deadline, the
	// server's own ends it.
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
	_, _ = w.Write([]byte(message + "\n")) // a client that hung up does not read it
}
