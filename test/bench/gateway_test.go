// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coreledger "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gateway"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reverseproxy"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// modelPath is what agents ask.
const modelPath = "/anthropic/v1/messages"

// road is the way to a scripted provider: through watchdog and gateway, through the gateway alone, and through as many tuned
// reverse proxies. What is before the gateway speaks TLS with it.
type road struct {
	t *testing.T
	// pod and gateway are where watchdog and gateway serve; two and one are as many reverse proxies in their place.
	pod, gateway, two, one string
	client                 *http.Client
	// header of each request, in addition to what every agent sends.
	header http.Header
	hosted
}

// hosted models are what a provider has.
type hosted struct {
	// delay before an answer.
	delay time.Duration
	// open streams that stay so.
	open atomic.Int64
	// version of HTTP that the provider is asked with; 0 for any.
	version int
}

// ServeHTTP answers as a provider does: an answer of some 2 KiB, or a stream of it. One that is asked for "beta" has all of its
// words, and stays open before its end.
func (h *hosted) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	if h.version > 0 && request.ProtoMajor != h.version {
		http.Error(w, request.Proto, http.StatusHTTPVersionNotSupported)
		return
	}
	time.Sleep(h.delay)
	text := strings.Repeat("An answer of a model. ", 90)
	if request.Header.Get("Accept") != "text/event-stream" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"message","model":"large","content":[{"type":"text","text":"## Summary\n%s"}],"stop_reason":"end_turn","usage":{"input_tokens":10000,"output_tokens":500}}`, text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string) {
		fmt.Fprintf(w, "event: x\ndata: %s\n\n", event)
		_ = http.NewResponseController(w).Flush()
	}
	send(`{"type":"message_start","message":{"model":"large","usage":{"input_tokens":10000}}}`)
	for part := range strings.SplitSeq("## Summary\n. "+text, ". ") {
		send(fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, part))
	}
	if request.URL.Query().Has("beta") {
		h.open.Add(1)
		defer h.open.Add(-1)
		<-request.Context().Done()
		return
	}
	send(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":500}}`)
	send(`{"type":"message_stop"}`)
}

// everyone may ask.
type everyone struct{ caller modelserver.Caller }

// Authorize implements models.Authorizer.
func (e everyone) Authorize(context.Context, string, modelserver.Claim) (modelserver.Caller, error) {
	return e.caller, nil
}

// unkept is a ledger that is off: every call may be made, and none is recorded.
type unkept struct{}

// Settle implements models.Ledger.
func (unkept) Settle(context.Context, string, coreledger.Interaction) error { return nil }

// Fold implements models.Ledger.
func (unkept) Fold(context.Context, coreledger.Interaction) {}

// Reserve implements models.Ledger.
func (unkept) Reserve(context.Context, coreledger.Reservation, []coreledger.Budget) error { return nil }

// Usage implements models.Ledger.
func (unkept) Usage(context.Context, coreledger.Scope, string) (coreledger.Usage, error) {
	return coreledger.Usage{}, nil
}

// Taken implements models.Ledger.
func (unkept) Taken(context.Context, coreledger.Budget) (used, reserved coreledger.Amount, err error) {
	return used, reserved, nil
}

// setting says what a gateway does beside passing calls on, and what is promised of that.
type setting struct {
	name   string
	caller modelserver.Caller
	// unkept calls are recorded nowhere. No configuration says so: it shows what the ledger costs.
	unkept bool
	// p50, p99 and rate are ratios to the baseline; first is how much later the first byte of a stream comes, in milliseconds.
	p50, p99, rate, first board.Bound
}

// off: no templates, rules for answers, budgets or ledger. What is left cannot be off: the caller is asked for, the request is read
// and digested and gets the name of the backend's model, and tokens of the answer are counted.
func off() setting { return setting{name: "all=off", caller: gateway.Bare("shop/login"), unkept: true} }

// unchecked: templates, budgets of every scope, and the ledger.
func unchecked() setting {
	return setting{name: "checks=off", caller: gateway.Rich("shop/login"), p50: board.AtMost(1.05), p99: board.AtMost(1.2), rate: board.AtLeast(0.45), first: board.AtMost(1)}
}

// checked is all of it. Streams are held until they are checked.
func checked() setting {
	s := unchecked()
	s.name, s.first, s.caller = "checks=on", board.Bound{}, gateway.Checked("shop/login")
	return s
}

// ledger of a setting, in a directory.
func (r *road) ledger(s setting, dir string) modelserver.Ledger {
	if s.unkept {
		return unkept{}
	}
	kept, err := gateway.Ledger(r.t.Context(), dir)
	r.must(err)
	r.t.Cleanup(func() { _ = kept.Close() })
	return kept
}

func newRoad(t *testing.T, s setting) *road {
	r := &road{t: t, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is this process
	}}}
	provider := httptest.NewTLSServer(&r.hosted)
	t.Cleanup(provider.Close)
	table, err := gateway.Table(provider.URL, string(certificate(provider)))
	r.must(err)
	dir := t.TempDir()
	limits := modelserver.DefaultLimits
	limits.PerFeature, limits.Total, limits.Memory = 4096, 4096, 4<<30
	server := httptest.NewTLSServer(modelserver.New(modelserver.Options{
		Authorizer: everyone{s.caller}, Table: func() *modelserver.Table { return table }, Ledger: r.ledger(s, dir), Now: time.Now, Logger: errorsOf(t), Limits: limits,
	}))
	t.Cleanup(server.Close)

	r.pod, r.gateway = watchdogOf(t, server, nil)+modelPath, server.URL+modelPath
	one := httptest.NewTLSServer(r.tuned(provider, "/anthropic"))
	t.Cleanup(one.Close)
	two := httptest.NewServer(r.tuned(one, ""))
	t.Cleanup(two.Close)
	r.two, r.one = two.URL+modelPath, one.URL+modelPath
	return r
}

// errorsOf is a log of what must not be.
func errorsOf(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

// watchdogOf a gateway: the model proxy that an agent asks, with an observer or with nil. It gives its URL.
func watchdogOf(t *testing.T, gateway *httptest.Server, observer modelproxy.Observer) string {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"token": []byte("token"), "ca": certificate(gateway)} {
		must(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	proxy, err := modelproxy.New(modelproxy.Options{
		Gateway: gateway.URL, Name: "example.com", Token: filepath.Join(dir, "token"), CA: filepath.Join(dir, "ca"), Task: func() string { return "form" },
		Observer: observer, Log: errorsOf(t),
	})
	must(err)
	l, err := modelproxy.Listen("127.0.0.1:0")
	must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- proxy.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return modelproxy.URL(l)
}

// tuned reverse proxy.
func (r *road) tuned(next *httptest.Server, prefix string) http.Handler {
	handler, err := reverseproxy.New(next.URL, prefix, certificate(next))
	r.must(err)
	return handler
}

// certificate of a server, as PEM.
func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func (r *road) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// request of so many bytes, with a conversation of so many turns.
func request(size, turns int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"any","max_tokens":1000,"system":"You write code.","tools":[{"name":"Bash"}],"messages":[`)
	for i := range turns {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":[{"type":"text","text":"%s"}]}`, strings.Repeat("word ", size/turns/5-12))
	}
	b.WriteString("]}")
	return b.Bytes()
}

// ask once; the times until the first byte of the answer and until its end.
func (r *road) ask(to string, body []byte, streamed bool) (first, whole time.Duration) {
	began := time.Now()
	ask, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, to, bytes.NewReader(body))
	r.must(err)
	ask.Header.Set("Content-Type", "application/json")
	ask.Header.Set("Authorization", "Bearer token")
	if streamed {
		ask.Header.Set("Accept", "text/event-stream")
	}
	maps.Copy(ask.Header, r.header)
	answer, err := r.client.Do(ask)
	r.must(err)
	defer answer.Body.Close()
	one := make([]byte, 1)
	if _, err = io.ReadFull(answer.Body, one); err != nil {
		r.t.Fatalf("%s answers %d: %v", to, answer.StatusCode, err)
	}
	first = time.Since(began)
	rest, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(rest, []byte("end_turn")) {
		r.t.Fatalf("%s answers %d: %s%s, %v", to, answer.StatusCode, one, rest, err)
	}
	return first, time.Since(began)
}

// load asks from several agents at once, so often in all, and gives the times of all answers and how long it took.
func (r *road) load(to string, body []byte, agents, calls int, streamed bool) (first, whole []time.Duration, took time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for range agents {
		group.Go(func() {
			for range calls / agents {
				f, w := r.ask(to, body, streamed)
				mu.Lock()
				first, whole = append(first, f), append(whole, w)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return first, whole, time.Since(began)
}

// gateways measures what the gateway adds to a call, and what watchdog and gateway do, with everything off and on, beside reverse
// proxies that do nothing else. Rounds of both take turns.
func gateways(t *testing.T, s scale, b *board.Board) {
	for _, set := range []setting{off(), unchecked(), checked()} {
		r := newRoad(t, set)
		r.compare(s, b, "gateway", set, r.gateway, r.one)
		r.compare(s, b, "road", set, r.pod, r.two)
	}
	r := newRoad(t, unchecked())
	long(r, s, b)
	open(r, s, b)
	streams(t, s, b)
}

// timing of calls: until their end with a delay of the provider, until the first byte of a stream, from one agent and from all at
// once, and of all without a delay.
type timing struct {
	whole, first, busy []time.Duration
	took               time.Duration
}

// compare a way with another one.
func (r *road) compare(s scale, b *board.Board, what string, set setting, ours, theirs string) {
	name := set.name
	agents, calls, rounds := 16, 800, 5
	if !s.full {
		agents, calls, rounds = 2, 8, 1
	}
	body := request(40<<10, 20)
	r.load(ours, body, agents, agents, false) // connections
	r.load(theirs, body, agents, agents, false)
	var of, beside timing
	for range rounds {
		for to, m := range map[string]*timing{ours: &of, theirs: &beside} {
			r.delay = 20 * time.Millisecond
			_, whole, _ := r.load(to, body, agents, calls, false)
			busy, _, _ := r.load(to, body, agents, calls/4, true)
			first, _, _ := r.load(to, body, 1, max(calls/16, 1), true)
			r.delay = 0
			_, _, took := r.load(to, body, agents, calls, false)
			m.whole, m.first, m.busy, m.took = append(m.whole, whole...), append(m.first, first...), append(m.busy, busy...), m.took+took
		}
	}
	b.Ratio(what+"-p50/"+name+"/delay=20ms", board.Quantile(of.whole, 0.5), board.Quantile(beside.whole, 0.5), set.p50)
	b.Ratio(what+"-p99/"+name+"/delay=20ms", board.Quantile(of.whole, 0.99), board.Quantile(beside.whole, 0.99), set.p99)
	b.Add(what+"-rate/"+name, perSecond(calls*rounds, of.took), perSecond(calls*rounds, beside.took), float64(beside.took)/float64(of.took), set.rate)
	b.Later(what+"-first-byte-later/agents=1/"+name, board.Median(of.first), board.Median(beside.first), set.first)
	b.Later(what+"-first-byte-later/agents=16/"+name, board.Median(of.busy), board.Median(beside.busy), board.Bound{}) // which is what the processors have time for: every event passes two processes more
}

func perSecond(n int, took time.Duration) string {
	return board.Number(float64(n)/took.Seconds()) + "/s"
}

// long compares turn 200 of a session, with all that was said before, with its turn 2.
func long(r *road, s scale, b *board.Board) {
	runs := 200
	if !s.full {
		runs = 3
	}
	second, late := request(2<<10, 2), request(200<<10, 200)
	var a, z []time.Duration
	for range runs {
		_, w := r.ask(r.pod, second, false)
		a = append(a, w)
		_, w = r.ask(r.pod, late, false)
		z = append(z, w)
	}
	b.Ratio("gateway-turn/200-vs-2", board.Median(z), board.Median(a), board.Bound{})
}

// heap of this process in MiB, without what nobody refers to.
func heap() float64 {
	runtime.GC()
	runtime.GC() // a second one frees what pools have kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse+m.StackInuse) / (1 << 20)
}

// open is what memory a thousand streams take that are open, in gateway, watchdog, provider and agent together: all of them are
// this process.
func open(r *road, s scale, b *board.Board) {
	streams := 50 // a watchdog serves so many connections at once
	if !s.full {
		streams = 3
	}
	body := request(40<<10, 20)
	before := heap()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	for range streams {
		ask, err := http.NewRequestWithContext(ctx, http.MethodPost, r.pod+"?beta=true", bytes.NewReader(body))
		r.must(err)
		ask.Header.Set("Accept", "text/event-stream")
		answer, err := r.client.Do(ask)
		r.must(err)
		defer answer.Body.Close()
		_, err = io.ReadFull(answer.Body, make([]byte, 2000))
		r.must(err)
	}
	b.Figure("gateway-memory-of-a-stream/open="+short(streams), (heap()-before)*1024/float64(streams), "KiB", board.Bound{})
}
