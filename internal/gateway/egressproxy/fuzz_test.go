// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/testkit/script"
)

// net1 is an Internet in which a few names are at good and bad addresses, and every server says the same.
type net1 struct {
	mu      sync.Mutex
	says    []byte
	dialled []string
	servers []*script.Conn
}

func (n *net1) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	answers := map[string]string{
		"git.example.com.": "1.1.1.1", "registry.example.com.": "1.1.1.2", "private.example.com.": "10.0.0.1", "inside.example.com": "127.0.0.1", "meta.example.com.": "169.254.169.254",
	}
	address, ok := answers[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

func (n *net1) dial(_ context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	server := script.New(n.says)
	n.dialled, n.servers = append(n.dialled, address), append(n.servers, server)
	return server, nil
}

// FuzzRequest: whatever a client sends, with a good token or none, and whatever the server answers, no address is dialled but
// those of listed names, and nothing reaches a server before a ClientHello for its name.
func FuzzRequest(f *testing.F) {
	at := func(name string) policy.Host { return policy.Host{Name: name, Port: 443} }
	inside := at("inside.example.com")
	inside.AllowPrivate = true
	lists := tokens{
		egress.FieldGit:   {at("git.example.com"), at("private.example.com"), inside, at("127.0.0.1")},
		egress.FieldAgent: {at("registry.example.com"), at("*.example.com")},
	}
	targets := map[string][]string{"1.1.1.1:443": {"git.example.com"}, "1.1.1.2:443": {"registry.example.com"}}
	internet := &net1{}
	listener := make(script.Listener)
	server := &http.Server{ReadHeaderTimeout: headerTime, Handler: New(Options{
		Authorizer: lists, Resolver: internet, Dial: internet.dial, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	go func() { _ = server.Serve(listener) }()
	f.Cleanup(func() { close(listener) })

	hello, other := helloOf(f, "git.example.com"), helloOf(f, "evil.example")
	answer := []byte{22, 3, 3, 0, 40, 2, 0, 0, 36, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, list := range []egress.Field{egress.FieldGit, egress.FieldAgent} {
		for _, target := range []string{
			"git.example.com:443", "registry.example.com:443", "private.example.com:443", "inside.example.com:443", "meta.example.com:443", "127.0.0.1:443", "[::1]:443", "2130706433:443",
		} {
			request := []byte("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nProxy-Authorization: " + basic(list.User(), goodToken) + "\r\n\r\n")
			f.Add(request, hello, answer)
			f.Add(request, other, answer)
			f.Add(request, append(append([]byte{}, hello...), other...), answer)
		}
	}
	f.Add([]byte("GET http://git.example.com/ HTTP/1.1\r\nHost: git.example.com\r\n\r\n"), []byte{}, []byte{})
	good := []byte("CONNECT git.example.com:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: " + basic(egress.FieldGit.User(), goodToken) + "\r\n\r\n")
	f.Add(good, hello, answer)
	f.Fuzz(func(t *testing.T, request, sends, says []byte) {
		internet.mu.Lock()
		internet.says, internet.dialled, internet.servers = says, nil, nil
		internet.mu.Unlock()
		client := script.New(request, sends)
		listener <- client
		<-client.Closed
		internet.mu.Lock()
		defer internet.mu.Unlock()
		if bytes.Equal(request, good) && bytes.HasPrefix(sends, hello) && (len(internet.servers) != 1 || !bytes.HasPrefix(internet.servers[0].Heard(), hello)) {
			t.Fatal("a good request does not come to its server")
		}
		for i, address := range internet.dialled {
			names, ok := targets[address]
			if !ok {
				t.Fatalf("dialled %s", address)
			}
			heard := internet.servers[i].Heard()
			if len(heard) == 0 {
				continue
			}
			if _, err := egress.CheckHello(heard, egress.Target{Host: names[0], Port: 443}); err != nil && !errors.Is(err, egress.ErrShort) {
				t.Fatalf("%s heard %x: %v", names[0], heard[:min(len(heard), 64)], err)
			}
		}
	})
}
