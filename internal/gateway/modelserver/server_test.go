// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
	"github.com/tidewaiter/tidewaiter/internal/testkit/upstream"
)

const providerKey = "the-key-of-the-provider"

// world is a gateway's server in front of a backend.
type world struct {
	t       *testing.T
	server  *httptest.Server
	models  *modelserver.Server
	backend *upstream.Server

	// answers keep to these rules; the callers' runtimes make side calls.
	answers   answers.Rules
	sideCalls bool
	// refs are the models of the caller "documented".
	refs []policy.ModelRef
	// silence that backends may keep.
	silence time.Duration
	// rate of calls that Features have; those that are not in it have none.
	rate map[string]coremodels.Rate

	skipped atomic.Int64

	mu      sync.Mutex
	records []modelserver.Outcome
	avoided []string
	turns   []ledger.Interaction
	refused []ledger.Interaction
	// reserving and settling are the errors of the ledger.
	reserving, settling error
	reserved            map[string]bool
	// budgets of every caller, what each has used and what is reserved, and what calls wanted.
	budgets           []ledger.Budget
	used, reservedNow ledger.Amount
	// own is what Tidewaiter itself has used of it, and costAlert the share above which that is worth a warning, in percent.
	own       ledger.Amount
	costAlert int
	wanted    []ledger.Amount
}

// Reserve implements models.Ledger.
func (w *world) Reserve(_ context.Context, r ledger.Reservation, budgets []ledger.Budget) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserved[r.ID] = true
	w.wanted = append(w.wanted, r.Wanted)
	for _, b := range budgets {
		if err := ledger.Over(b, w.used, w.reservedNow, r.Wanted); err != nil {
			return err
		}
	}
	return w.reserving
}

// Fold implements models.Ledger.
func (w *world) Fold(_ context.Context, i ledger.Interaction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = append(w.refused, i)
}

// Usage implements models.Ledger.
func (w *world) Usage(_ context.Context, scope ledger.Scope, key string) (ledger.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if scope == ledger.Supervisor && key == "uid-of-login" {
		return ledger.Usage{Amount: w.own}, w.reserving
	}
	if scope != ledger.Feature || key != "uid-of-login" {
		w.t.Errorf("the usage of %s %s was asked for", scope, key)
	}
	return ledger.Usage{Amount: w.used, Cached: 3, Calls: 2}, w.reserving
}

// Taken implements models.Ledger.
func (w *world) Taken(context.Context, ledger.Budget) (used, reserved ledger.Amount, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used, w.reservedNow, nil
}

// Settle implements models.Ledger.
func (w *world) Settle(_ context.Context, reservation string, i ledger.Interaction) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i.Raw = slices.Clone(i.Raw)
	w.turns = append(w.turns, i)
	if !w.reserved[reservation] || reservation != i.ID {
		w.t.Errorf("the call %s was settled with the reservation %s, which nobody has made", i.ID, reservation)
	}
	return w.settling
}

// now is the time, moved on by what a test has skipped.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.skipped.Load())) }

// priced is a model with a price of each kind.
func priced() coremodels.Model {
	return coremodels.Model{Name: "priced", MaxOutput: 8000, Prices: coremodels.Prices{
		Rates:  coremodels.Rates{Input: "3", CachedInput: "0.30", CacheWrite: "3.75", CacheWriteHour: "6", Output: "15"},
		Search: "0.01", CodeExecution: "0.05", LongContext: []coremodels.LongRates{{Above: 200_000, Rates: coremodels.Rates{Input: "6", CachedInput: "0.60", Output: "22.50"}}},
	}}
}

// newWorld has a backend with the models large and small.
func newWorld(t *testing.T, backend http.Handler, limits modelserver.Limits) *world {
	t.Helper()
	return newWorldBehind(t, backend, limits, backends.Options{})
}

// newWorldBehind reaches its backend in another way.
func newWorldBehind(t *testing.T, backend http.Handler, limits modelserver.Limits, reach backends.Options) *world {
	t.Helper()
	w := &world{t: t, backend: upstream.Start(t, backend), silence: time.Minute, reserved: map[string]bool{}}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.backend.Certificate().Raw})
	table, err := modelserver.NewTable(coremodels.Config{Backends: []coremodels.Backend{{
		Name: "main", Dialects: []string{"anthropic", "openai-responses", "openai-chat", "gemini"}, BaseURL: w.backend.URL + "/", Key: "main", CA: string(ca), StreamUsage: new(true),
		Headers: map[string]string{"X-Team": "shop"}, Models: []coremodels.Model{{Name: "large", Prices: coremodels.Prices{Rates: coremodels.Rates{Input: "3", Output: "15.00", CachedInput: "0.3"}}}, {Name: "small"}, priced()},
	}, {
		Name: "keyless", Dialects: []string{"anthropic"}, BaseURL: w.backend.URL, Key: "missing", CA: string(ca), Models: []coremodels.Model{{Name: "large"}},
	}, {
		Name: "first", Dialects: []string{"anthropic"}, BaseURL: w.backend.URL + "/first", CA: string(ca), Models: []coremodels.Model{{Name: "small"}},
		Fallbacks: []string{"keyless", "main"}, Concurrency: 1,
	}, {
		Name: "alone", Dialects: []string{"anthropic"}, BaseURL: w.backend.URL + "/first", CA: string(ca), Models: []coremodels.Model{{Name: "small"}}, Concurrency: 1,
	}}}, map[string]string{"main": providerKey}, reach)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	w.models = modelserver.New(modelserver.Options{
		Authorizer: w, Ledger: w, Table: func() *modelserver.Table { return table }, Now: w.now, Logger: slog.New(slog.DiscardHandler),
		Limits: limits, Observe: w.observe, Avoided: func(backend string, avoided bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.avoided = append(w.avoided, fmt.Sprint(backend, " ", avoided))
		},
	})
	w.server = httptest.NewServer(w.models)
	t.Cleanup(w.server.Close)
	return w
}

func quick() modelserver.Limits {
	return modelserver.Limits{Total: 8, PerFeature: 2, Memory: 200 << 20, Pause: time.Millisecond, Alive: 5 * time.Millisecond}
}

// roomy limits are for tests that make many calls, one after the other: the slot of a call is free a moment after its answer has ended.
func roomy() modelserver.Limits {
	limits := quick()
	limits.PerFeature = limits.Total
	return limits
}

func (w *world) observe(r modelserver.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, r)
}

// last is what was observed of the last call, once there are n.
func (w *world) last(n int) modelserver.Outcome {
	w.t.Helper()
	for range 1000 {
		w.mu.Lock()
		if len(w.records) >= n {
			defer w.mu.Unlock()
			return w.records[n-1]
		}
		w.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("%d calls were not observed", n)
	return modelserver.Outcome{}
}

// Authorize implements models.Authorizer: the token names the Feature.
func (w *world) Authorize(ctx context.Context, token string, claim modelserver.Claim) (modelserver.Caller, error) {
	task := claim.Task
	c := modelserver.Caller{Feature: "shop/" + token, UID: "uid-of-" + token, Attempt: 2, Task: task, Unrecorded: token == "unrecorded", Silence: w.silence, Answers: w.answers, SideCalls: w.sideCalls, Budgets: w.budgets, WarnAtPercent: 80, CostAlertPercent: w.costAlert, Rate: w.rate[token], Role: func(model string) string {
		if strings.Contains(model, "tiny") {
			return policy.RoleSummarizer
		}
		return policy.RolePrimary
	}}
	switch {
	case token == "stranger" || callers.Source(ctx) == "":
		return modelserver.Caller{}, fmt.Errorf("%w: unknown", callers.ErrUnauthenticated)
	case token == "later":
		return modelserver.Caller{}, callers.ErrUnavailable
	case token == "composed":
		c.Before = dialect.Quote(compose.Layers{Global: []string{"Be kind."}, Project: []string{"Task is " + task + "."}}.Prefix())
	case token == "unpinned":
		return c, fmt.Errorf("%w: nobody is there", modelserver.ErrUnrecorded)
	case token == "crowded":
		return c, &coremodels.Refusal{Message: "too many templates"}
	case token == "mapped":
		c.Models = []policy.ModelRef{{Role: "summarizer", Backend: "main", Model: "small"}}
	case token == "keyless":
		c.Models = []policy.ModelRef{{Role: "primary", Backend: "keyless", Model: "large"}}
	case token == "backed":
		c.Models = []policy.ModelRef{{Role: "primary", Backend: "first", Model: "small"}}
	case token == "alone" || token == "beside":
		c.Models = []policy.ModelRef{{Role: "primary", Backend: "alone", Model: "small"}}
	case token == "priced":
		c.Models = []policy.ModelRef{{Role: "primary", Backend: "main", Model: "priced"}}
	case token == "searching":
		c.ProviderTools = []string{"anthropic/web_search"}
		c.Models = []policy.ModelRef{{Role: "primary", Backend: "main", Model: "large", ProviderState: policy.StateAllow}, {Role: "summarizer", Backend: "main", Model: "small"}}
	case token == "researching":
		c.ProviderTools = []string{"anthropic/web_search", "anthropic/code_execution"}
		c.Models = []policy.ModelRef{{Role: "primary", Backend: "main", Model: "priced"}}
	case token == "documented":
		c.Models = w.refs
	case token == "digesting":
		c.ToolResults = policy.ToolResultsDigest
	case token == "keeping":
		c.ToolResults = policy.ToolResultsRedacted
	case token == "lost":
		c.Models = []policy.ModelRef{{Role: "primary", Backend: "gone", Model: "large"}}
	}
	return c, nil
}

// ask sends a request as a Feature, with what an agent and its environment might add.
func (w *world) ask(feature, method, path, body string, header ...string) (*http.Response, string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + feature, "X-Api-Key": "the agent's own", "Cookie": "a=b", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "claude-code-20250219, fast-mode-2026-02-01,context-1m-2025-08-07,mystery-2027-01-01,effort-2025-11-24", "OpenAI-Organization": "org", "OpenAI-Project": "p", "Anthropic-Workspace-Id": "w",
		"X-Forwarded-For": "10.0.0.1", "Tidewaiter-Task": "form", "Content-Type": "application/json", "User-Agent": "agent/1", "X-Stainless-Lang": "js", "Accept-Encoding": "gzip",
	} {
		request.Header.Set(name, value)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := (&http.Transport{DisableCompression: true}).RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		text = append(text, "…"+err.Error()...)
	}
	return answer, string(text)
}

// scripted is a request that plays a script.
func scripted(streamed bool, model, script string) string {
	text, err := json.Marshal("Work.\n```script\n" + script + "\n```\n")
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"max_tokens": 10, "stream":%v,  "model":%q, "tools":[{"name":"Bash"}], "unknown":{"1.0":1.50}, "messages":[{"role":"user","content":%s}]}`, streamed, model, text)
}

const messages = "/anthropic/v1/messages"

// TestForward: the provider gets the agent's own bytes but for the model, the gateway's key, and no header of the way; the
// agent gets the provider's.
func TestForward(t *testing.T) {
	p := provider.New(providerKey)
	w := newWorld(t, p, quick())
	body := scripted(true, "whatever-it-likes", "turns: [{text: I work on it, run: make}]")
	answer, text := w.ask("login", http.MethodPost, messages+"?beta=true&evil=1", body)
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") ||
		!strings.Contains(text, "event: message_stop") || !strings.Contains(text, `"name":"Bash"`) || answer.Header.Get("Request-Id") != "req_scripted" {
		t.Errorf("%d %v\n%s", answer.StatusCode, answer.Header, text)
	}
	got := p.Recorded()[0]
	if want := strings.Replace(body, `"whatever-it-likes"`, `"large"`, 1); got.Body != want {
		t.Errorf("the provider got\n%s\nwant\n%s", got.Body, want)
	}
	if got.Path != "/v1/messages?beta=true" || got.Proto != "HTTP/2.0" {
		t.Errorf("the provider was asked for %s by %s", got.Path, got.Proto)
	}
	want := map[string]string{"X-Api-Key": providerKey, "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "claude-code-20250219,effort-2025-11-24", "Content-Type": "application/json",
		"User-Agent": "agent/1", "X-Stainless-Lang": "js", "X-Team": "shop", "Content-Length": fmt.Sprint(len(got.Body))}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	r := w.last(1)
	if r.Feature != "shop/login" || r.Backend != "main" || r.Model != "large" || r.Reason != "Answered" || r.Status != 200 || r.Tries != 1 ||
		r.Sent != int64(len(body)) || r.Received != int64(len(text)) || r.FirstByte <= 0 || r.Duration < r.FirstByte {
		t.Errorf("record %+v", r)
	}
	// The same without a stream, and as a side call.
	if answer, text = w.ask("mapped", http.MethodPost, messages, scripted(false, "a-tiny-one", "turns: [{text: Done}]")); answer.StatusCode != http.StatusOK || !strings.Contains(text, `"end_turn"`) {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if r := w.last(2); r.Model != "small" {
		t.Errorf("a side call was answered by %s", r.Model)
	}
	if answer, text = w.ask("login", http.MethodPost, messages+"/count_tokens", scripted(false, "large", "")); answer.StatusCode != http.StatusOK || !strings.Contains(text, "input_tokens") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if answer, text = w.ask("login", http.MethodGet, "/anthropic/v1/models", ""); answer.StatusCode != http.StatusOK || !strings.Contains(text, `"id":"large"`) || strings.Contains(text, "small") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if answer, _ = w.ask("login", http.MethodHead, "/anthropic", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("probe: %d", answer.StatusCode)
	}
}

// TestRefusals are in the dialect's own form, name the reason, and reach no provider.
func TestRefusals(t *testing.T) {
	p := provider.New(providerKey)
	w := newWorld(t, p, quick())
	good := scripted(false, "large", "")
	for name, tc := range map[string]struct {
		feature, method, path, body string
		status                      int
		reason, message             string
	}{
		"no token":         {"", "POST", messages, good, 401, "Unauthenticated", "watchdog"},
		"a stranger":       {"stranger", "POST", messages, good, 401, "Unauthenticated", "current attempt"},
		"not known yet":    {"later", "POST", messages, good, 503, "Unavailable", "try again"},
		"no such endpoint": {"login", "POST", "/anthropic/v1/files", good, 404, "UnknownEndpoint", "POST /anthropic/v1/files is not served"},
		"another method":   {"login", "DELETE", messages, "", 404, "UnknownEndpoint", "not served"},
		"not JSON":         {"login", "POST", messages, "model=large", 400, "InvalidRequest", "not JSON"},
		"two models":       {"login", "POST", messages, `{"model":"a","model":"b"}`, 400, "InvalidRequest", "duplicate"},
		"too large":        {"login", "POST", messages, `{"model":"a","x":"` + strings.Repeat("x", dialect.MaxBody) + `"}`, 413, "RequestTooLarge", "more than"},
		"unknown backend":  {"lost", "POST", messages, good, 503, "ModelNotAvailable", `the backend "gone"`},
		"no key":           {"keyless", "POST", messages, good, 503, "KeyNotAccepted", `the entry "missing"`},
		"models of nobody": {"lost", "GET", "/anthropic/v1/models", "", 503, "ModelNotAvailable", "gone"},
	} {
		answer, text := w.ask(tc.feature, tc.method, tc.path, tc.body)
		var e struct {
			Type  string
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Type != "error" || answer.StatusCode != tc.status ||
			answer.Header.Get(protocol.ReasonHeader) != tc.reason || !strings.Contains(e.Error.Message, tc.message) || !strings.HasPrefix(e.Error.Message, "tidewaiter: ") {
			t.Errorf("%s: %d %s %s", name, answer.StatusCode, answer.Header.Get(protocol.ReasonHeader), text)
		}
	}
	// An agent that speaks every dialect goes on in the one of its backend.
	if answer, text := w.ask("keyless", "POST", "/openai/v1/chat/completions", `{"model":"large","messages":[{"role":"user","content":"Hello"}]}`); answer.StatusCode != http.StatusServiceUnavailable ||
		answer.Header.Get(protocol.ReasonHeader) != "ModelNotAvailable" || answer.Header.Get(protocol.DialectsHeader) != "anthropic" {
		t.Errorf("another dialect: %d %v %s", answer.StatusCode, answer.Header, text)
	}
	if n := len(p.Recorded()); n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
	if answer, text := w.ask("login", "GET", "/elsewhere", ""); answer.StatusCode != http.StatusNotFound || !strings.Contains(text, "/anthropic") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	// Who is not known is told nothing of what there is.
	for _, who := range []string{"", "stranger"} {
		for _, path := range []string{"/elsewhere", "/", "/anthropic/v1/nothing", "/anthropic", "/openai/v1/files", "/gemini/v1beta/files"} {
			if answer, text := w.ask(who, "GET", path, ""); answer.StatusCode != http.StatusUnauthorized || answer.Header.Get(protocol.ReasonHeader) != "Unauthenticated" || strings.Contains(text, "served") || strings.Contains(text, "there are") {
				t.Errorf("%q, %s: %d %s", who, path, answer.StatusCode, text)
			}
		}
	}
}

// TestRetries: what may pass is tried again, and what may not is the agent's to see.
func TestRetries(t *testing.T) {
	for name, tc := range map[string]struct {
		script, reason, text  string
		status, tries, events int
	}{
		"overloaded once":     {"turns: [{text: Done, fail: {status: 529}}]", "Answered", "message_stop", 200, 2, 0},
		"limited twice":       {"turns: [{text: Done, fail: {status: 429, times: 2}}]", "Answered", "message_stop", 200, 3, 0},
		"limited all along":   {"turns: [{text: Done, fail: {status: 429, times: 9}}]", "Answered", "rate_limit_error", 429, 3, 0},
		"limited for an hour": {"turns: [{text: Done, fail: {status: 429, times: 9, retryAfter: 3600}}]", "Answered", "rate_limit_error", 429, 1, 0},
		"a bad request":       {"turns: [{text: Done, fail: {status: 400, times: 9}}]", "Answered", "invalid_request_error", 400, 1, 0},
		"a key that is wrong": {"turns: [{text: Done, fail: {status: 401, times: 9}}]", "KeyNotAccepted", "does not accept the gateway's key", 503, 1, 0},
		"cut off":             {"turns: [{text: one two three four, cut: true}]", "AnswerCutOff", "event: error", 200, 1, 1},
	} {
		w := newWorld(t, provider.New(providerKey), quick())
		answer, text := w.ask("login", "POST", messages, scripted(true, "large", tc.script))
		r := w.last(1)
		if answer.StatusCode != tc.status || r.Reason != tc.reason || r.Tries != tc.tries || !strings.Contains(text, tc.text) {
			t.Errorf("%s: %d after %d tries, %s: %s", name, answer.StatusCode, r.Tries, r.Reason, text)
		}
		if tc.reason == "Answered" && tc.status == 429 && answer.Header.Get("Retry-After") == "" && strings.Contains(tc.script, "retryAfter") {
			t.Errorf("%s: Retry-After is lost", name)
		}
	}
}

// TestBackendsThatFail in other ways.
func TestBackendsThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		backend      http.HandlerFunc
		status       int
		reason, text string
	}{
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		}, 502, "BackendRedirects", "baseURL"},
		"silent":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 504, "BackendSilent", "has not answered"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 502, "BackendUnreachable", "cannot reach the backend"},
		"silent in a stream": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, streamStart+"event: half")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 200, "BackendSilent", "event: half\n\nevent: error\n"},
		"silent in an answer": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"half`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 200, "BackendSilent", "…unexpected EOF"},
		"sets cookies": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("Anthropic-Ratelimit-Tokens-Limit", "7")
			fmt.Fprint(w, "{}")
		}, 200, "Answered", "{}"},
	} {
		w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the caller hangs up
			tc.backend(w, r)
		}), quick())
		if tc.reason == "BackendSilent" {
			w.silence = 300 * time.Millisecond // the others answer, however long a busy machine takes
		}
		request := scripted(true, "large", "")
		if tc.reason == "BackendSilent" && tc.status == http.StatusOK { // so that the limit counts from when the answer has begun
			request = strings.Replace(request, "{", `{"thinking":{"type":"adaptive"},`, 1)
		}
		answer, text := w.ask("login", "POST", messages, request)
		if r := w.last(1); answer.StatusCode != tc.status || r.Reason != tc.reason || !strings.Contains(text, tc.text) {
			t.Errorf("%s: %d %s %s", name, answer.StatusCode, r.Reason, text)
		}
		if answer.Header.Get("Set-Cookie") != "" || name == "sets cookies" && answer.Header.Get("Anthropic-Ratelimit-Tokens-Limit") != "7" {
			t.Errorf("%s: headers %v", name, answer.Header)
		}
	}
}

// TestSUP2Composition: what reaches a provider begins with the global templates, then those of the project, then what the
// agent sent, as it sent it; in every dialect, where the tokens of a request are counted too, and whatever the model is.
func TestSUP2Composition(t *testing.T) {
	seen := make(chan []byte, 1)
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- body
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	}), quick())
	const prefix = `<!-- GLOBAL_TEMPLATE_START -->\nBe kind.\n<!-- GLOBAL_TEMPLATE_END -->\n<!-- PROJECT_TEMPLATE_START -->\nTask is form.\n<!-- PROJECT_TEMPLATE_END -->\n<!-- USER_PROMPT_START -->\n`
	for name, tc := range map[string]struct{ path, body, want string }{
		"Anthropic":           {"/anthropic/v1/messages", `{"model":"tiny","max_tokens":1,"messages":[]}`, `{"system":"` + prefix + `","model":"large","max_tokens":1,"messages":[]}`},
		"Anthropic, a system": {"/anthropic/v1/messages", `{"model":"large", "system":[{"type":"text","text":"Code."}]}`, `{"model":"large", "system":[{"type":"text","text":"` + prefix + `"},{"type":"text","text":"Code."}]}`},
		"Anthropic, counted":  {"/anthropic/v1/messages/count_tokens", `{"model":"large","system":"Code."}`, `{"model":"large","system":"` + prefix + `Code."}`},
		"Responses":           {"/openai/v1/responses", `{"store":false,"model":"x","instructions":"Code.","input":[]}`, `{"store":false,"model":"large","instructions":"` + prefix + `Code.","input":[]}`},
		"Chat":                {"/openai/v1/chat/completions", `{"model":"x","messages":[{"role":"system","content":"Code."}]}`, `{"model":"large","messages":[{"role":"system","content":"` + prefix + `Code."}]}`},
	} {
		if answer, text := w.ask("composed", "POST", tc.path, tc.body); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
			continue
		}
		if diff := cmp.Diff(tc.want, string(<-seen)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if answer, text := w.ask("composed", "POST", "/anthropic/v1/messages", `{"model":"large","system":7}`); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, "templates cannot be put into the request") {
		t.Errorf("no place for a text: %d %s", answer.StatusCode, text)
	}
	if answer, text := w.ask("crowded", "POST", "/anthropic/v1/messages", `{"model":"large"}`); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "too many templates") {
		t.Errorf("too many templates: %d %s", answer.StatusCode, text)
	}
}

// TestHangingUp: a backend is not asked on for an agent that is gone.
func TestHangingUp(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: ping\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		close(asked)
		<-r.Context().Done()
		close(gone)
	}), quick())
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL+messages, strings.NewReader(scripted(true, "large", "")))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer login")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	<-asked
	cancel()
	<-gone
	if r := w.last(1); r.Reason != "CallerGone" {
		t.Errorf("reason %s", r.Reason)
	}
}

// TestBounds: a Feature has so many calls at once, and all bodies together so much memory.
func TestBounds(t *testing.T) {
	var under sync.WaitGroup
	under.Add(2)
	release := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		under.Done()
		<-release
		fmt.Fprint(w, "{}")
	}), quick())
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { w.ask("login", "POST", messages, scripted(false, "large", "")) })
	}
	under.Wait()
	if answer, text := w.ask("login", "POST", messages, scripted(false, "large", "")); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get(protocol.ReasonHeader) != "TooManyCalls" {
		t.Errorf("a third call: %d %s", answer.StatusCode, text)
	}
	close(release)
	calls.Wait()
}
