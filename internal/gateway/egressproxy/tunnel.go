// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/tunnel"
)

// connect resolves the target once, checks the addresses and dials one of them: it dials the checked address, so
// that a name server that changes its answer gains nothing.
func (p *Proxy) connect(ctx context.Context, target egress.Target, grant egress.Grant, field egress.Field) (net.Conn, string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Limits.Dial)
	defer cancel()
	resolved, err := p.resolve(ctx, target, grant)
	if err != nil {
		return nil, reasonUnresolved, gatewayStatus(ctx), fmt.Errorf("resolve %s: %w", target.Host, err)
	}
	addresses, err := egress.Addresses(target, grant, field, resolved)
	if err != nil {
		record, code, err := refused(Outcome{}, err)
		return nil, record.Reason, code, err
	}
	var failed error
	for i, address := range addresses {
		// Each of several addresses gets its share of the time that is left.
		conn, err := p.dial(ctx, address, target.Port, len(addresses)-i)
		if err == nil {
			return conn, "", 0, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, reasonUnreachable, gatewayStatus(ctx), fmt.Errorf("connect to %s: %w", target, failed)
}

func (p *Proxy) resolve(ctx context.Context, target egress.Target, grant egress.Grant) ([]netip.Addr, error) {
	name := target.Host
	if !grant.AllowPrivate {
		// The final dot keeps the resolver's search list away: "github.com" must not be looked up in a namespace of the
		// cluster that somebody called "com". A host inside the cluster may be named in its short form.
		name += "."
	}
	return p.options.Resolver.LookupNetIP(ctx, "ip", name)
}

func (p *Proxy) dial(ctx context.Context, address netip.Addr, port, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		now := p.options.Now()
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, now.Add(deadline.Sub(now)/time.Duration(left)))
		defer cancel()
	}
	return p.options.Dial(ctx, "tcp", net.JoinHostPort(address.String(), strconv.Itoa(port)))
}

func gatewayStatus(ctx context.Context) int {
	if ctx.Err() != nil {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// carry tells the client that it is connected, and copies bytes until both sides are done, if the TLS handshake asks for the
// target.
func (p *Proxy) carry(w http.ResponseWriter, record Outcome, target egress.Target, upstream net.Conn) (Outcome, int, error) {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		record.Reason = reasonUnavailable
		return record, http.StatusInternalServerError, fmt.Errorf("take over the connection: %w", err)
	}
	defer client.Close()
	started := p.options.Now()
	limits := p.options.Limits
	open := &opening{client: client, from: buffered.Reader, upstream: upstream, target: target, limit: limits.Hello}
	if err = open.run(); err == nil {
		through := &tunnel.Tunnel{Client: client, Upstream: upstream, From: open.rest(), Idle: limits.Idle, Linger: limits.Linger}
		if record.List == egress.FieldAgent {
			through.Life = limits.AgentLife
		} else {
			through.Idle = cmp.Or(limits.GitIdle, limits.Idle)
		}
		err = through.Run()
		record.Sent, record.Received = through.Sent(), through.Received()
	}
	record.Reason, record.Duration = reasonConnected, p.options.Now().Sub(started)
	record.Sent += open.sent
	record.Received += open.received
	if refusal, ok := errors.AsType[*egress.Refusal](err); ok {
		record.Reason = string(refusal.Reason)
	}
	attributes := []any{"feature", record.Feature, "list", record.List, "target", record.Target, "reason", record.Reason,
		"address", upstream.RemoteAddr().String(), "sent", record.Sent, "received", record.Received, "duration", record.Duration}
	if err != nil {
		p.options.Logger.Warn("Closed a connection early", append(attributes, "message", err.Error())...)
	} else {
		p.options.Logger.Info("Closed a connection", attributes...)
	}
	return record, 0, nil
}
