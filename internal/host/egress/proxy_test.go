// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

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
)

const (
	goodToken    = "good.token"
	pendingToken = "pending.token"
)

// tokens is an Authorizer with one Feature.
type tokens struct{ hosts []policy.Host }

func (t tokens) Authorize(_ context.Context, token string) (Caller, error) {
	switch token {
	case goodToken:
		return Caller{Feature: "shop/login", Hosts: t.hosts, Field: egress.FieldGit}, nil
	case pendingToken:
		return Caller{}, fmt.Errorf("the pod is not known yet: %w", ErrUnavailable)
	default:
		return Caller{}, fmt.Errorf("unknown token: %w", ErrUnauthenticated)
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
	names   *names
	servers map[string]string // address and port, and where it really listens
	proxy   string
	ca      *authority
	stop    context.CancelFunc
	stopped chan error

	mu      sync.Mutex
	dialled []string
	records []Record
}

var errNoRoute = errors.New("no route to host")

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	real, ok := w.servers[address]
	w.mu.Unlock()
	if !ok {
		return nil, errNoRoute
	}
	if real == "hang" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var d net.Dialer
	return d.DialContext(ctx, network, real)
}

func newWorld(t *testing.T, limits Limits, hosts ...policy.Host) *world {
	t.Helper()
	w := &world{T: t, names: &names{answers: map[string][][]netip.Addr{}}, servers: map[string]string{}, ca: newAuthority(t), stopped: make(chan error, 1)}
	proxy := New(Options{
		Authorizer: tokens{hosts: hosts}, Resolver: w.names, Dial: w.dial, Now: time.Now, Limits: limits,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Observe: func(r Record) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.records = append(w.records, r)
		},
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
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{w.ca.leaf(w.T, name)}, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	s.StartTLS()
	w.Cleanup(s.Close)
	host, _, _ := strings.Cut(address, ":")
	w.names.answers[name] = addresses(host)
	w.servers[address] = s.Listener.Addr().String()
}

// client speaks through the proxy.
func (w *world) client(token string) *http.Client {
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "https", User: url.UserPassword(User, token), Host: w.proxy}),
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
	return w.connect("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nProxy-Authorization: " + basic(User, goodToken) + "\r\n\r\n")
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

func TestAllowedHostIsReached(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
	if len(w.names.asked) != 1 || w.names.asked[0] != "git.example.com." {
		t.Errorf("looked up %q, want the absolute name once", w.names.asked)
	}
}

func TestRefusals(t *testing.T) {
	header := "\r\nHost: git.example.com:443\r\nProxy-Authorization: " + basic(User, goodToken)
	tests := map[string]struct {
		request    string
		wantCode   int
		wantReason string
		wantText   string
		wantHeader string
	}{
		"no credentials":      {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x", 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"unknown token":       {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic(User, "stolen"), 407, "Unauthenticated", "unknown token", "Proxy-Authenticate"},
		"another user":        {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic("root", goodToken), 407, "Unauthenticated", "tidewaiter", "Proxy-Authenticate"},
		"bearer":              {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer " + goodToken, 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"the wrong header":    {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nAuthorization: " + basic(User, goodToken), 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"credentials twice":   {"CONNECT git.example.com:443 HTTP/1.1" + header + "\r\nProxy-Authorization: " + basic(User, "x"), 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"pod not known yet":   {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic(User, pendingToken), 503, "Unavailable", "not known yet", "Retry-After"},
		"GET of a URL":        {"GET http://git.example.com/ HTTP/1.1" + header, 405, "NotConnect", "CONNECT", "Allow"},
		"GET of a path":       {"GET / HTTP/1.1" + header, 405, "NotConnect", "CONNECT", "Allow"},
		"body":                {"CONNECT git.example.com:443 HTTP/1.1" + header + "\r\nContent-Length: 5", 400, "BadTarget", "body", ""},
		"chunked body":        {"CONNECT git.example.com:443 HTTP/1.1" + header + "\r\nTransfer-Encoding: chunked", 400, "BadTarget", "body", ""},
		"no port":             {"CONNECT git.example.com HTTP/1.1" + header, 400, "BadTarget", "host:port", ""},
		"user in the target":  {"CONNECT git.example.com:443@127.0.0.1:443 HTTP/1.1" + header, 400, "BadTarget", "", ""},
		"final dot":           {"CONNECT git.example.com.:443 HTTP/1.1" + header, 400, "BadTarget", "", ""},
		"decimal address":     {"CONNECT 2130706433:443 HTTP/1.1" + header, 400, "BadTarget", "", ""},
		"host not listed":     {"CONNECT evil.example:443 HTTP/1.1" + header, 403, "HostNotAllowed", "egress.git of a SupervisorPolicy", ""},
		"port not listed":     {"CONNECT git.example.com:22 HTTP/1.1" + header, 403, "HostNotAllowed", "egress.git of a SupervisorPolicy", ""},
		"address not listed":  {"CONNECT 1.1.1.1:443 HTTP/1.1" + header, 403, "HostNotAllowed", "egress.git of a SupervisorPolicy", ""},
		"metadata service":    {"CONNECT 169.254.169.254:443 HTTP/1.1" + header, 403, "HostNotAllowed", "", ""},
		"loopback in IPv6":    {"CONNECT [::1]:443 HTTP/1.1" + header, 403, "HostNotAllowed", "", ""},
		"listed loopback":     {"CONNECT 127.0.0.1:443 HTTP/1.1" + header, 403, "ForbiddenAddress", "loopback", ""},
		"private address":     {"CONNECT private.example.com:443 HTTP/1.1" + header, 403, "PrivateAddress", "allowPrivate", ""},
		"mapped loopback":     {"CONNECT mapped.example.com:443 HTTP/1.1" + header, 403, "ForbiddenAddress", "loopback", ""},
		"name does not exist": {"CONNECT gone.example.com:443 HTTP/1.1" + header, 502, "Unresolved", "gone.example.com", ""},
		"nobody listens":      {"CONNECT dark.example.com:443 HTTP/1.1" + header, 502, "Unreachable", "no route", ""},
		"nobody answers":      {"CONNECT slow.example.com:443 HTTP/1.1" + header, 504, "Unreachable", "deadline", ""},
	}
	hosts := []policy.Host{git(false), {Name: "127.0.0.1", Port: 443, AllowPrivate: true}, {Name: "mapped.example.com", Port: 443, AllowPrivate: true}}
	for _, name := range []string{"private", "gone", "dark", "slow"} {
		hosts = append(hosts, policy.Host{Name: name + ".example.com", Port: 443})
	}
	w := newWorld(t, Limits{Total: 9, PerFeature: 9, Dial: 200 * time.Millisecond, Hello: time.Second, Idle: time.Second, Linger: time.Second}, hosts...)
	w.names.answers["private.example.com"] = addresses("10.0.0.1", "fd00::1")
	w.names.answers["mapped.example.com"] = addresses("::ffff:127.0.0.1", "169.254.169.254", "64:ff9b::7f00:1")
	w.names.answers["dark.example.com"] = addresses("1.1.1.1")
	w.names.answers["slow.example.com"] = addresses("1.1.1.2", "1.1.1.3")
	w.servers["1.1.1.2:443"], w.servers["1.1.1.3:443"] = "hang", "hang"
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response, reader, _ := w.connect(test.request + "\r\n\r\n")
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.wantCode || response.Header.Get(ReasonHeader) != test.wantReason {
				t.Errorf("answered %d %s, want %d %s", response.StatusCode, response.Header.Get(ReasonHeader), test.wantCode, test.wantReason)
			}
			if !strings.Contains(string(body), test.wantText) {
				t.Errorf("the body does not say %q: %q", test.wantText, body)
			}
			if test.wantHeader != "" && response.Header.Get(test.wantHeader) == "" {
				t.Errorf("no header %s", test.wantHeader)
			}
			if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
				t.Errorf("the connection goes on: %q, %v", rest, err)
			}
		})
	}
	for _, address := range w.dials() {
		if !strings.HasPrefix(address, "1.1.1.") {
			t.Errorf("dialled %s", address)
		}
	}
}

// TestRebinding: a name server that gives a good address first and a bad one then gains nothing, because the address
// that was judged is the one that is dialled.
func TestRebinding(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	w.names.answers["git.example.com"] = append(addresses("1.1.1.1"), addresses("127.0.0.1")...)
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	second, _, _ := w.connectTo("git.example.com:443")
	if got := second.Header.Get(ReasonHeader); got != string(egress.ReasonForbiddenAddress) {
		t.Errorf("the second answer of the name server gave %d %s", second.StatusCode, got)
	}
	if got := w.dials(); len(got) != 1 || got[0] != "1.1.1.1:443" {
		t.Errorf("dialled %q", got)
	}
}

// TestTheNextAddressIsTried: servers have several addresses so that one may be down; bad ones among them are left out.
func TestTheNextAddressIsTried(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	w.names.answers["git.example.com"] = addresses("127.0.0.1", "8.8.8.8", "10.0.0.1", "1.1.1.1")
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := strings.Join(w.dials(), " "); got != "8.8.8.8:443 1.1.1.1:443" {
		t.Errorf("dialled %s", got)
	}
}

// TestInsideNamesUseTheSearchList: only a host that may be private is looked up as the cluster's DNS completes it.
func TestInsideNamesUseTheSearchList(t *testing.T) {
	w := newWorld(t, Limits{}, git(true))
	w.server("git.example.com", "10.0.0.7:443", http.HandlerFunc(hello))
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if len(w.names.asked) != 1 || w.names.asked[0] != "git.example.com" {
		t.Errorf("looked up %q", w.names.asked)
	}
}

func TestOnlyTLSForTheHostPasses(t *testing.T) {
	var reached bool
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })
	tests := map[string]struct {
		speak func(net.Conn) error
		want  egress.Reason
	}{
		"another server name": {func(c net.Conn) error {
			return tls.Client(c, &tls.Config{ServerName: "evil.example", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
		}, egress.ReasonServerName},
		"no server name": {func(c net.Conn) error {
			return tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()) //nolint:gosec // it must not get that far
		}, egress.ReasonServerName},
		"plain HTTP": {func(c net.Conn) error {
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: git.example.com\r\n\r\n"); err != nil {
				return err
			}
			_, err := http.ReadResponse(bufio.NewReader(c), nil)
			return err
		}, egress.ReasonNotTLS},
		"nothing": {func(c net.Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		}, reasonConnected},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{Total: 9, PerFeature: 9, Dial: time.Second, Hello: 300 * time.Millisecond, Idle: time.Minute, Linger: time.Minute}, git(false))
			w.server("git.example.com", "1.1.1.1:443", handler)
			response, _, conn := w.connectTo("git.example.com:443")
			if response.StatusCode != http.StatusOK {
				t.Fatalf("answered %d", response.StatusCode)
			}
			if err := test.speak(conn); err == nil {
				t.Error("it was let through")
			}
			w.stop()
			if err := <-w.stopped; err != nil {
				t.Errorf("Serve: %v", err)
			}
			w.stopped <- nil
			if len(w.records) != 1 || w.records[0].Reason != string(test.want) || w.records[0].Sent != 0 {
				t.Errorf("recorded %+v, want reason %s and nothing sent", w.records, test.want)
			}
		})
	}
	if reached {
		t.Error("a request reached the server")
	}
}

func TestTooManyConnections(t *testing.T) {
	w := newWorld(t, Limits{Total: 9, PerFeature: 2, Dial: time.Second, Hello: 10 * time.Second, Idle: time.Minute, Linger: time.Minute}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	_, _, first := w.connectTo("git.example.com:443")
	w.connectTo("git.example.com:443")
	third, _, _ := w.connectTo("git.example.com:443")
	if third.StatusCode != http.StatusServiceUnavailable || third.Header.Get("Retry-After") == "" {
		t.Fatalf("the third connection was answered %d", third.StatusCode)
	}
	_ = first.Close()
	for range 200 { // until the proxy has noticed
		if again, _, conn := w.connectTo("git.example.com:443"); again.StatusCode == http.StatusOK {
			_ = conn.Close()
			return
		}
	}
	t.Error("a closed connection still counts")
}

func TestIdleTunnelEnds(t *testing.T) {
	w := newWorld(t, Limits{Total: 9, PerFeature: 9, Dial: time.Second, Hello: 5 * time.Second, Idle: 300 * time.Millisecond, Linger: time.Second}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	_, _, conn := w.connectTo("git.example.com:443")
	inner := tls.Client(conn, &tls.Config{ServerName: "git.example.com", RootCAs: w.ca.pool, MinVersion: tls.VersionTLS12})
	if err := inner.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Read(make([]byte, 1)); err == nil {
		t.Error("something came through an idle connection")
	}
}

// TestStopLetsTunnelsFinish: a new version of the gateway does not cut a clone in two.
func TestStopLetsTunnelsFinish(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	started, finish := make(chan struct{}), make(chan struct{})
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(rw).Flush()
		close(started)
		<-finish
		_, _ = io.WriteString(rw, "late")
	}))
	client := w.client(goodToken)
	body := make(chan string, 1)
	go func() {
		response, err := client.Get("https://git.example.com/")
		if err != nil {
			body <- err.Error()
			return
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		client.CloseIdleConnections()
		body <- fmt.Sprint(string(text), err)
	}()
	<-started
	w.stop()
	close(finish)
	if got := <-body; got != "late<nil>" {
		t.Errorf("the tunnel ended with %q", got)
	}
}
