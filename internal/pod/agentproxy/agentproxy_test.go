// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package agentproxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	coreegress "github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

func TestAHostOfTheListIsReached(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	response, err := w.client().Get("https://registry.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
	w.client().CloseIdleConnections()
}

// TestRefusals: the agent is told which host, why, and which field would change it; in the status line, too, because that is what
// clients show.
func TestRefusals(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	connect := func(target string, headers ...string) string {
		return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" + strings.Join(headers, "") + "\r\n"
	}
	for name, test := range map[string]struct {
		request, reason, message string
		status                   int
	}{
		"a host that is not listed":  {connect("evil.example:443"), "HostNotAllowed", `no policy lists evil.example:443: add host "evil.example" with port 443 to spec.defaults.egress.agent`, 403},
		"a port that is not listed":  {connect("registry.example.com:22"), "HostNotAllowed", "egress.agent", 403},
		"a host of Git":              {connect("git.example.com:443"), "HostNotAllowed", "egress.agent", 403},
		"a host of Git, as its user": {connect("git.example.com:443", "Proxy-Authorization: Basic "+basic("tidewaiter", "the.pods.token")+"\r\n"), "HostNotAllowed", "egress.agent", 403},
		"metadata":                   {connect("169.254.169.254:80"), "IPAddress", "is an IP address", 403},
		"an IPv6 address":            {connect("[::1]:443"), "IPAddress", "is an IP address", 403},
		"an address in disguise":     {connect("2130706433:443"), "BadTarget", "is not a host name and port", 400},
		"no port":                    {connect("registry.example.com"), "BadTarget", "is not host:port", 400},
		"a user before the host":     {"CONNECT registry.example.com:443@evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", "BadTarget", "", 400},
		"a body":                     {connect("registry.example.com:443", "Content-Length: 5\r\n") + "hello", "BadTarget", "no body", 400},
		"chunks":                     {connect("registry.example.com:443", "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", "BadTarget", "no body", 400},
		"plain HTTP":                 {"GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\n\r\n", "NotConnect", "use a URL that begins with https://", 405},
		"a path":                     {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "NotConnect", "https://", 405},
		"a call of a model":          {"POST /anthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}", "NotConnect", "https://", 405},
		"a header beyond the limit":  {connect("registry.example.com:443", "X: "+strings.Repeat("x", 64<<10)+"\r\n"), "", "", 431},
		"two hosts":                  {connect("registry.example.com:443", "Host: evil.example\r\n"), "", "", 400},
		"HTTP/2":                     {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "NotConnect", "https://", 405},
	} {
		t.Run(name, func(t *testing.T) {
			response, body, conn := w.send(test.request)
			if response.StatusCode != test.status || response.Header.Get(protocol.ReasonHeader) != test.reason || !strings.Contains(body, test.message) {
				t.Errorf("%s, %s: %q; want %d %s %q", response.Status, response.Header.Get(protocol.ReasonHeader), body, test.status, test.reason, test.message)
			}
			if test.status == 403 && response.Status != "403 "+strings.TrimSpace(body) {
				t.Errorf("the status line says %q, the body %q", response.Status, body)
			}
			if rest, err := io.ReadAll(conn); len(rest) > 0 && strings.Contains(string(rest), "HTTP/1.1 200") {
				t.Errorf("the connection goes on: %q, %v", rest, err)
			}
		})
	}
	for len(w.records) > 0 {
		if r := <-w.records; r.List != coreegress.FieldAgent || r.Reason == "Connected" {
			t.Errorf("the gateway has recorded %+v", r)
		}
	}
	// What a client in Go says is the status line.
	if _, err := w.client().Get("https://evil.example/"); err == nil || !strings.Contains(err.Error(), "spec.overrides.egress.agent of a SupervisorPolicy") {
		t.Errorf("the client says %v", err)
	}
}

func basic(user, password string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
}

// stranger is a gateway that plays one answer to each request, and keeps what it was asked.
type stranger struct {
	asked  chan string
	answer func(net.Conn)
}

func (w *world) beside(s stranger) {
	w.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{w.certificate}, MinVersion: tls.VersionTLS13})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 8<<10)
				n, _ := conn.Read(buffer)
				if s.asked != nil {
					s.asked <- string(buffer[:n])
				}
				s.answer(conn)
			}()
		}
	}()
	w.gateway = "https://" + l.Addr().String()
	w.serve()
}

// TestNothingOfTheRequestPasses but host and port: neither credentials nor any other header of an agent.
func TestNothingOfTheRequestPasses(t *testing.T) {
	w := newWorld(t, nil)
	asked := make(chan string, 1)
	w.beside(stranger{asked: asked, answer: func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\n\r\nno") }})
	want := "CONNECT registry.example.com:443 HTTP/1.1\r\nHost: registry.example.com:443\r\nUser-Agent: tidewaiter-watchdog\r\n" +
		"Proxy-Authorization: Basic " + basic("tidewaiter-agent", "the.pods.token") + "\r\n\r\n"
	for _, header := range []string{
		"", "Proxy-Authorization: Basic " + basic("tidewaiter", "the.pods.token") + "\r\n", "Authorization: Basic eA==\r\n", "Tidewaiter-Task: forged\r\n",
		"Proxy-Authorization: a\r\nProxy-Authorization: b\r\nConnection: keep-alive, x\r\nX: y\r\nUser-Agent: agent\r\nForwarded: for=1.1.1.1\r\n",
	} {
		w.send("CONNECT REGISTRY.example.com:443 HTTP/1.1\r\nHost: other.example.com\r\n" + header + "\r\n")
		if got := <-asked; got != want {
			t.Errorf("with %q the gateway was asked %q", header, got)
		}
	}
}

// TestAGatewayThatDoesNotAnswerWell: an agent is told that it may try again, and nothing of what came reaches it as it is.
func TestAGatewayThatDoesNotAnswerWell(t *testing.T) {
	for name, test := range map[string]struct {
		answer, want string
		status       int
	}{
		"nothing":               {"", "the gateway does not answer", 503},
		"no HTTP":               {"220 smtp.example.com\r\n", "the gateway does not answer", 503},
		"a header without end":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxAnswer), "the gateway does not answer", 503},
		"success of its own":    {"HTTP/1.1 204 No Content\r\n\r\n", "the gateway does not answer", 503},
		"another address":       {"HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\n\r\n", "the gateway does not answer", 503},
		"an unknown pod":        {"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\nx", "does not accept this pod's token", 503},
		"later":                 {"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nTidewaiter-Reason: TooManyConnections\r\n\r\ntoo many", "too many", 503},
		"a long message":        {"HTTP/1.1 403 Forbidden\r\n\r\n" + strings.Repeat("long,", 10_000), "long,long", 403},
		"a message with breaks": {"HTTP/1.1 403 Forbidden\r\nTidewaiter-Reason: x\r\n\r\nno\r\nSet-Cookie: a\x00\x1b[2J\u202e", "no Set-Cookie: a??[2J?", 403},
		"an empty message":      {"HTTP/1.1 502 Bad Gateway\r\n\r\n", "tidewaiter:", 502},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.beside(stranger{answer: func(c net.Conn) { _, _ = io.WriteString(c, test.answer) }})
			response, body, _ := w.connect("registry.example.com:443")
			if response.StatusCode != test.status || !strings.Contains(body, test.want) || len(body) > maxMessage+20 || response.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %.200q, want %d %q", response.Status, body, test.status, test.want)
			}
			if retry := response.Header.Get("Retry-After"); (retry != "") != (test.status == 503) {
				t.Errorf("Retry-After %q", retry)
			}
		})
	}
}

// TestAGatewayThatIsAway is told at once; when it is back, the next connection is as any other. So it is with the token.
func TestAGatewayThatIsAway(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	end := w.startGateway(addresses.Free())
	w.serve()
	address := strings.TrimPrefix(w.gateway, "https://")
	_, _, open := w.connect("registry.example.com:443")
	end()
	if _, err := io.ReadAll(open); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection through a gateway that is gone is open")
	}
	response, body, _ := w.connect("registry.example.com:443")
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "1" || !strings.Contains(body, "the gateway cannot be reached at the moment; try again") {
		t.Errorf("%s: %s", response.Status, body)
	}
	w.startGateway(address)
	if response, body, _ := w.connect("registry.example.com:443"); response.StatusCode != http.StatusOK {
		t.Errorf("it is back: %s: %s", response.Status, body)
	}
	if err := os.Remove(w.token); err != nil {
		t.Fatal(err)
	}
	if response, body, _ := w.connect("registry.example.com:443"); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "token cannot be read") {
		t.Errorf("without a token: %s: %s", response.Status, body)
	}
	w.write(w.token, "an.old.token")
	if response, body, _ := w.connect("registry.example.com:443"); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "does not accept this pod's token") {
		t.Errorf("with an old token: %s: %s", response.Status, body)
	}
	w.write(w.token, "the.pods.token")
	if response, body, _ := w.connect("registry.example.com:443"); response.StatusCode != http.StatusOK {
		t.Errorf("with the new token: %s: %s", response.Status, body)
	}
}

// TestAnotherGatewayIsNotAsked: who has no certificate of ours gets no token.
func TestAnotherGatewayIsNotAsked(t *testing.T) {
	w := newWorld(t, nil)
	w.write(w.ca, "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
	asked := make(chan string, 1)
	w.beside(stranger{asked: asked, answer: func(net.Conn) {}})
	if response, body, _ := w.connect("registry.example.com:443"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%s: %s", response.Status, body)
	}
	select {
	case request := <-asked:
		if request != "" {
			t.Errorf("a stranger was asked %q", request)
		}
	case <-time.After(100 * time.Millisecond):
	}
}

// TestOneDirectionMayEndFirst: a client that has said everything still gets its answer.
func TestOneDirectionMayEndFirst(t *testing.T) {
	w := newWorld(t, nil)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{w.certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.registry = l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, err := io.ReadAll(conn)
				_, _ = fmt.Fprintf(conn, "%d bytes, %v", len(text), err)
			}()
		}
	}()
	_, _, conn := w.connect("registry.example.com:443")
	inner := tls.Client(conn, &tls.Config{ServerName: "registry.example.com", RootCAs: w.pool, MinVersion: tls.VersionTLS12})
	if _, err := inner.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(inner.CloseWrite(), conn.(*net.TCPConn).CloseWrite()); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(inner); err != nil || string(answer) != fmt.Sprint(1<<20, " bytes, <nil>") {
		t.Errorf("%q, %v", answer, err)
	}
	if r := <-w.records; r.Sent < 1<<20 || r.Received == 0 || r.Reason != "Connected" {
		t.Errorf("recorded %+v", r)
	}
}

// TestAnotherServerNameIsTold: after the connection was promised, all that an agent can be told is an alert of TLS.
func TestAnotherServerNameIsTold(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	for _, name := range []string{"evil.example", ""} {
		_, _, conn := w.connect("registry.example.com:443")
		err := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).HandshakeContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("a handshake for %q: %v", name, err)
		}
		if r := <-w.records; r.Reason != string(coreegress.ReasonServerName) || r.Sent != 0 {
			t.Errorf("recorded %+v", r)
		}
	}
}

// TestAnEndEndsEverything: no connection outlives the watchdog.
func TestAnEndEndsEverything(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	_, _, conn := w.connect("registry.example.com:443")
	w.stop()
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it is open: %v", err)
	}
}

// TestMoreConnectionsWait: of those that are open at once, and of those that are asked for in a second.
func TestMoreConnectionsWait(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(hello))
	started := time.Now() // each request counts, from the first one on
	var open []net.Conn
	for range maxConnections {
		response, body, conn := w.connect("registry.example.com:443")
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", response.Status, body)
		}
		open = append(open, conn)
	}
	next := w.dial()
	if _, err := io.WriteString(next, "CONNECT registry.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := next.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := next.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("one more was answered: %v", err)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	if err := next.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if response, err := http.ReadResponse(bufio.NewReader(next), &http.Request{Method: http.MethodConnect}); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("once there is room: %v, %v", response, err)
	}
	for range burst - maxConnections - 1 + requests {
		if response, _, _ := w.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); response.StatusCode != http.StatusMethodNotAllowed {
			t.Fatal(response.Status)
		}
	}
	if took := time.Since(started); took < 500*time.Millisecond {
		t.Errorf("%d requests beyond the burst took %s", requests, took)
	}
}

// TestSlowAgentsAreCutOff: a request that does not end is not waited for.
func TestSlowAgentsAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	conn := w.dial()
	if _, err := io.WriteString(conn, "CONNECT registry.example.com:443 HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*headerTime)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it is still open")
	}
}
