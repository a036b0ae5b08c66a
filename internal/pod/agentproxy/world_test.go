// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package agentproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	coreegress "github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/egressproxy"
)

// world is an agent's pod, a real gateway, and an Internet with one host, registry.example.com.
type world struct {
	*testing.T

	proxy, token, ca string
	gateway          string
	certificate      tls.Certificate
	pool             *x509.CertPool
	// registry is where the host really listens.
	registry string
	records  chan egressproxy.Outcome
	// local are the addresses of the watchdog's own servers.
	local []string
	stop  context.CancelFunc
	log   *slog.Logger
}

// Authorize implements egress.Authorizer: it knows one pod.
func (w *world) Authorize(_ context.Context, token string, list coreegress.Field) (egressproxy.Caller, error) {
	if token != "the.pods.token" {
		return egressproxy.Caller{}, callers.ErrUnauthenticated
	}
	hosts := map[coreegress.Field][]policy.Host{
		coreegress.FieldAgent: {{Name: "registry.example.com", Port: 443, AllowPrivate: true}},
		coreegress.FieldGit:   {{Name: "git.example.com", Port: 443}},
	}
	return egressproxy.Caller{Feature: "shop/login", Hosts: hosts[list]}, nil
}

// LookupNetIP implements egress.Resolver.
func (w *world) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
}

func newWorld(t *testing.T, registry http.Handler) *world {
	t.Helper()
	server := httptest.NewUnstartedServer(registry)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS() // its certificate is for *.example.com and 127.0.0.1
	t.Cleanup(server.Close)
	dir := t.TempDir()
	w := &world{
		T: t, token: filepath.Join(dir, "token"), ca: filepath.Join(dir, "ca.crt"), certificate: server.TLS.Certificates[0], pool: x509.NewCertPool(),
		registry: server.Listener.Addr().String(), records: make(chan egressproxy.Outcome, 1000), log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	w.pool.AddCert(server.Certificate())
	w.write(w.token, "the.pods.token\n")
	w.write(w.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w.startGateway("127.0.0.1:0")
	w.serve()
	return w
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// startGateway gives the function that ends it, as a process that is killed.
func (w *world) startGateway(address string) (end func()) {
	w.Helper()
	dialer := net.Dialer{}
	proxy := egressproxy.New(egressproxy.Options{
		Authorizer: w, Resolver: w, Now: time.Now, Logger: w.log, Observe: func(r egressproxy.Outcome) { w.records <- r },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, w.registry)
		},
	})
	l, err := net.Listen("tcp", address)
	if err != nil {
		w.Fatal(err)
	}
	w.gateway = "https://" + l.Addr().String()
	kept := &keeper{Listener: l}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() {
		done <- proxy.Serve(ctx, kept, &tls.Config{Certificates: []tls.Certificate{w.certificate}, MinVersion: tls.VersionTLS13}, 0)
	}()
	return func() {
		cancel()
		<-done
		kept.close()
	}
}

// keeper of a process's connections, which end with it.
type keeper struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

// Accept keeps the next one.
func (k *keeper) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.conns = append(k.conns, c)
	}
	return c, err
}

func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		_ = c.Close()
	}
}

// serve the agent.
func (w *world) serve() {
	w.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	w.proxy = l.Addr().String()
	ctx, cancel := context.WithCancel(w.Context())
	w.stop = cancel
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, l, Options{Gateway: w.gateway, Name: "example.com", Token: w.token, CA: w.ca, Local: w.local, Log: w.log})
	}()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("serve: %v", err)
		}
	})
}

// client is an HTTP client of the agent.
func (w *world) client() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.proxy}), TLSClientConfig: &tls.Config{RootCAs: w.pool, MinVersion: tls.VersionTLS12},
	}
	w.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// dial is a connection of the agent to its proxy.
func (w *world) dial() net.Conn {
	w.Helper()
	conn, err := net.Dial("tcp", w.proxy)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		w.Fatal(err)
	}
	return conn
}

// send what an agent may send, and read the answer.
func (w *world) send(request string) (*http.Response, string, net.Conn) {
	w.Helper()
	conn := w.dial()
	if _, err := io.WriteString(conn, request); err != nil {
		w.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		w.Fatalf("no answer: %v", err)
	}
	if response.StatusCode == http.StatusOK {
		return response, "", conn
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.Error(err)
	}
	return response, string(body), conn
}

func (w *world) connect(target string) (*http.Response, string, net.Conn) {
	w.Helper()
	return w.send(fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target))
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }
