// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// report asks for two sections and puts a frame around the answer.
var report = answers.Rules{Checks: []answers.Checks{{Sections: []string{"Summary"}}}, Formats: []string{"<<{{OUTPUT}}>>"}, Retries: 2, Fail: true}

// spoken are requests of every dialect that play a script.
func spoken(streamed bool, script string) map[string][2]string {
	text, err := json.Marshal("Work.\n```script\n" + script + "\n```\n")
	if err != nil {
		panic(err)
	}
	method := map[bool]string{true: "streamGenerateContent?alt=sse", false: "generateContent"}[streamed]
	return map[string][2]string{
		"gemini":           {"/gemini/v1beta/models/m:" + method, fmt.Sprintf(`{"tools":[{"functionDeclarations":[{"name":"shell"}]}],"contents":[{"role":"user","parts":[{"text":%s}]}]}`, text)},
		"anthropic":        {"/anthropic/v1/messages", fmt.Sprintf(`{"model":"m","max_tokens":10,"stream":%v,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":%s}]}`, streamed, text)},
		"openai-responses": {"/openai/v1/responses", fmt.Sprintf(`{"model":"m","stream":%v,"tools":[{"type":"function","name":"shell"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}]}`, streamed, text)},
		"openai-chat":      {"/openai/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%v,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"user","content":%s}]}`, streamed, text)},
	}
}

// understood is an answer as a client of the dialect reads it.
func understood(t *testing.T, name, body string, streamed bool) *conversation.Answer {
	t.Helper()
	d, _ := dialect.Find(name)
	in := conversation.NewReader(d.Answer(), streamed)
	in.Write([]byte(body))
	return in.Close()
}

// everyWay does something in every dialect, streamed and not.
func everyWay(t *testing.T, script string, do func(t *testing.T, w *world, p *provider.Server, name, path, body string, streamed bool)) {
	for _, streamed := range []bool{true, false} {
		for name, request := range spoken(streamed, script) {
			t.Run(fmt.Sprintf("%s streamed=%v", name, streamed), func(t *testing.T) {
				p := provider.New(providerKey)
				w := newWorld(t, p, quick())
				w.answers = report
				do(t, w, p, name, request[0], request[1], streamed)
			})
		}
	}
}

// wantEveryDialect names the dialects that a test has not tried.
func wantEveryDialect(t *testing.T, tried map[string]bool) {
	t.Helper()
	for _, d := range dialect.All() {
		if !tried[d.Name] {
			t.Errorf("this test has no request of %s", d.Name)
		}
	}
}

// asked are the requests that a provider has got, once there are n.
func asked(t *testing.T, p *provider.Server, n int) []provider.Recorded {
	t.Helper()
	for range 1000 {
		if all := p.Recorded(); len(all) >= n {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	all := p.Recorded()
	if len(all) != n {
		t.Fatalf("the provider was asked %d times, want %d", len(all), n)
	}
	return all
}

func (w *world) recorded() []ledger.Interaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turns
}

// TestSUP3AnswersAreFormatted: the agent gets what the template makes of an answer, and the ledger has both.
func TestSUP3AnswersAreFormatted(t *testing.T) {
	everyWay(t, `turns: [{text: "## Summary\nAll is well."}]`, func(t *testing.T, w *world, p *provider.Server, name, path, body string, streamed bool) {
		answer, text := w.ask("login", http.MethodPost, path, body)
		a := understood(t, name, text, streamed)
		if answer.StatusCode != http.StatusOK || string(a.Text) != "<<## Summary\nAll is well.>>" || !a.Final() || !a.Counted {
			t.Errorf("%d %+v\n%s", answer.StatusCode, a, text)
		}
		if r := w.last(1); r.Checked != modelserver.CheckedChanged || r.Rejected != 0 {
			t.Errorf("%+v", r)
		}
		asked(t, p, 1)
		turn := w.recorded()[0]
		if raw := understood(t, name, string(turn.Raw), streamed); string(raw.Text) != "## Summary\nAll is well." || string(turn.Formatted) != strings.ReplaceAll(text, ": the answer is checked\n\n", "") || len(turn.Violations) != 0 {
			t.Errorf("raw %q, formatted %q, %v", raw.Text, turn.Formatted, turn.Violations)
		}
	})
}

// TestSUP7BadAnswersAreAskedForAgain: the model is told what is wrong with its answer, and the agent sees the better one alone.
func TestSUP7BadAnswersAreAskedForAgain(t *testing.T) {
	everyWay(t, `turns: [{text: Well.}, {text: "Still \"so\"."}, {text: "## Summary\nBetter."}]`, func(t *testing.T, w *world, p *provider.Server, name, path, body string, streamed bool) {
		_, text := w.ask("login", http.MethodPost, path, body)
		if a := understood(t, name, text, streamed); string(a.Text) != "<<## Summary\nBetter.>>" || strings.Contains(text, "Well.") {
			t.Errorf("%+v\n%s", a, text)
		}
		r := w.last(1)
		if r.Checked != modelserver.CheckedChanged || r.Rejected != 2 || r.Tries != 3 || r.Reason != "Answered" {
			t.Errorf("%+v", r)
		}
		turns := w.recorded()
		if len(turns) != 3 {
			t.Fatalf("%d turns", len(turns))
		}
		var tokens ledger.Tokens
		for i, turn := range turns {
			tokens = tokens.Plus(turn.Tokens)
			if i < 2 && (turn.Reason != protocol.ReasonAnswerRejected || len(turn.Violations) != 1 || turn.Violations[0].Severity != "Major" || turn.Violations[0].Type != "MissingRequiredSection") {
				t.Errorf("turn %d: %s, %+v", i, turn.Reason, turn.Violations)
			}
		}
		if tokens != r.Tokens || tokens.Output == 0 {
			t.Errorf("tokens %+v, of all turns %+v", r.Tokens, tokens)
		}
		last := ""
		for _, a := range asked(t, p, 3) {
			if len(a.Body) > len(last) {
				last = a.Body
			}
		}
		for _, part := range []string{`Still \"so\".`, "[SUPERVISOR] Your answer was not accepted", `The section \"Summary\" is missing`} {
			if !strings.Contains(last, part) {
				t.Errorf("the model was not told %q: %s", part, last)
			}
		}
	})
}

// TestSUP7RetriesAreExhausted: the turn fails with an error that no client tries again after, and the watchdog is told that the
// task has, where the policy wants that.
func TestSUP7RetriesAreExhausted(t *testing.T) {
	everyWay(t, `turns: [{text: a}, {text: b}, {text: c}, {text: d}]`, func(t *testing.T, w *world, p *provider.Server, _, path, body string, _ bool) {
		for _, fails := range []bool{true, false} {
			w.answers.Fail = fails
			answer, text := w.ask("login", http.MethodPost, path, body)
			told, err := url.QueryUnescape(answer.Header.Get(protocol.FailsHeader) + answer.Trailer.Get(protocol.FailsHeader))
			const why = "the model's answer breaks the rules of the Output templates, and 2 retries did not help: MissingRequiredSection: The section \"Summary\" is missing"
			if err != nil || strings.Contains(told, why) != fails || (told == "") == fails {
				t.Errorf("fails %v: the watchdog is told %q", fails, told)
			}
			if !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), why) {
				t.Errorf("fails %v: %d %s", fails, answer.StatusCode, text)
			}
		}
		if r := w.last(1); r.Checked != modelserver.CheckedRejected || r.Rejected != 3 || r.Reason != protocol.ReasonAnswerRejected {
			t.Errorf("%+v", r)
		}
		asked(t, p, 6)
	})
}

// TestAuditedAnswersPass: where policies audit, the agent gets what the model answers, and the ledger has what breaks a rule.
func TestAuditedAnswersPass(t *testing.T) {
	audited := answers.Rules{Checks: []answers.Checks{{Sections: []string{"Summary"}, Correct: answers.Corrections{AddSections: true}}, {Phrases: []string{"well"}}}, Retries: 2, Fail: true, Audit: true}
	for name, tc := range map[string]struct {
		formats    []string
		say, heard string
		checked    modelserver.Checked
		violations int
	}{
		"as it came":          {nil, "Well.", "Well.", modelserver.CheckedReported, 2},
		"one to correct":      {nil, "Good.", "Good.", modelserver.CheckedReported, 1},
		"one that is right":   {nil, "## Summary", "## Summary", modelserver.CheckedAccepted, 0},
		"formatted":           {[]string{"<<{{OUTPUT}}>>"}, "Well.", "<<Well.>>", modelserver.CheckedReported, 2},
		"right and formatted": {[]string{"<<{{OUTPUT}}>>"}, "## Summary", "<<## Summary>>", modelserver.CheckedChanged, 0},
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, `turns: [{text: "`+tc.say+`"}]`, func(t *testing.T, w *world, p *provider.Server, name, path, body string, streamed bool) {
				w.answers = audited
				w.answers.Formats = tc.formats
				answer, text := w.ask("login", http.MethodPost, path, body)
				if a := understood(t, name, text, streamed); answer.StatusCode != http.StatusOK || string(a.Text) != tc.heard || !a.Final() {
					t.Errorf("%d %+v\n%s", answer.StatusCode, a, text)
				}
				if r := w.last(1); r.Checked != tc.checked || r.Rejected != 0 || r.Tries != 1 || r.Reason != "Answered" {
					t.Errorf("%+v", r)
				}
				asked(t, p, 1)
				if turn := w.recorded()[0]; len(turn.Violations) != tc.violations || len(turn.Formatted) > 0 != (tc.formats != nil) {
					t.Errorf("%+v, formatted %q", turn.Violations, turn.Formatted)
				}
			})
		})
	}
}

// TestAuditedAnswersAreNotHeld: an answer that is only audited passes as the backend sends it, and one that is too long to be checked passes too.
func TestAuditedAnswersAreNotHeld(t *testing.T) {
	seen := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, streamStart)
		_ = http.NewResponseController(rw).Flush()
		select {
		case <-seen:
		case <-r.Context().Done():
			return
		}
		delta := "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"" + strings.Repeat("x", 32<<10) + "\"}}\n\n"
		for range 10 {
			fmt.Fprint(rw, delta)
		}
		fmt.Fprint(rw, streamEnd)
	}), quick())
	w.answers = answers.Rules{Checks: []answers.Checks{{Phrases: []string{"never"}}}, Audit: true}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+messages, strings.NewReader(conversationRequest))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer login")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	first := make([]byte, len(streamStart))
	_, err = io.ReadFull(answer.Body, first) // the backend says no more before the agent has this
	close(seen)
	rest, errRest := io.ReadAll(answer.Body)
	if err := errors.Join(err, errRest); err != nil || string(first) != streamStart || strings.Count(string(rest), strings.Repeat("x", 32<<10)) != 10 || !strings.HasSuffix(string(rest), streamEnd) {
		t.Errorf("%v: %q and %d bytes", err, first, len(rest))
	}
	if r := w.last(1); r.Checked != modelserver.CheckedReported {
		t.Errorf("%+v", r)
	}
	if turn := w.recorded()[0]; len(turn.Violations) != 1 || turn.Violations[0].Type != "SkippedValidation" {
		t.Errorf("%+v", turn.Violations)
	}
}

// TestAnAnswerTooLongToHold: what is more than the gateway holds gets no text around it. Where policies audit, the agent has it as it came; else it is
// told, because a part of an answer must not pass for the whole.
func TestAnAnswerTooLongToHold(t *testing.T) {
	thought := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"" + strings.Repeat("x", 1<<20) + "\"}}\n\n"
	for name, tc := range map[string]struct {
		rules  answers.Rules
		passes bool
	}{
		"audited":        {answers.Rules{Checks: []answers.Checks{{Phrases: []string{"done"}}}, Formats: []string{"<<{{OUTPUT}}>>"}, Audit: true}, true},
		"formatted only": {answers.Rules{Formats: []string{"<<{{OUTPUT}}>>"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(rw, streamStart)
				for range 33 {
					fmt.Fprint(rw, thought)
				}
				fmt.Fprint(rw, streamEnd)
			}), quick())
			w.answers = tc.rules
			answer, text := w.ask("login", http.MethodPost, messages, conversationRequest)
			whole := strings.Count(text, thought) == 33 && strings.HasSuffix(text, streamEnd)
			if answer.StatusCode != http.StatusOK && tc.passes || whole != tc.passes || !whole && !strings.Contains(text, "33554432 bytes") {
				t.Errorf("%d, %d bytes, whole %t: %.200q ... %q", answer.StatusCode, len(text), whole, text, text[max(0, len(text)-300):])
			}
			if turn := w.recorded()[0]; tc.passes != (w.last(1).Checked == modelserver.CheckedReported) || tc.passes != (len(turn.Violations) == 1) {
				t.Errorf("%+v, %+v", w.last(1), turn.Violations)
			}
		})
	}
}

// TestTurnsWithToolsStreamThrough: what is no final answer is not touched, and is not held longer than until that is known.
func TestTurnsWithToolsStreamThrough(t *testing.T) {
	everyWay(t, `turns: [{text: I look., run: ls}]`, func(t *testing.T, w *world, p *provider.Server, name, path, body string, streamed bool) {
		_, text := w.ask("login", http.MethodPost, path, body)
		if a := understood(t, name, text, streamed); string(a.Text) != "I look." || len(a.Tools) != 1 || a.Stop != conversation.StopTools {
			t.Errorf("%+v\n%s", a, text)
		}
		r := w.last(1)
		if turn := w.recorded()[0]; r.Checked != modelserver.Unchecked || len(turn.Formatted) != 0 || strings.TrimSpace(strings.ReplaceAll(text, ": the answer is checked\n\n", "")) != strings.TrimSpace(string(turn.Raw)) {
			t.Errorf("%+v: %s", r, turn.Raw)
		}
		asked(t, p, 1)
	})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, streamStart+"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\"}}\n\n")
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done() // the agent hangs up when it has seen the tool
	}), quick())
	w.answers = report
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+messages, strings.NewReader(conversationRequest))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer login")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var seen strings.Builder
	for part := make([]byte, 1024); !strings.Contains(seen.String(), "tool_use"); {
		n, err := answer.Body.Read(part)
		if err != nil {
			t.Fatalf("%v after %s", err, seen.String())
		}
		seen.Write(part[:n])
	}
	if !strings.Contains(seen.String(), "Done.") {
		t.Errorf("what was held is lost: %s", seen.String())
	}
}

const conversationRequest = `{"model":"large","tools":[{"name":"Bash"}],"messages":[]}`

// TestSideCallsAreNotChecked: titles and summaries that a runtime asks for itself are no final answers, and neither is that of a turn without tools. Of a program that is no
// such runtime every answer is.
func TestSideCallsAreNotChecked(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(answering), quick())
	w.answers, w.sideCalls = answers.Rules{Formats: []string{"!{{OUTPUT}}"}}, true
	const plain = `{"model":"large","messages":[]}`
	if _, text := w.ask("login", http.MethodPost, messages, plain); text != wholeAnswer {
		t.Errorf("a side call: %s", text)
	}
	bare := strings.Replace(conversationRequest, `{`, `{"tool_choice":{"type":"none"},`, 1)
	if _, text := w.ask("login", http.MethodPost, messages, bare); text != wholeAnswer {
		t.Errorf("a turn without tools: %s", text)
	}
	if _, text := w.ask("login", http.MethodPost, messages, strings.Replace(conversationRequest, "large", "a-tiny-one", 1)); !strings.Contains(text, `"text":"!Done."`) {
		t.Errorf("with tools, whatever the model is called: %s", text)
	}
	if _, text := w.ask("login", http.MethodPost, messages, conversationRequest); !strings.Contains(text, `"text":"!Done."`) {
		t.Errorf("the agent's own: %s", text)
	}
	w.sideCalls = false
	if _, text := w.ask("login", http.MethodPost, messages, plain); !strings.Contains(text, `"text":"!Done."`) {
		t.Errorf("a program: %s", text)
	}
	if _, text := w.ask("login", http.MethodPost, messages, plain, "X-App", "refuse"); !strings.Contains(text, "invalid_request_error") {
		t.Errorf("an error: %s", text)
	}
}

// TestAHeldStreamIsKeptAlive: comments, which clients pass over, come while an answer is held; an error that follows is one of the stream.
func TestAHeldStreamIsKeptAlive(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(http.ResponseWriter)
		want []string
	}{
		"accepted":   {func(w http.ResponseWriter) { fmt.Fprint(w, streamEnd) }, []string{"message_stop", "Done."}},
		"broken off": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, []string{"event: error", "the backend's answer broke off"}},
		"ended":      {func(http.ResponseWriter) {}, []string{"event: error", "the backend's answer broke off"}},
		"failed": {func(w http.ResponseWriter) {
			fmt.Fprint(w, "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"busy\"}}\n\n")
		}, []string{"event: error", "the backend's answer broke off"}},
	} {
		t.Run(name, func(t *testing.T) {
			released := make(chan struct{})
			w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(rw, streamStart)
				_ = http.NewResponseController(rw).Flush()
				<-released
				tc.end(rw)
			}), quick())
			w.answers = answers.Rules{Checks: []answers.Checks{{Phrases: []string{"never"}}}}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+messages, strings.NewReader(conversationRequest))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer login")
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			const comment = ": the answer is checked\n\n"
			first := make([]byte, len(comment))
			_, err = io.ReadFull(answer.Body, first) // the backend says no more before the agent has the comment
			close(released)
			rest, errRest := io.ReadAll(answer.Body)
			text := string(first) + string(rest)
			if err := errors.Join(err, errRest); err != nil {
				t.Errorf("%v after %s", err, text)
			}
			if answer.StatusCode != http.StatusOK || !strings.HasPrefix(text, comment) {
				t.Errorf("%d %s", answer.StatusCode, text)
			}
			for _, part := range tc.want {
				if !strings.Contains(text, part) {
					t.Errorf("without %q: %s", part, text)
				}
			}
			if name != "accepted" && strings.Contains(text, "Done.") {
				t.Errorf("a part of it was seen: %s", text)
			}
		})
	}
}

// TestWhatCannotBeHeldIsNotAnswered: an answer that is too long to be checked is rejected, one that there is no memory for can be
// tried again, and without a record there is no end.
func TestWhatCannotBeHeldIsNotAnswered(t *testing.T) {
	endless := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, streamStart)
		delta := "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"" + strings.Repeat("x", 32<<10) + "\"}}\n\n"
		for range 400 { // some 13 MiB
			if _, err := fmt.Fprint(rw, delta); err != nil {
				return
			}
		}
		fmt.Fprint(rw, streamEnd)
	})
	for name, tc := range map[string]struct {
		limit func(*modelserver.Limits)
		want  string
	}{
		"too long":  {func(*modelserver.Limits) {}, "SkippedValidation: The answer is too long for a check"},
		"no memory": {func(l *modelserver.Limits) { l.Memory, l.Wait = 1<<20, 10*time.Millisecond }, "hold all memory"},
	} {
		limits := quick()
		tc.limit(&limits)
		w := newWorld(t, endless, limits)
		w.answers = answers.Rules{Checks: []answers.Checks{{Phrases: []string{"never"}}}}
		if _, text := w.ask("login", http.MethodPost, messages, conversationRequest); !strings.Contains(text, tc.want) || strings.Contains(text, "xxxx") {
			t.Errorf("%s: %.500s", name, text)
		}
	}
	w := newWorld(t, http.HandlerFunc(answering), quick())
	w.answers, w.settling = report, errors.New("the disk is full")
	if answer, text := w.ask("login", http.MethodPost, messages, conversationRequest); answer.Header.Get(protocol.ReasonHeader) != "LedgerUnavailable" || strings.Contains(text, "Done.") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if answer, text := w.ask("unrecorded", http.MethodPost, messages, conversationRequest); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("where the policy lets it through, it is checked all the same: %d %s", answer.StatusCode, text)
	}
}

// saying is a backend that answers with these bodies, one after the other, the last one again and again.
func saying(kind string, bodies ...string) http.HandlerFunc {
	var asked atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		n := min(int(asked.Add(1)), len(bodies))
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, bodies[n-1])
	}
}

// TestWhatIsNoFinalAnswerPasses as it came: errors of providers, calls of tools however they are written, and answers without a word
// that the model has not ended itself.
func TestWhatIsNoFinalAnswerPasses(t *testing.T) {
	const stream, whole = "text/event-stream", "application/json"
	for name, tc := range map[string]struct{ path, kind, body string }{
		"an error of Chat":          {"/openai/v1/chat/completions", whole, `{"error":{"message":"busy"}}`},
		"an error of Responses":     {"/openai/v1/responses", whole, `{"object":"response","status":"failed","error":{"message":"no"}}`},
		"a stream that failed":      {"/openai/v1/responses", stream, "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}}\n\n"},
		"an error event":            {messages, stream, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"},
		"no room":                   {messages, whole, `{"type":"message","content":[],"stop_reason":"max_tokens"}`},
		"a refusal":                 {messages, whole, `{"type":"message","content":[],"stop_reason":"refusal"}`},
		"a pause":                   {messages, whole, `{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"pause_turn"}`},
		"an old call":               {"/openai/v1/chat/completions", whole, `{"choices":[{"index":0,"message":{"content":"x","function_call":{"name":"f"}},"finish_reason":"function_call"}]}`},
		"a call of the shell":       {"/openai/v1/responses", whole, `{"object":"response","status":"completed","output":[{"type":"local_shell_call","call_id":"c"}]}`},
		"an approval":               {"/openai/v1/responses", whole, `{"object":"response","status":"completed","output":[{"type":"mcp_approval_request"}]}`},
		"a compaction":              {"/openai/v1/responses/compact", whole, `{"object":"response.compaction","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`},
		"a call in a stream of old": {"/openai/v1/chat/completions", stream, "data: {\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"f\"}}}]}\n\ndata: [DONE]\n\n"},
	} {
		w := newWorld(t, saying(tc.kind, tc.body), quick())
		w.answers = report
		if answer, text := w.ask("login", http.MethodPost, tc.path, conversationRequest); answer.StatusCode != http.StatusOK || text != tc.body || answer.Header.Get(protocol.FailsHeader) != "" {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
		if r := w.last(1); r.Tries != 1 || r.Checked != modelserver.Unchecked {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestWhatIsNotKnownDoesNotPass: nothing that cannot be read reaches people as if it had been checked.
func TestWhatIsNotKnownDoesNotPass(t *testing.T) {
	const stream, whole = "text/event-stream", "application/json"
	for name, tc := range map[string]struct{ path, kind, body string }{
		"parts of text":            {"/openai/v1/chat/completions", whole, `{"choices":[{"index":0,"message":{"content":[{"type":"text","text":"secret words"}]},"finish_reason":"stop"}]}`},
		"no call of the tool":      {"/openai/v1/chat/completions", whole, `{"choices":[{"index":0,"message":{"content":"secret words"},"finish_reason":"tool_calls"}]}`},
		"a stream of another type": {messages, "text/plain", streamStart + streamEnd + "secret words"},
		"no JSON":                  {messages, whole, "secret words"},
		"an unknown block":         {messages, whole, `{"type":"message","content":[{"type":"compaction","content":"x"},{"type":"text","text":"secret words"}],"stop_reason":"end_turn"}`},
		"an unknown item":          {"/openai/v1/responses", whole, `{"object":"response","status":"completed","output":[{"type":"essay"},{"type":"message","content":[{"type":"output_text","text":"secret words"}]}]}`},
		"two choices":              {"/openai/v1/chat/completions", whole, `{"choices":[{"index":0,"message":{"content":"## Summary"},"finish_reason":"stop"},{"index":1,"message":{"content":"secret words"},"finish_reason":"stop"}]}`},
		"a stream without its end": {messages, stream, streamStart + "secret words"},
	} {
		w := newWorld(t, saying(tc.kind, tc.body), quick())
		w.answers = report
		if answer, text := w.ask("login", http.MethodPost, tc.path, conversationRequest); answer.StatusCode == http.StatusOK || strings.Contains(text, "secret words") {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
	}
}

// TestLongThoughtsAreHeld: an answer that is much longer than what the ledger keeps arrives whole, with its call of a tool.
func TestLongThoughtsAreHeld(t *testing.T) {
	thought := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"" + strings.Repeat("hm ", 300) + "\"}}\n\n"
	body := strings.Repeat(thought, 6000) + "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\"}}\n\n" + streamEnd
	whole := `{"type":"message","content":[{"type":"thinking","thinking":"` + strings.Repeat("x", 5<<20) + `"},{"type":"text","text":"## Summary"}],"stop_reason":"end_turn"}`
	limits := quick()
	limits.Memory = 300 << 20
	for kind, body := range map[string]string{"text/event-stream": body, "application/json": whole} {
		w := newWorld(t, saying(kind, body), limits)
		w.answers = answers.Rules{Checks: report.Checks}
		if _, text := w.ask("login", http.MethodPost, messages, conversationRequest); strings.ReplaceAll(text, ": the answer is checked\n\n", "") != body {
			t.Errorf("%s: %d bytes became %d", kind, len(body), len(text))
		}
		w.last(1)
		if turn := w.recorded()[0]; len(turn.Raw) > ledger.MaxAnswer || turn.AnswerBytes != int64(len(body)) {
			t.Errorf("%s: the ledger has %d of %d bytes", kind, len(turn.Raw), turn.AnswerBytes)
		}
	}
}

// TestARetryThatIsRefused: what the backend says about the question for a better answer reaches the agent, and no comment in the
// midst of it.
func TestARetryThatIsRefused(t *testing.T) {
	for range 20 {
		w := newWorld(t, func() http.HandlerFunc {
			var asked atomic.Int64
			return func(rw http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) == 1 {
					rw.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(rw, streamStart+streamEnd)
					return
				}
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusBadRequest)
				for range 30 {
					fmt.Fprint(rw, "0123456789")
					_ = http.NewResponseController(rw).Flush()
					time.Sleep(time.Millisecond)
				}
			}
		}(), quick())
		w.answers = report
		answer, text := w.ask("login", http.MethodPost, messages, conversationRequest)
		if answer.StatusCode != http.StatusBadRequest || answer.Header.Get("Content-Type") != "application/json" || text != strings.Repeat("0123456789", 30) {
			if answer.StatusCode == http.StatusOK && strings.HasPrefix(text, ": the answer is checked") && strings.Contains(text, "event: error") {
				continue // the comments came first
			}
			t.Fatalf("%d %v %s", answer.StatusCode, answer.Header, text)
		}
	}
}

// TestABrokenAnswerIsCharged whether it was held or not.
func TestABrokenAnswerIsCharged(t *testing.T) {
	var charged [2]int64
	for i, rules := range []answers.Rules{{}, report} {
		w := newWorld(t, saying("text/event-stream", streamStart), quick())
		w.answers = rules
		w.ask("login", http.MethodPost, messages, conversationRequest)
		w.last(1)
		charged[i] = w.recorded()[0].Tokens.Output
	}
	if charged[0] == 0 || charged[0] != charged[1] {
		t.Errorf("charged %v", charged)
	}
}

// TestAFormatAloneIsNoCheck: an answer without a word passes where nothing is checked, and is asked for again where something is.
func TestAFormatAloneIsNoCheck(t *testing.T) {
	const empty = `{"type":"message","content":[],"stop_reason":"end_turn"}`
	w := newWorld(t, saying("application/json", empty), quick())
	w.answers = answers.Rules{Formats: []string{"!"}, Retries: 2}
	if _, text := w.ask("login", http.MethodPost, messages, conversationRequest); text != empty {
		t.Errorf("a format alone: %s", text)
	}
	w = newWorld(t, saying("application/json", empty, `{"type":"message","content":[{"type":"text","text":"\n"}],"stop_reason":"end_turn"}`, wholeAnswer), quick())
	w.answers = answers.Rules{Checks: []answers.Checks{{Phrases: []string{"never"}}}, Retries: 2}
	if _, text := w.ask("login", http.MethodPost, messages, conversationRequest); text != wholeAnswer {
		t.Errorf("with a check: %s", text)
	}
}
