// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gatewayclient is how a watchdog reaches the gateway: over TLS, which the CA of the system vouches for, with the token of
// its pod.
package gatewayclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialTime bounds a connection to the gateway.
	dialTime = 10 * time.Second
	// lostTime is the maximum silence of the gateway's machine, including its TCP. After it the machine counts as gone, and the agent gets an
	// error, so that it uses another one. By default Linux waits for a quarter of an hour.
	lostTime = 20 * time.Second
	// maxToken bounds the token's file in bytes.
	maxToken = 64 << 10
)

// Link to the gateway.
type Link struct {
	// Name is the name in the gateway's certificate, if it is not the host of the URL.
	Name string
	// Token and CA are files. Both change while the pod lives.
	Token, CA string
}

// Dial connects to an address of the gateway, and proves that it is the gateway.
func (l Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	// The bundle is read for each connection: it is replaced when the CA is.
	config, err := l.trust()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	dialer := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: lostTime / 2, Interval: lostTime / 4, Count: 2}, Control: noticeLoss,
	}
	return (&tls.Dialer{NetDialer: &dialer, Config: config}).DialContext(ctx, network, address)
}

// noticeLoss of the other machine while it has not confirmed what it was sent; probes are for connections that are silent.
func noticeLoss(_, _ string, conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostTime.Milliseconds()))
	})
	return errors.Join(err, failed)
}

// trust is how the gateway is known.
func (l Link) trust() (*tls.Config, error) {
	pem, err := os.ReadFile(l.CA)
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", l.CA)
	}
	return &tls.Config{RootCAs: roots, ServerName: l.Name, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}, nil
}

// ReadToken returns the pod's token as it is now.
func (l Link) ReadToken() (string, error) {
	info, err := os.Stat(l.Token)
	if err != nil {
		return "", err
	}
	if info.Size() > maxToken {
		return "", fmt.Errorf("%s has %d bytes", l.Token, info.Size())
	}
	token, err := os.ReadFile(l.Token)
	return strings.TrimSpace(string(token)), err
}
