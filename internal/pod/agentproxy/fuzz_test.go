// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package agentproxy

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/time/rate"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/testkit/script"
)

// FuzzRequest: whatever an agent sends and the gateway answers, the gateway is asked for a host and port in their one spelling,
// for an agent, once on each connection; and the agent is answered in HTTP that has no header of anybody else.
func FuzzRequest(f *testing.F) {
	const token = "the.pods.token"
	var answer []byte
	var gateways []*script.Conn
	local, err := newLocal(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	p := &proxy{
		local: local, log: slog.New(slog.DiscardHandler), token: func() (string, error) { return token, nil }, pace: rate.NewLimiter(rate.Inf, 1),
		dial: func(context.Context) (net.Conn, error) {
			gateway := script.New(answer)
			gateways = append(gateways, gateway)
			return gateway, nil
		},
	}
	listener := make(script.Listener)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = p.serve(ctx, listener) }()
	f.Cleanup(func() {
		cancel()
		close(listener)
	})
	connect := "CONNECT registry.example.com:443 HTTP/1.1\r\nHost: registry.example.com:443\r\n"
	const yes, no = "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.1 403 Forbidden\r\nTidewaiter-Reason: HostNotAllowed\r\n\r\nno policy lists it\n"
	for _, request := range []string{
		connect + "\r\n", connect + "Proxy-Authorization: Basic " + basic("tidewaiter", token) + "\r\n\r\n", connect + "Content-Length: 3\r\n\r\nabc", connect + "\r\n" + connect + "\r\n",
		"GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\n\r\n", "CONNECT [::1]:443 HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:443@b:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:443 HTTP/1.0\r\n\r\n",
	} {
		for _, answer := range []string{yes, yes + "bytes of the host", no, "HTTP/1.1 407 Who are you\r\n\r\n", "HTTP/1.1 503 Later\r\nRetry-After: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nlat\r\n", "", "SSH-2.0"} {
			f.Add([]byte(request), []byte(answer))
		}
	}
	f.Fuzz(func(t *testing.T, request, says []byte) {
		answer, gateways = says, nil
		agent := script.New(request)
		listener <- agent
		<-agent.Closed
		if string(request) == connect+"\r\n" && len(gateways) != 1 {
			t.Fatal("a good request does not come to the gateway")
		}
		for _, gateway := range gateways {
			askedWell(t, gateway.Heard(), token, says)
		}
		heard := agent.Heard()
		if len(heard) == 0 {
			return
		}
		response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(heard)), &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Fatalf("the agent cannot read %q: %v", heard, err)
		}
		if len(gateways) == 0 && response.StatusCode == http.StatusOK {
			t.Fatalf("connected to nobody: %q", heard)
		}
		for name := range response.Header {
			switch name {
			case "Allow", "Connection", "Content-Length", "Content-Type", "Date", "Retry-After", "Tidewaiter-Reason", "X-Content-Type-Options":
			default:
				t.Fatalf("the agent is sent the header %s: %q", name, heard)
			}
		}
		if strings.Contains(string(heard), token) && !bytes.Contains(says, []byte(token)) && !bytes.Contains(request, []byte(token)) {
			t.Fatalf("the agent is sent the token: %q", heard)
		}
	})
}

// askedWell fails the test if the gateway was asked for anything but one connection, or was sent more without having said yes.
func askedWell(t *testing.T, heard []byte, token string, says []byte) {
	t.Helper()
	head, rest, _ := strings.Cut(string(heard), "\r\n\r\n")
	line, _, _ := strings.Cut(head, "\r\n")
	authority := strings.TrimSuffix(strings.TrimPrefix(line, "CONNECT "), " HTTP/1.1")
	target, err := egress.ParseTarget(authority)
	if err != nil || target.String() != authority {
		t.Fatalf("the gateway is asked for %q: %v", heard, err)
	}
	want := "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\nUser-Agent: tidewaiter-watchdog\r\nProxy-Authorization: Basic " + basic("tidewaiter-agent", token)
	if head != want {
		t.Fatalf("the gateway is asked %q, want %q", head, want)
	}
	if yes := bytes.HasPrefix(says, []byte("HTTP/")) && bytes.Contains(says, []byte(" 200")); rest != "" && !yes {
		t.Fatalf("the gateway has said %q, and is sent %q", says, rest)
	}
}
