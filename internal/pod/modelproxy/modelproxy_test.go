// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
)

// readTime of tests in which requests run into it. Others have an hour: on a busy machine, large requests take longer than this.
const readTime = 5 * time.Second

// pod is a watchdog's proxy before a gateway.
type pod struct {
	t       *testing.T
	url     string
	token   string
	gateway *httptest.Server
	proxy   *modelproxy.Proxy
	// fared is what was told of calls that are over.
	mu    sync.Mutex
	fared []failures.Answer
}

// told is what was told of calls that are over.
func (p *pod) told() []failures.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.fared)
}

// newPod has a gateway that says nothing of budgets.
func newPod(t *testing.T, gateway http.HandlerFunc) *pod {
	t.Helper()
	return newObservedPod(t, nil, gateway)
}

// newObservedPod has somebody who hears its conversations.
func newObservedPod(t *testing.T, o modelproxy.Observer, gateway http.HandlerFunc) *pod {
	t.Helper()
	return startPod(t, o, time.Hour, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == protocol.AllowancePath {
			http.NotFound(w, r)
			return
		}
		gateway(w, r)
	}))
}

func newMeteredPod(t *testing.T, gateway http.Handler) *pod {
	t.Helper()
	return startPod(t, nil, time.Hour, gateway)
}

// startPod gives requests readTime to come.
func startPod(t *testing.T, o modelproxy.Observer, readTime time.Duration, gateway http.Handler) *pod {
	t.Helper()
	server := httptest.NewUnstartedServer(gateway)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) }
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	p := &pod{t: t, token: filepath.Join(dir, "token"), gateway: server}
	ca := filepath.Join(dir, "ca.crt")
	p.write(p.token, "first\n")
	p.write(ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	l, err := modelproxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.url = modelproxy.URL(l)
	// The certificate of httptest names example.com.
	if p.proxy, err = modelproxy.New(modelproxy.Options{
		Gateway: server.URL, Name: "example.com", Token: p.token, CA: ca, Task: func() string { return "login" }, Log: slog.New(slog.DiscardHandler),
		Pause: time.Millisecond, UsageEvery: time.Hour, ReadTime: readTime, Observer: o,
		Fared: func(a failures.Answer) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.fared = append(p.fared, a)
		},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- p.proxy.Serve(ctx, l)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return p
}

func (p *pod) write(path, text string) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pod) post(path string, header map[string]string) *http.Response {
	p.t.Helper()
	return p.send(path, header, strings.NewReader(`{"model":"a"}`))
}

func (p *pod) send(path string, header map[string]string, body io.Reader) *http.Response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
		if name == "Host" {
			request.Host = value
		}
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// TestTheTokenIsThePods: whatever credentials the agent shows, and whatever task it claims, the gateway sees those of the
// pod, as they are now.
func TestTheTokenIsThePods(t *testing.T) {
	seen := make(chan http.Header, 1)
	p := newPod(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		fmt.Fprint(w, r.URL.RequestURI())
	})
	for _, token := range []string{"first", "second"} {
		p.write(p.token, token+"\n")
		answer := p.post("/anthropic/v1/messages?beta=true", map[string]string{"Authorization": "Bearer stolen", "Tidewaiter-Task": "forged", "Tidewaiter-Turn": "99", "Tidewaiter-Role": "supervisor", "Anthropic-Beta": "x"})
		header := <-seen
		if got := header.Values("Authorization"); len(got) != 1 || got[0] != "Bearer "+token {
			t.Errorf("Authorization %q, want the pod's %s", got, token)
		}
		if strings.Join(header.Values("Tidewaiter-Task"), ",") != "login" || header.Get("Anthropic-Beta") != "x" || header.Get("Tidewaiter-Turn") != "" || header.Get("Tidewaiter-Role") != "" {
			t.Errorf("headers %v", header)
		}
		if path, _ := io.ReadAll(answer.Body); string(path) != "/anthropic/v1/messages?beta=true" {
			t.Errorf("the gateway was asked for %s", path)
		}
	}
	if err := os.Remove(p.token); err != nil {
		t.Fatal(err)
	}
	p.post("/anthropic/v1/messages", map[string]string{"Authorization": "Bearer stolen"})
	if header := <-seen; header.Get("Authorization") != "" {
		t.Errorf("without a token of the pod, the agent's went out: %v", header)
	}
}

// TestAnswersStream: what the gateway has said is there before it says more, and it notices that the agent hangs up.
func TestAnswersStream(t *testing.T) {
	more, gone := make(chan struct{}), make(chan struct{})
	p := newPod(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		<-more
		fmt.Fprint(w, "two\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	answer := p.post("/anthropic/v1/messages", nil)
	lines := bufio.NewReader(answer.Body)
	for _, want := range []string{"one\n", "two\n"} {
		if line, err := lines.ReadString('\n'); line != want {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
		if want == "one\n" {
			close(more)
		}
	}
	answer.Body.Close()
	<-gone
}

// TestTheGatewayIsAway: the agent gets an error of its dialect that it tries again after.
func TestTheGatewayIsAway(t *testing.T) {
	p := newPod(t, nil)
	p.gateway.Close()
	answer := p.post("/anthropic/v1/messages", nil)
	var e struct {
		Type  string
		Error struct{ Message string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&e); err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "1" ||
		e.Type != "error" || !strings.Contains(e.Error.Message, "try again") {
		t.Errorf("%d %+v, %v", answer.StatusCode, e, err)
	}
}

// TestAnotherGatewayIsNotAsked: who has no certificate of ours gets no token.
func TestAnotherGatewayIsNotAsked(t *testing.T) {
	p := newPod(t, func(http.ResponseWriter, *http.Request) { t.Error("a stranger was asked") })
	other := newPod(t, nil)
	pool := filepath.Join(t.TempDir(), "ca.crt")
	p.write(pool, "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
	l, err := modelproxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy, err := modelproxy.New(modelproxy.Options{Gateway: p.gateway.URL, Name: "example.com", Token: other.token, CA: pool, Task: func() string { return "" }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = proxy.Serve(ctx, l) }()
	other.url = modelproxy.URL(l)
	if answer := other.post("/anthropic/v1/messages", nil); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", answer.StatusCode)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	p := newPod(t, func(http.ResponseWriter, *http.Request) { t.Error("the gateway was asked") })
	for _, header := range []map[string]string{{"Host": "evil.example"}, {"Origin": "https://evil.example"}} {
		if answer := p.post("/anthropic/v1/messages", header); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%v: %d", header, answer.StatusCode)
		}
	}
	if _, err := modelproxy.Listen("0.0.0.0:0"); err == nil {
		t.Error("listens for everybody")
	}
}

// TestNothingButModels: the pod's token opens tunnels at the gateway as well, and no agent may have one.
func TestNothingButModels(t *testing.T) {
	p := newPod(t, func(http.ResponseWriter, *http.Request) { t.Error("the gateway was asked") })
	address := strings.TrimPrefix(p.url, "http://")
	for _, line := range []string{
		"CONNECT " + address + " HTTP/1.1", "CONNECT git.example.com:443 HTTP/1.1", "GET / HTTP/1.1", "POST /v1/reports HTTP/1.1",
		"GET http://evil.example/anthropic/v1/models HTTP/1.1", "POST //anthropic/v1/messages HTTP/1.1", "OPTIONS * HTTP/1.1",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s\r\nHost: %s\r\nProxy-Authorization: Basic eDp5\r\nConnection: close\r\n\r\n", line, address)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		// An OPTIONS for the server as a whole is answered by Go's own.
		if answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusForbidden && !strings.HasPrefix(line, "OPTIONS") {
			t.Errorf("%s: %d", line, answer.StatusCode)
		}
		_, _ = answer.Body.Close(), conn.Close()
	}
}

// TestAnAnswerBeforeTheEndOfItsRequest does not break off. net/http reads what is left of a request before it writes the answer, unless
// it is told not to, and takes it from the one that sends it on.
func TestAnAnswerBeforeTheEndOfItsRequest(t *testing.T) {
	p := newPod(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		text := make([]byte, len("first"))
		if _, err := io.ReadFull(r.Body, text); err != nil || string(text) != "first" {
			t.Errorf("the gateway reads %q, %v", text, err)
		}
		_, _ = io.WriteString(w, "begun, ")
		_ = http.NewResponseController(w).Flush()
		rest, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the gateway reads the rest: %v", err)
		}
		_, _ = fmt.Fprintf(w, "and then %s", rest)
	})
	in, out := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/anthropic/v1/messages", in)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(out, "first") }()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	begun := make([]byte, len("begun, "))
	if _, err := io.ReadFull(answer.Body, begun); err != nil {
		t.Errorf("the beginning: %v", err)
	}
	_, _ = io.WriteString(out, "second")
	_ = out.Close()
	rest, err := io.ReadAll(answer.Body)
	if string(begun)+string(rest) != "begun, and then second" || err != nil {
		t.Errorf("%s%s, %v", begun, rest, err)
	}
}
