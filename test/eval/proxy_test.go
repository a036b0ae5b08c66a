// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
)

// gateway stands for the way from the watchdogs of all runs to their models. Each run has a path of its own there.
type gateway struct {
	server    *httptest.Server
	token, ca string

	mu   sync.Mutex
	runs map[string]*proxied // that are not over
	made int
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{token: filepath.Join(dir, "token"), ca: filepath.Join(dir, "ca.crt"), runs: map[string]*proxied{}}
	g.server = httptest.NewUnstartedServer(g)
	g.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // watchdogs end while they ask what was used
	g.server.StartTLS()
	t.Cleanup(g.server.Close)
	for path, text := range map[string][]byte{g.token: []byte("token"), g.ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// ServeHTTP hands a request to its run, and answers what the run says.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	g.mu.Lock()
	p := g.runs[name]
	g.mu.Unlock()
	if p == nil || "/"+path != p.path { // watchdogs ask for what was used, too
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	select {
	case p.arrived <- body:
	case <-r.Context().Done():
		return
	}
	for begun, more := false, true; more; begun = true {
		select {
		case answer := <-p.replies:
			if !begun {
				answer.head(w, p.window)
			}
			answer.write(w)
			more = answer.more
		case <-r.Context().Done():
			return
		}
	}
}

// head of an answer.
func (r reply) head(w http.ResponseWriter, window int64) {
	w.Header().Set("Content-Type", r.kind)
	w.Header().Set(protocol.WindowHeader, strconv.FormatInt(window, 10))
	w.WriteHeader(r.status)
}

// write an answer or a part of it, in two pieces, of which the first ends anywhere.
func (r reply) write(w http.ResponseWriter) {
	half := len(r.body) / 2
	_, _ = w.Write(r.body[:half])
	_ = http.NewResponseController(w).Flush()
	_, _ = w.Write(r.body[half:])
	if r.half || r.more {
		_ = http.NewResponseController(w).Flush()
	}
	if r.half {
		panic(http.ErrAbortHandler)
	}
}

// proxied is the pipeline as it runs in a watchdog: the agent's client asks the proxy, the proxy has the supervisor hear the conversation, and the
// gateway gives the provider's answers.
type proxied struct {
	*supervisor

	path   string
	window int64
	// arrived are the requests that have come to the gateway, and replies what it answers to them.
	arrived chan []byte
	replies chan reply
	// answered is what the client has got.
	answered chan answer
	// sent is what the gateway has given of the answer so far, and received how much of it the client has.
	sent     []byte
	received *received
	client   *http.Client
	url      string
	// told has the notes of each thread.
	told  map[int][]string
	close func()
}

// received counts the bytes that a client has of an answer.
type received struct {
	mu    sync.Mutex
	grown sync.Cond
	size  int
}

func newReceived() *received {
	r := &received{}
	r.grown.L = &r.mu
	return r
}

// Write implements io.Writer.
func (r *received) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size += len(data)
	r.grown.Broadcast()
	return len(data), nil
}

// reach waits until so many bytes have come.
func (r *received) reach(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.size < size {
		r.grown.Wait()
	}
}

// answer as the client gets it.
type answer struct {
	status int
	body   []byte
	err    error
}

// run begins a watchdog for a run.
func (g *gateway) run(under configuration, c client, window int64) *proxied {
	p := &proxied{
		supervisor: newSupervisor(under, c), window: cmp.Or(window, defaultWindow), arrived: make(chan []byte), replies: make(chan reply),
		answered: make(chan answer, 1), client: &http.Client{Transport: &http.Transport{DisableCompression: true}}, told: map[int][]string{},
	}
	d := c.wire()
	for _, e := range d.Endpoints {
		if e.Kind == dialect.Generate && !e.Side && p.path == "" {
			p.path = d.Prefix + e.Path
		}
	}
	g.mu.Lock()
	g.made++
	name := strconv.Itoa(g.made)
	g.runs[name] = p
	g.mu.Unlock()
	proxy, err := modelproxy.New(modelproxy.Options{
		Gateway: g.server.URL + "/" + name, Name: "example.com", Token: g.token, CA: g.ca, // the certificate of httptest names example.com
		Task: func() string { return "form" }, Observer: p.supervisor, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	l, err := modelproxy.Listen("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p.url = modelproxy.URL(l) + p.path
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- proxy.Serve(ctx, l) }()
	p.close = func() {
		cancel()
		if err := <-done; err != nil {
			panic(err)
		}
		p.client.CloseIdleConnections()
		g.mu.Lock()
		delete(g.runs, name)
		g.mu.Unlock()
	}
	return p
}

// Request implements Pipeline.
func (p *proxied) Request(body []byte, now time.Time) (thread int, told []string) {
	p.set(now)
	p.sent, p.received = nil, newReceived()
	go func(received *received) {
		var got answer
		response, err := p.client.Post(p.url, "application/json", bytes.NewReader(body))
		if got.err = err; err == nil {
			got.status = response.StatusCode
			got.body, got.err = io.ReadAll(io.TeeReader(response.Body, received))
			_ = response.Body.Close()
		}
		p.answered <- got
	}(p.received)
	var sent []byte
	select {
	case sent = <-p.arrived:
	case got := <-p.answered:
		panic(fmt.Sprintf("the gateway was not asked: %d %s %v", got.status, got.body, got.err))
	}
	thread = p.thread()
	all := notes(sent)
	for _, note := range all {
		if !slices.Contains(p.told[thread], note) {
			told = append(told, note)
		}
	}
	p.told[thread] = all
	return thread, told
}

// Answer implements Pipeline. What is answered passes by as it is.
func (p *proxied) Answer(r reply, now time.Time) {
	p.set(now)
	p.sent = append(p.sent, r.body...)
	p.replies <- r
	if r.more {
		p.received.reach(len(p.sent))
		return
	}
	if got := <-p.answered; got.status != r.status || !bytes.Equal(got.body, p.sent) || (got.err != nil) != r.half {
		panic(fmt.Sprintf("the client got %d %q %v, want %d %q", got.status, got.body, got.err, r.status, p.sent))
	}
}

// Signals implements Pipeline.
func (p *proxied) Signals(s Signals, now time.Time) {
	p.set(now)
	if s.Changed {
		p.Moved()
	}
	if s.Pulse {
		p.Captured(s.Tree, s.Verdict)
		p.Idle(s.Idle)
		p.Pulse(protocol.RunnerPulse{CPU: s.CPU, Processes: s.Processes, Written: s.Output})
	}
}

// Findings implements Pipeline.
func (p *proxied) Findings(now time.Time) []Finding {
	p.set(now)
	c := p.Conversation()
	if c == nil {
		return nil
	}
	var list []Finding
	for _, a := range c.Anomalies {
		list = append(list, Finding{Kind: a.Type, Evidence: a.Message})
	}
	return list
}

// Close implements Pipeline.
func (p *proxied) Close() { p.close() }
