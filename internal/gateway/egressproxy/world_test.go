// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
)

// user of a watchdog's Git.
var user = egress.FieldGit.User()

const (
	goodToken    = "good.token"
	pendingToken = "pending.token"
)

// tokens is an Authorizer with one Feature, and its lists of hosts.
type tokens map[egress.Field][]policy.Host

func (t tokens) Authorize(_ context.Context, token string, list egress.Field) (Caller, error) {
	switch token {
	case goodToken:
		return Caller{Feature: "shop/login", Hosts: t[list]}, nil
	case pendingToken:
		return Caller{}, fmt.Errorf("the pod is not known yet: %w", callers.ErrUnavailable)
	default:
		return Caller{}, fmt.Errorf("unknown token: %w", callers.ErrUnauthenticated)
	}
}

// names is a Resolver; each answer may be given once only, the last one again and again.
type names struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	asked   []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	answers := n.answers[strings.TrimSuffix(host, ".")]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		n.answers[strings.TrimSuffix(host, ".")] = answers[1:]
	}
	return answers[0], nil
}

func addresses(texts ...string) [][]netip.Addr {
	var answer []netip.Addr
	for _, text := range texts {
		answer = append(answer, netip.MustParseAddr(text))
	}
	return [][]netip.Addr{answer}
}

// world is a proxy with a policy, a DNS and an Internet of its own.
type world struct {
	*testing.T
	lists   tokens
	names   *names
	servers map[string]string // address and port, and where it really listens
	proxy   string
	ca      *authority
	stop    context.CancelFunc
	stopped chan error

	records chan Outcome

	mu      sync.Mutex
	dialled []string
}

var errNoRoute = errors.New("no route to host")

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	listener, ok := w.servers[address]
	w.mu.Unlock()
	if !ok {
		return nil, errNoRoute
	}
	if listener == "hang" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var d net.Dialer
	return d.DialContext(ctx, network, listener)
}

func newWorld(t *testing.T, limits Limits, hosts ...policy.Host) *world {
	t.Helper()
	w := &world{T: t, lists: tokens{egress.FieldGit: hosts}, names: &names{answers: map[string][][]netip.Addr{}}, servers: map[string]string{}, ca: newAuthority(t), stopped: make(chan error, 1), records: make(chan Outcome, 1000)}
	proxy := New(Options{
		Authorizer: w.lists, Resolver: w.names, Dial: w.dial, Now: time.Now, Limits: limits,
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
		Observe: func(r Outcome) { w.records <- r },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.proxy = listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	certificate := w.ca.leaf(t, "127.0.0.1")
	go func() {
		w.stopped <- proxy.Serve(ctx, listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, 5*time.Second)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-w.stopped; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

// server puts an HTTPS server with a name at an address of this Internet.
func (w *world) server(name, address string, handler http.Handler) {
	w.Helper()
	w.serverWith(name, address, handler, func(*tls.Config) {})
}

func (w *world) serverWith(name, address string, handler http.Handler, change func(*tls.Config)) {
	w.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{w.ca.leaf(w.T, name)}, MinVersion: tls.VersionTLS12}
	change(s.TLS)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	s.StartTLS()
	w.Cleanup(s.Close)
	host, _, _ := strings.Cut(address, ":")
	w.names.answers[name] = addresses(host)
	w.servers[address] = s.Listener.Addr().String()
}

// client speaks through the proxy, as a watchdog does for its Git.
func (w *world) client(token string) *http.Client { return w.clientFor(egress.FieldGit, token) }

func (w *world) clientFor(list egress.Field, token string) *http.Client {
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "https", User: url.UserPassword(list.User(), token), Host: w.proxy}),
		TLSClientConfig: &tls.Config{RootCAs: w.ca.pool, MinVersion: tls.VersionTLS12},
	}
	w.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// connect sends one request as it is and gives the answer and the connection behind it.
func (w *world) connect(request string) (*http.Response, *bufio.Reader, net.Conn) {
	w.Helper()
	conn, err := tls.Dial("tcp", w.proxy, &tls.Config{RootCAs: w.ca.pool, MinVersion: tls.VersionTLS12})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		w.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		w.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		w.Fatalf("no answer: %v", err)
	}
	return response, reader, conn
}

func (w *world) connectTo(target string) (*http.Response, *bufio.Reader, net.Conn) {
	w.Helper()
	return w.connectFor(egress.FieldGit, target)
}

func (w *world) connectFor(list egress.Field, target string) (*http.Response, *bufio.Reader, net.Conn) {
	w.Helper()
	return w.connect("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nProxy-Authorization: " + basic(list.User(), goodToken) + "\r\n\r\n")
}

func basic(user, password string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.dialled...)
}

func git(private bool) policy.Host {
	return policy.Host{Name: "git.example.com", Port: 443, AllowPrivate: private}
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }
