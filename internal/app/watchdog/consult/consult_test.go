// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package consult_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/consult"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/pod/gatewayclient"
	"github.com/tidewaiter/tidewaiter/internal/testkit/upstream"
)

// office is a desk in front of a real gateway, whose backend a test plays.
type office struct {
	t        *testing.T
	desk     *consult.Desk
	patience consult.Patience

	mu sync.Mutex
	// asked are the paths that the backend was asked for, with the bodies, and slept is how long the desk has waited. Out ends its time after three minutes of that.
	asked, bodies []string
	slept         time.Duration
	out           context.CancelFunc
	// models of the policy, and budget of the Feature; zero for none.
	models []policy.ModelRef
	budget ledger.Amount
	// calls in the ledger.
	calls []ledger.Interaction
}

// play is a backend that speaks a dialect, and answers request number n, from 0.
type play func(o *office, dialect string, n int, w http.ResponseWriter)

// dialects in which backends are played.
var dialects = []string{"anthropic", "openai-chat", "openai-responses"}

func newOffice(t *testing.T, dialect string, play play) *office {
	t.Helper()
	o := &office{t: t, patience: consult.Short}
	backend := upstream.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // as far as it comes
		o.mu.Lock()
		n := len(o.asked)
		o.asked, o.bodies = append(o.asked, r.URL.Path), append(o.bodies, string(body))
		o.mu.Unlock()
		play(o, dialect, n, w)
	}))
	ca, prices := certificate(backend.Server), models.Prices{Rates: models.Rates{Input: "3", Output: "15"}}
	table, err := modelserver.NewTable(models.Config{Backends: []models.Backend{
		{Name: "main", Dialects: []string{dialect}, BaseURL: backend.URL, CA: ca, Models: []models.Model{{Name: "large", Prices: prices}}},
		{Name: "first", Dialects: []string{dialect}, BaseURL: backend.URL + "/first", CA: ca, Models: []models.Model{{Name: "large", Prices: prices}}, Fallbacks: []string{"main"}},
	}}, nil, backends.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	server := modelserver.New(modelserver.Options{
		Authorizer: o, Ledger: o, Table: func() *modelserver.Table { return table }, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Limits: modelserver.Limits{Pause: time.Millisecond},
	})
	gateway := httptest.NewTLSServer(server)
	t.Cleanup(gateway.Close)
	dir := t.TempDir()
	link := gatewayclient.Link{Name: "example.com", Token: filepath.Join(dir, "token"), CA: filepath.Join(dir, "ca")}
	if err := errors.Join(os.WriteFile(link.Token, []byte("login"), 0o600), os.WriteFile(link.CA, []byte(certificate(gateway)), 0o600)); err != nil {
		t.Fatal(err)
	}
	o.desk = consult.New(consult.Options{Gateway: gateway.URL, Link: link, Log: slog.New(slog.DiscardHandler)})
	o.desk.SleepBy(func(ctx context.Context, d time.Duration) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.slept += d; o.slept > 3*time.Minute {
			o.out()
		}
		return ctx.Err() == nil
	})
	return o
}

func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// Authorize implements modelserver.Authorizer.
func (o *office) Authorize(_ context.Context, token string, claim modelserver.Claim) (modelserver.Caller, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if token != "login" || claim.Role != policy.RoleSupervisor || claim.Task != "" {
		o.t.Errorf("the desk asks as %q, %+v", token, claim)
	}
	return modelserver.Caller{
		Feature: "shop/login", UID: "u1", Silence: time.Minute, Role: func(string) string { return policy.RoleSupervisor }, Models: o.models,
		Budgets: []ledger.Budget{{Scope: ledger.Feature, Key: "u1", Limit: o.budget, Origins: map[ledger.Resource]string{ledger.Cost: "the Feature"}}},
	}, nil
}

// Reserve implements modelserver.Ledger.
func (o *office) Reserve(_ context.Context, r ledger.Reservation, budgets []ledger.Budget) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range budgets {
		if err := ledger.Over(b, ledger.Amount{}, ledger.Amount{}, r.Wanted); err != nil {
			return err
		}
	}
	return nil
}

// Settle implements modelserver.Ledger.
func (o *office) Settle(_ context.Context, _ string, i ledger.Interaction) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, i)
	return nil
}

// Fold implements modelserver.Ledger.
func (o *office) Fold(context.Context, ledger.Interaction) {}

// Usage implements modelserver.Ledger.
func (o *office) Usage(context.Context, ledger.Scope, string) (ledger.Usage, error) {
	return ledger.Usage{}, nil
}

// Taken implements modelserver.Ledger.
func (o *office) Taken(context.Context, ledger.Budget) (used, reserved ledger.Amount, err error) {
	return ledger.Amount{}, ledger.Amount{}, nil
}

// looks has a reviewer asked, by a client that has three minutes.
func (o *office) looks() (a review.Answer, calls []string, err error) {
	r, _ := review.Find(protocol.SourceCodeStyle, policy.Effective{})
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	o.mu.Lock()
	o.out = cancel
	o.mu.Unlock()
	q := speech.Question{System: "Review.", Text: "Look.", Tool: speech.Tool{Name: "report_findings", Schema: json.RawMessage(review.Schema(r, false))}}
	calls, err = o.desk.Ask(ctx, q, o.patience, func(arguments json.RawMessage) (objection string) {
		a, objection = review.Read(r, false, arguments)
		return objection
	})
	return a, calls, err
}

// paid for calls that the provider has answered.
func (o *office) paid() (tokens int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.calls {
		tokens += c.Tokens.Output
	}
	return tokens
}

const (
	fine    = `report_findings {"summary":"Fine.","findings":[]}`
	finding = `report_findings {"summary":"One.","findings":[{"path":"a.go","line":1,"quote":"x","rule":"r","description":"d","priority":"Low"}]}`
)

// answers always so.
func (s said) answers() play {
	return func(_ *office, dialect string, _ int, w http.ResponseWriter) { streams(w, s.events(dialect)) }
}

// fails always with a status and a body.
func fails(status int, kind, body string, header ...string) play {
	return func(_ *office, _ string, _ int, w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		if len(header) > 0 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestAnswersThatCount: each is asked and paid for once, however the connection ends and whatever the provider says of tokens.
func TestAnswersThatCount(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		play  play
		asked int
	}{
		"plain":                     {said{calls: []string{fine}}.answers(), 1},
		"with words before it":      {said{text: "I look.", calls: []string{fine}}.answers(), 1},
		"half characters":           {said{calls: []string{`report_findings {"summary":"Fine.\ud800\u0000\u202e","findings":[]}`}}.answers(), 1},
		"a whole number as 1.0":     {said{calls: []string{strings.Replace(finding, `"line":1`, `"line":1.0`, 1)}}.answers(), 1},
		"null for what is left out": {said{calls: []string{strings.Replace(finding, `"line":1`, `"rationale":null,"line":1`, 1)}}.answers(), 1},
		"a negative usage":          {said{calls: []string{fine}, usage: `{"input_tokens":-5,"output_tokens":-7,"prompt_tokens":-5,"completion_tokens":-7,"total_tokens":-12}`}.answers(), 1},
		"no usage":                  {said{calls: []string{fine}, usage: "null"}.answers(), 1},
		"the connection breaks behind it": {func(_ *office, dialect string, _ int, w http.ResponseWriter) {
			streams(w, said{calls: []string{fine}}.events(dialect))
			panic(http.ErrAbortHandler)
		}, 1},
		"the connection breaks in the first": {func(_ *office, dialect string, n int, w http.ResponseWriter) {
			streams(w, said{calls: []string{fine}, open: n == 0}.events(dialect))
			if n == 0 {
				panic(http.ErrAbortHandler)
			}
		}, 2},
		"the server goes away between two tries": {func(_ *office, dialect string, n int, w http.ResponseWriter) {
			w.Header().Set("Connection", "close") // which is GOAWAY in HTTP/2
			streams(w, said{calls: []string{[]string{"report_findings {}", fine}[n]}}.events(dialect))
		}, 2},
		"an objection helps": {func(_ *office, dialect string, n int, w http.ResponseWriter) {
			streams(w, said{calls: []string{[]string{"report_findings {}", fine}[n]}}.events(dialect))
		}, 2},
	} {
		for _, d := range dialects {
			t.Run(name+"/"+d, func(t *testing.T) {
				t.Parallel()
				o := newOffice(t, d, tc.play)
				a, calls, err := o.looks()
				if err != nil || a.Summary == "" || len(calls) == 0 || calls[len(calls)-1] == "" {
					t.Fatalf("%+v, calls %q: %v", a, calls, err)
				}
				if o.mu.Lock(); len(o.asked) != tc.asked || len(o.calls) != tc.asked {
					t.Errorf("asked %d times, %d calls in the ledger, want %d", len(o.asked), len(o.calls), tc.asked)
				}
				if o.mu.Unlock(); o.paid() <= 0 || o.paid() > int64(20*tc.asked) {
					t.Errorf("%d tokens are paid for", o.paid())
				}
			})
		}
	}
}

// TestAnswersThatDoNotCount: the model hears why once. Then the error says it to users.
func TestAnswersThatDoNotCount(t *testing.T) {
	t.Parallel()
	with := func(from, to string) said { return said{calls: []string{strings.Replace(finding, from, to, 1)}} }
	for name, tc := range map[string]struct {
		said said
		want string
	}{
		"words":               {said{text: "I like it.", stop: "stop"}, "no call of report_findings"},
		"JSON in a fence":     {said{text: "```json\n{\"summary\":\"Fine.\",\"findings\":[]}\n```"}, "no call of report_findings"},
		"nothing":             {said{}, "no call of report_findings"},
		"a refusal":           {said{stop: "refusal"}, "refused or filtered"},
		"a filter":            {said{text: "I", stop: "content_filter"}, "refused or filtered"},
		"two calls":           {said{calls: []string{fine, fine}}, "There are 2 calls"},
		"another tool":        {said{calls: []string{`bash {"command":"ls"}`}}, "another tool than report_findings"},
		"invalid arguments":   {said{calls: []string{`report_findings {"summary":`}}, "not a JSON object"},
		"null":                {said{calls: []string{"report_findings null"}}, "not a JSON object"},
		"a list":              {said{calls: []string{"report_findings []"}}, "not a JSON object"},
		"too deep":            {said{calls: []string{`report_findings {"summary":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`}}, "not a JSON object"},
		"deep":                {said{calls: []string{`report_findings {"findings":[],"summary":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`}}, `want "string"`},
		"no such number":      {with(`"line":1`, `"line":1e400`), "not JSON"},
		"line 0":              {with(`"line":1`, `"line":0`), "line: minimum"},
		"a negative line":     {with(`"line":1`, `"line":-3`), "line: minimum"},
		"another case":        {with(`"Low"`, `"low"`), "priority: enum"},
		"an unknown member":   {with(`"line":1`, `"line":1,"severity":"high"`), "unexpected additional properties"},
		"names in other case": {with(`"findings"`, `"Findings"`), "unexpected additional properties"},
	} {
		for _, d := range dialects {
			t.Run(name+"/"+d, func(t *testing.T) {
				t.Parallel()
				if d == "openai-responses" && tc.said.stop == "stop" {
					tc.said.stop = ""
				}
				o := newOffice(t, d, tc.said.answers())
				_, calls, err := o.looks()
				if _, is := errors.AsType[*consult.InvalidError](err); !is || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				if len(calls) != 2 || o.paid() != 40 || o.slept != 0 {
					t.Errorf("calls %q, %d tokens, waited %s", calls, o.paid(), o.slept)
				}
			})
		}
	}
	for d, stop := range map[string]string{"anthropic": "max_tokens", "openai-chat": "length", "openai-responses": "max_output_tokens"} {
		o := newOffice(t, d, said{calls: []string{`report_findings {"summary":"It`}, stop: stop}.answers())
		if _, _, err := o.looks(); err == nil || !strings.Contains(err.Error(), "cut off at the limit of its length") {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// TestNoAnswer: the error says to users what the provider or the gateway said last, and nothing of a page. The desk waits at most three minutes, and not at all
// where waiting does not help.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	const text, page = "application/json", "<!DOCTYPE html>\n<html><head><title>502</title></head></html>"
	for name, tc := range map[string]struct {
		play   play
		models []policy.ModelRef
		want   string
		waits  bool
	}{
		"overloaded":            {fails(529, text, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), nil, "529: Overloaded", true},
		"limited":               {fails(429, text, `{"error":{"message":"Slow down."}}`), nil, "429 Too Many Requests: Slow down.", true},
		"limited for a minute":  {fails(429, text, `{"error":{"message":"Slow down."}}`, "Retry-After", "60"), nil, "429 Too Many Requests: Slow down.", true},
		"limited for an hour":   {fails(429, text, `{"error":{"message":"Slow down."}}`, "Retry-After", "3600"), nil, "the model has not answered (try 1): 429 Too Many Requests: Slow down.", false},
		"a page":                {fails(500, "text/html", page), nil, "500 Internal Server Error", true},
		"a page as an answer":   {fails(200, "text/html", page), nil, "the answer broke off", true},
		"an error as an answer": {fails(200, text, `{"type":"error","error":{"type":"invalid_request_error","message":"The account is closed."}}`), nil, "the answer ended with an error: The account is closed.", false},
		"an invalid request":    {fails(400, text, `{"error":{"type":"invalid_request_error","message":"The prompt is too long."}}`), nil, "(try 1): 400 Bad Request: The prompt is too long.", false},
		"no tools":              {fails(400, text, `{"error":{"type":"invalid_request_error","message":"tool_choice is not supported."}}`), nil, "(try 1): 400 Bad Request: tool_choice is not supported.", false},
		"no such model":         {fails(404, text, `{"error":"model large"}`), nil, "(try 1): 404 Not Found: model large", false},
		"a key is refused":      {fails(401, text, `{"error":{"message":"invalid x-api-key"}}`), nil, `(try 1): 503 Service Unavailable: tidewaiter: the backend "main" does not accept`, false},
		"no such backend":       {said{}.answers(), []policy.ModelRef{{Role: policy.RoleSupervisor, Backend: "gone", Model: "large"}}, `(try 1): 503 Service Unavailable: tidewaiter: `, false},
		"no connection":         {func(*office, string, int, http.ResponseWriter) { panic(http.ErrAbortHandler) }, nil, "502 Bad Gateway: tidewaiter: the gateway cannot reach the backend", true},
		"cut off":               {said{calls: []string{fine}, open: true}.answers(), nil, "broke off", true},
	} {
		for _, d := range dialects {
			t.Run(name+"/"+d, func(t *testing.T) {
				t.Parallel()
				o := newOffice(t, d, tc.play)
				o.models = tc.models
				_, calls, err := o.looks()
				if err == nil || !strings.Contains(err.Error(), tc.want) || strings.ContainsAny(err.Error(), "<{") || len(calls) > 0 {
					t.Errorf("calls %q: %v, want %q", calls, err, tc.want)
				}
				if tc.waits != strings.Contains(err.Error(), "the model has not answered in time (") || tc.waits != (o.slept > 0) || errors.Is(err, context.Canceled) != tc.waits {
					t.Errorf("waited %s: %v", o.slept, err)
				}
			})
		}
	}
}

// TestPatience: a planner waits also for users, a reviewer only for providers, and one without patience for nobody.
func TestPatience(t *testing.T) {
	t.Parallel()
	for status, waits := range map[int][]consult.Patience{http.StatusUnauthorized: {consult.Long}, http.StatusServiceUnavailable: {consult.Long, consult.Short}, http.StatusBadRequest: nil} {
		for _, patience := range []consult.Patience{consult.Long, consult.Short, consult.None} {
			o := newOffice(t, "anthropic", fails(status, "application/json", `{}`))
			o.patience = patience
			if _, _, err := o.looks(); err == nil || o.slept > 0 != slices.Contains(waits, patience) {
				t.Errorf("status %d, patience %d: waited %s: %v", status, patience, o.slept, err)
			}
		}
	}
}

// TestABudgetIsUsedUpBetweenTwoTries: the desk does not wait for a user who raises it, and says who can. The first call is known.
func TestABudgetIsUsedUpBetweenTwoTries(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		o := newOffice(t, d, func(o *office, dialect string, _ int, w http.ResponseWriter) {
			o.mu.Lock()
			o.budget = ledger.Amount{Cost: 1}
			o.mu.Unlock()
			streams(w, said{text: "I like it."}.events(dialect))
		})
		_, calls, err := o.looks()
		if err == nil || !strings.Contains(err.Error(), "raise spec.budget.maxCost of the Feature") || len(calls) != 1 || o.slept != 0 || o.paid() != 20 {
			t.Errorf("%s: calls %q, waited %s, %d tokens: %v", d, calls, o.slept, o.paid(), err)
		}
	}
}

// TestAnotherModelAnswers where the first of the role is away.
func TestAnotherModelAnswers(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		o := newOffice(t, d, func(o *office, dialect string, n int, w http.ResponseWriter) {
			o.mu.Lock()
			away := strings.HasPrefix(o.asked[n], "/first")
			o.mu.Unlock()
			if away {
				w.WriteHeader(529)
				return
			}
			streams(w, said{calls: []string{fine}}.events(dialect))
		})
		o.models = []policy.ModelRef{{Role: policy.RoleSupervisor, Backend: "first", Model: "large"}}
		a, calls, err := o.looks()
		if err != nil || a.Summary != "Fine." || len(calls) != 1 || o.paid() != 20 || o.slept != 0 {
			t.Errorf("%s: %+v, calls %q, %d tokens, waited %s: %v", d, a, calls, o.paid(), o.slept, err)
		}
	}
}

// TestAModelThatTakesNoForcedTool: many do not while they think. It is asked without, also in the second try.
func TestAModelThatTakesNoForcedTool(t *testing.T) {
	t.Parallel()
	for d, message := range map[string]string{
		"anthropic":        "Thinking may not be enabled when tool_choice forces tool use.",
		"openai-chat":      "The tool_choice parameter does not support being set to required or object in thinking mode",
		"openai-responses": "Invalid value: 'tool_choice'.",
	} {
		o := newOffice(t, d, func(_ *office, dialect string, n int, w http.ResponseWriter) {
			switch n {
			case 0:
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","message":`+quoted(message)+`}}`)
			case 1:
				streams(w, said{text: "I like it."}.events(dialect))
			default:
				streams(w, said{calls: []string{fine}}.events(dialect))
			}
		})
		a, calls, err := o.looks()
		if err != nil || a.Summary != "Fine." || len(calls) != 2 || o.slept != 0 || o.paid() != 40 {
			t.Errorf("%s: %+v, calls %q, waited %s, %d tokens: %v", d, a, calls, o.slept, o.paid(), err)
		}
		for i, body := range o.bodies {
			if strings.Contains(body, `"tool_choice"`) != (i == 0) || !strings.Contains(body, `"report_findings"`) {
				t.Errorf("%s: question %d: %s", d, i, body)
			}
		}
	}
}

// TestAnAnswerWithoutEnd: a provider that sends very much is asked twice at most, and what cannot be read is not asked and paid for again and again.
func TestAnAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		play play
		want string
	}{
		"a stream": {func(_ *office, dialect string, _ int, w http.ResponseWriter) {
			head, tail, _ := strings.Cut(said{text: strings.Repeat("x", 1<<20)}.events(dialect), "\n\n")
			streams(w, head+"\n\n")
			words, end, _ := strings.Cut(tail, "\n\n")
			for range 2 {
				streams(w, words+"\n\n")
			}
			streams(w, end)
		}, "The answer is too long"},
		"a document": {func(_ *office, _ string, _ int, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			for range 9 {
				_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20))
			}
		}, "more than can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, "anthropic", tc.play)
			if _, _, err := o.looks(); err == nil || !strings.Contains(err.Error(), tc.want) || len(o.asked) > 2 || o.slept != 0 {
				t.Errorf("asked %d times, waited %s: %v", len(o.asked), o.slept, err)
			}
		})
	}
}

// TestAModelThatIsSlow: the time of a review is over, and its call is in the ledger all the same.
func TestAModelThatIsSlow(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		asked, over := make(chan bool, 1), make(chan bool)
		o := newOffice(t, d, func(_ *office, dialect string, _ int, w http.ResponseWriter) {
			streams(w, said{open: true}.events(dialect))
			asked <- true
			<-over
		})
		t.Cleanup(func() { close(over) })
		go func() {
			<-asked
			o.mu.Lock()
			defer o.mu.Unlock()
			o.out()
		}()
		_, _, err := o.looks()
		if err == nil || err.Error() != "the model has not answered in time" {
			t.Errorf("%s: %v", d, err)
		}
		gomega.NewWithT(t).Eventually(func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return len(o.calls) == 1 && o.calls[0].Reason == "CallerGone"
		}, time.Minute, 5*time.Millisecond).Should(gomega.BeTrue(), func() string {
			o.mu.Lock()
			defer o.mu.Unlock()
			return fmt.Sprintf("%d asked, calls in the ledger: %+v", len(o.asked), o.calls)
		})
	}
}
