// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
)

// accessDenied is the alert of TLS that tells a client why its connection ends (RFC 8446, 6.2): fatal, access_denied.
var accessDenied = []byte{21, 3, 3, 0, 2, 2, 49}

// opening of a tunnel: the TLS handshake up to where both sides encrypt, of which every ClientHello must ask for the target.
type opening struct {
	client, upstream net.Conn
	// from is what the client sends.
	from   io.Reader
	target egress.Target
	// limit is how long each message may take.
	limit time.Duration
	// ahead has what was read of the client and is not passed on yet.
	ahead []byte
	// sent and received are the bytes that were passed on.
	sent, received int64
}

// run returns when the connection is known to be for the target; an error says why it is not. A TLS alert tells the client about a refusal.
func (o *opening) run() error {
	if err := o.wait(); err != nil {
		return err
	}
	if _, err := io.WriteString(o.client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return fmt.Errorf("answer the client: %w", err)
	}
	err := o.handshake()
	if _, refused := errors.AsType[*egress.Refusal](err); refused {
		_, _ = o.client.Write(accessDenied) // a client that hung up does not read it
	}
	return err
}

// handshake passes on the ClientHello and the beginning of the server's answer. Where the server asks for another ClientHello it
// passes that on too. What the client sends meanwhile waits: a server always answers first.
func (o *opening) handshake() error {
	if err := o.hello(); err != nil {
		return err
	}
	if err := o.wait(); err != nil {
		return err
	}
	again, err := o.answer()
	if err != nil || !again {
		return err
	}
	if err := o.wait(); err != nil {
		return err
	}
	if err := o.skip(); err != nil {
		return err
	}
	return o.hello()
}

// wait for the next message. It also replaces the deadline that the HTTP server had set.
func (o *opening) wait() error {
	deadline := time.Now().Add(o.limit)
	if err := errors.Join(o.client.SetDeadline(deadline), o.upstream.SetDeadline(deadline)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	return nil
}

// hello passes on the next ClientHello, once it is known to be for the target.
func (o *opening) hello() error {
	for {
		length, err := egress.CheckHello(o.ahead[:min(len(o.ahead), egress.MaxHello)], o.target)
		if err == nil {
			return o.pass(length)
		}
		if !errors.Is(err, egress.ErrShort) {
			return err
		}
		if err := o.more(); err != nil {
			return err
		}
	}
}

// skip passes on what comes before the next handshake message, such as data that was sent early.
func (o *opening) skip() error {
	for {
		length, verdict := egress.Skip(o.ahead)
		if err := o.pass(length); err != nil || verdict == nil {
			return err
		}
		if len(o.ahead) >= egress.MaxRecord {
			return &egress.Refusal{Reason: egress.ReasonNotTLS, Message: fmt.Sprintf("%s: what the client sends cannot be read as TLS: a record is too long", o.target)}
		}
		if err := o.more(); err != nil {
			return err
		}
	}
}

// more reads what the client sends next.
func (o *opening) more() error {
	buffer := make([]byte, egress.MaxRecord)
	n, err := o.from.Read(buffer)
	o.ahead = append(o.ahead, buffer[:n]...)
	if n == 0 && err != nil {
		return fmt.Errorf("read the TLS handshake: %w", err)
	}
	return nil
}

// pass on so much of what was read.
func (o *opening) pass(length int) error {
	n, err := o.upstream.Write(o.ahead[:length])
	o.sent += int64(n)
	o.ahead = o.ahead[length:]
	if err != nil {
		return fmt.Errorf("send the TLS handshake: %w", err)
	}
	return nil
}

// answer passes on the beginning of what the server answers, and says whether it asks for another ClientHello.
func (o *opening) answer() (again bool, err error) {
	var start []byte
	buffer := make([]byte, 1<<10)
	for {
		again, verdict := egress.AsksAgain(start)
		if !errors.Is(verdict, egress.ErrShort) {
			return again, verdict
		}
		n, err := o.upstream.Read(buffer)
		start = append(start, buffer[:n]...)
		written, failed := o.client.Write(buffer[:n])
		o.received += int64(written)
		if failed != nil {
			return false, fmt.Errorf("send the server's TLS handshake: %w", failed)
		}
		if n == 0 && err != nil {
			return false, fmt.Errorf("read the server's TLS handshake: %w", err)
		}
	}
}

// rest is what the client sends after the handshake.
func (o *opening) rest() io.Reader { return io.MultiReader(bytes.NewReader(o.ahead), o.from) }
