// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
)

// connect resolves the target once, judges the addresses and dials one of them: what was judged is what is dialled, so
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
		record, code, err := refused(Record{}, err)
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
	if target.Address.IsValid() {
		return []netip.Addr{target.Address}, nil
	}
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

// carry tells the client that it is connected, reads the beginning of its TLS handshake and, if that asks for the target,
// copies bytes until both sides are done.
func (p *Proxy) carry(w http.ResponseWriter, record Record, target egress.Target, upstream net.Conn) (Record, int, error) {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		record.Reason = reasonUnavailable
		return record, http.StatusInternalServerError, fmt.Errorf("take over the connection: %w", err)
	}
	defer client.Close()
	started := p.options.Now()
	t := &tunnel{client: client, upstream: upstream, limits: p.options.Limits, now: p.options.Now}
	err = t.run(buffered.Reader, target)
	record.Reason, record.Duration = reasonConnected, p.options.Now().Sub(started)
	record.Sent, record.Received = t.sent.Load(), t.received.Load()
	if refusal, ok := errors.AsType[*egress.Refusal](err); ok {
		record.Reason = string(refusal.Reason)
	}
	attributes := []any{"feature", record.Feature, "target", record.Target, "reason", record.Reason,
		"address", upstream.RemoteAddr().String(), "sent", record.Sent, "received", record.Received, "duration", record.Duration}
	if err != nil {
		p.options.Logger.Warn("Closed a connection early", append(attributes, "message", err.Error())...)
	} else {
		p.options.Logger.Info("Closed a connection", attributes...)
	}
	return record, 0, nil
}

// tunnel copies between a client and the server that it was connected to.
type tunnel struct {
	client, upstream net.Conn
	limits           Limits
	now              func() time.Time
	sent, received   atomic.Int64
	// closing is set once one direction has ended.
	closing atomic.Bool
}

func (t *tunnel) run(fromClient *bufio.Reader, target egress.Target) error {
	// The deadline also replaces the one that the HTTP server had set.
	if err := t.client.SetDeadline(t.now().Add(t.limits.Hello)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	if _, err := io.WriteString(t.client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return fmt.Errorf("answer the client: %w", err)
	}
	hello, err := readHello(fromClient, target)
	if err != nil {
		return err
	}
	t.touch()
	if _, err := t.upstream.Write(hello); err != nil {
		return fmt.Errorf("send the TLS handshake: %w", err)
	}
	t.sent.Add(int64(len(hello)))
	var both sync.WaitGroup
	var up, down error
	both.Go(func() { up = t.copy(t.upstream, t.client, fromClient, &t.sent) })
	both.Go(func() { down = t.copy(t.client, t.upstream, t.upstream, &t.received) })
	both.Wait()
	return errors.Join(up, down)
}

// readHello reads until CheckHello has seen enough.
func readHello(from io.Reader, target egress.Target) ([]byte, error) {
	buffer := make([]byte, egress.MaxHello)
	length := 0
	for {
		n, err := from.Read(buffer[length:])
		length += n
		if verdict := egress.CheckHello(buffer[:length], target); !errors.Is(verdict, egress.ErrShort) {
			return buffer[:length], verdict
		}
		if err != nil {
			return nil, fmt.Errorf("read the TLS handshake: %w", err)
		}
	}
}

// copy moves bytes one way until the end, then closes that way only: HTTP servers answer after the client's last byte.
func (t *tunnel) copy(to, from net.Conn, reader io.Reader, count *atomic.Int64) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := reader.Read(buffer)
		if n > 0 {
			t.touch()
			if _, err := to.Write(buffer[:n]); err != nil {
				return t.broken("write", err)
			}
			count.Add(int64(n))
		}
		// TLS ends with a word of its own, which many clients leave out; what is inside the tunnel has its own end.
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

// broken ends both directions. What comes after the other side has ended in order is not worth a word.
func (t *tunnel) broken(what string, err error) error {
	quiet := t.closing.Swap(true)
	_ = t.client.Close()
	_ = t.upstream.Close()
	if quiet {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// touch puts off the end of an idle tunnel.
func (t *tunnel) touch() {
	idle := t.limits.Idle
	if t.closing.Load() {
		idle = t.limits.Linger
	}
	deadline := t.now().Add(idle)
	// A failure means that the connection is closed, which the next read or write will say.
	_ = t.client.SetDeadline(deadline)
	_ = t.upstream.SetDeadline(deadline)
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
