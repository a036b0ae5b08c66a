// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

const (
	// peerEnv has the program of a gateway that people use, as hack/peer.sh installs it. `make bench` sets it.
	peerEnv = "TIDEWAITER_PEER"
	// callsTime limits the measurements of calls, peerStart the time that the peer takes to listen.
	callsTime, peerStart = 10 * time.Minute, time.Minute
)

// way is a server, what asks it, and what all calls through it took.
type way struct {
	*server
	*road

	took, used time.Duration
}

// calls measures what a call costs the process of a gateway: processor time beside a tuned reverse proxy, and calls in a second beside a
// gateway that people use. The gateway does all that it does for a Feature: templates, budgets, rules for answers, the ledger, TLS on
// both sides. The peer does less: it records nothing, has no budgets, and speaks plain HTTP with agents and provider. Providers speak either version
// of HTTP; the peer is asked beside the first.
func calls(t *testing.T, s scale, b *board.Board) {
	callsTo(t, s, b, 1, "", os.Getenv(peerEnv))
	callsTo(t, s, b, 2, "/http2", "")
}

// callsTo a provider that speaks a version of HTTP, which name adds to the rows.
func callsTo(t *testing.T, s scale, b *board.Board, version int, name, program string) {
	agents, number, rounds := 16, 1600, 5
	if !s.full {
		agents, number, rounds = 2, 8, 1
	}
	ctx, cancel := context.WithTimeout(t.Context(), callsTime)
	defer cancel()
	provider := httptest.NewUnstartedServer(&hosted{version: version})
	provider.EnableHTTP2 = version == 2
	provider.StartTLS()
	defer provider.Close()
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 256, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is this machine
	}}
	defer client.CloseIdleConnections()
	ours, end := start(ctx, t, gatewayProgram, provider, "checks")
	defer end()
	proxy, end := start(ctx, t, proxyProgram, provider)
	defer end()
	login := http.Header{"Authorization": {"Bearer shop/login"}} // the token is the name of the Feature
	ways := []*way{{server: ours, road: &road{t: t, client: client, header: login}}, {server: proxy, road: &road{t: t, client: client}}}
	if program != "" {
		plain := httptest.NewServer(&hosted{})
		defer plain.Close()
		peer, end := startPeer(ctx, t, program)
		defer end()
		ways = append(ways, &way{server: peer, road: &road{t: t, client: client, header: http.Header{
			"X-Portkey-Provider": {"anthropic"}, "X-Portkey-Custom-Host": {plain.URL + "/v1"},
		}}})
	}
	body := request(40<<10, 20)
	for _, w := range ways {
		w.load(w.url, body, agents, 4*agents, false) // opens connections
	}
	for range rounds {
		for _, w := range ways {
			before := w.cpu()
			_, _, took := w.load(w.url, body, agents, number, false)
			w.took, w.used = w.took+took, w.used+w.cpu()-before
		}
	}
	all := number * rounds
	of := func(w *way) time.Duration { return w.used / time.Duration(all) }
	b.Ratio(fmt.Sprintf("gateway-cpu-of-a-call/agents=%d%s", agents, name), of(ways[0]), of(ways[1]), board.AtMost(2))
	if len(ways) > 2 {
		b.Add(fmt.Sprintf("gateway-rate-beside-peer/agents=%d", agents), perSecond(all, ways[0].took), perSecond(all, ways[2].took), float64(ways[2].took)/float64(ways[0].took), board.AtLeast(4))
		b.Ratio(fmt.Sprintf("gateway-cpu-beside-peer/agents=%d", agents), of(ways[0]), of(ways[2]), board.Bound{})
	}
}

// startPeer starts a gateway that people use, and waits until it listens. Headers of each request say who the provider is.
func startPeer(ctx context.Context, t *testing.T, program string) (s *server, end func()) {
	t.Helper()
	s = &server{t: t}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	address := l.Addr().String()
	_, port, err := net.SplitHostPort(address)
	s.must(err)
	s.must(l.Close()) // the peer takes the number of a port, and no listener
	s.url = "http://" + address + "/v1/messages"
	s.program = exec.CommandContext(ctx, "node", program, "--port="+port, "--headless")
	s.must(s.program.Start())
	end = func() {
		_ = s.program.Process.Kill()
		_ = s.program.Wait() // which says that it was killed
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return s, end
		}
		if time.Since(began) > peerStart {
			end()
			t.Fatalf("the peer does not listen on %s: %v", address, err)
		}
	}
}
