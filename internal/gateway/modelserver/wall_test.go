// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/detour"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// Paths of the dialects.
const (
	responses = "/openai/v1/responses"
	chat      = "/openai/v1/chat/completions"
)

// TestWall: a Feature that tries everything by which a provider would act for it elsewhere, or keep something for it, gets nothing through.
func TestWall(t *testing.T) {
	t.Parallel()
	p := provider.New(providerKey)
	w := newWorld(t, p, roomy())
	const secret = "THE-REPOSITORY"
	sent := 0
	for _, r := range detour.All(secret) {
		var header []string
		if r.Header != "" {
			header = []string{r.Header, r.Value}
		}
		answer, text := w.ask("login", http.MethodPost, r.Path, r.Body, header...)
		got := p.Recorded()
		if r.Reason != "" {
			if answer.StatusCode != r.Status() || answer.Header.Get(protocol.ReasonHeader) != r.Reason || !strings.Contains(text, "tidewaiter: "+r.Member+": ") {
				t.Errorf("%s: %d %s %s\nwant %d %s %s", r.Body, answer.StatusCode, answer.Header.Get(protocol.ReasonHeader), text, r.Status(), r.Reason, r.Member)
			}
			if len(got) != sent {
				t.Errorf("%s reached the provider", r.Body)
			}
		} else {
			if answer.StatusCode != http.StatusOK || len(got) != sent+1 {
				t.Fatalf("%s: %d %s", r.Body, answer.StatusCode, text)
			}
			last := got[len(got)-1]
			if r.Gone != "" && strings.Contains(last.Body, r.Gone) || r.Header != "" && strings.Contains(fmt.Sprint(last.Header), r.Value) {
				t.Errorf("the provider got %s with %v", last.Body, last.Header)
			}
		}
		sent = len(got)
	}
	taken := map[string]int{}
	for _, r := range detour.All(secret) {
		if r.TakenOut != "" {
			taken["taken out: "+r.TakenOut]++
		}
	}
	for _, got := range p.Recorded() {
		if strings.Contains(got.Body, secret) {
			t.Errorf("the provider got %s", got.Body)
		}
	}
	w.last(sent)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.turns) != sent {
		t.Errorf("the ledger has %d calls, and %d were made", len(w.turns), sent)
	}
	for _, turn := range w.turns {
		taken[turn.Detail]--
	}
	for detail, n := range taken {
		if detail != "" && n != 0 {
			t.Errorf("%s: the ledger has it %d times too few", detail, n)
		}
	}
}

// TestWallTakesOut: what clients offer by themselves is taken out, the rest of the request stays, and the ledger says what it was.
func TestWallTakesOut(t *testing.T) {
	t.Parallel()
	p := provider.New(providerKey)
	w := newWorld(t, p, roomy())
	said, err := json.Marshal("Work.\n```script\nturns: [{text: Done}]\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct{ path, body, want, taken string }{
		{messages, `{"model":"large","max_tokens":9,"tools":[{"name":"Bash"},{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":SAID}]}`,
			`{"model":"large","max_tokens":9,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":SAID}]}`, "anthropic/web_search"},
		{responses, `{"model":"large","input":[{"type":"message","role":"user","content":SAID}],"tools":[{"type":"function","name":"f"},{"type":"web_search","external_web_access":false}],"tool_choice":"auto"}`,
			`{"store":false,"model":"large","input":[{"type":"message","role":"user","content":SAID}],"tools":[{"type":"function","name":"f"}],"tool_choice":"auto"}`, "openai/web_search"},
		{chat, `{"model":"large","messages":[{"role":"user","content":SAID}],"web_search_options":{}}`, `{"model":"large","messages":[{"role":"user","content":SAID}]}`, "openai/web_search"},
	} {
		answer, text := w.ask("login", http.MethodPost, tc.path, strings.ReplaceAll(tc.body, "SAID", string(said)))
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
		if got, want := p.Recorded()[i].Body, strings.ReplaceAll(tc.want, "SAID", string(said)); got != want {
			t.Errorf("the provider got\n%s\nwant\n%s", got, want)
		}
		w.last(i + 1)
		w.mu.Lock()
		turn := w.turns[i]
		w.mu.Unlock()
		if turn.Detail != "taken out: "+tc.taken {
			t.Errorf("the ledger says %q, want that %s was taken out", turn.Detail, tc.taken)
		}
		if turn.RequestBytes != int64(len(strings.ReplaceAll(tc.body, "SAID", string(said)))) {
			t.Errorf("%d bytes, want those of the request as it came", turn.RequestBytes)
		}
	}
}

// TestWallAllows what a policy lists, byte for byte.
func TestWallAllows(t *testing.T) {
	t.Parallel()
	p := provider.New(providerKey)
	w := newWorld(t, p, roomy())
	body := `{"model":"large","max_tokens":9,"tools":[{"type":"web_search_20250305","name":"web_search"}],"container":"c","messages":[{"role":"user","content":"x"}]}`
	if answer, text := w.ask("searching", http.MethodPost, messages, body); answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	if got := p.Recorded()[0].Body; got != body {
		t.Errorf("the provider got %s", got)
	}
	// State is allowed to the role of the policy, and to no other.
	if answer, text := w.ask("searching", http.MethodPost, messages, strings.Replace(body, "large", "tiny", 1)); answer.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

// TestWallHeadersAndMembers: what the platform decides, the agent does not.
func TestWallHeadersAndMembers(t *testing.T) {
	t.Parallel()
	p := provider.New(providerKey)
	w := newWorld(t, p, roomy())
	const body = `{"service_tier":"priority","model":"large","Speed":"fast","priority":-9,"n_predict":1e9,"messages":[{"role":"user","content":"x"}],"provider":{"order":["x"]}}`
	if answer, text := w.ask("login", http.MethodPost, chat, body); answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	got := p.Recorded()[0]
	if want := `{"model":"large","messages":[{"role":"user","content":"x"}]}`; got.Body != want {
		t.Errorf("the provider got %s, want %s", got.Body, want)
	}
	for name := range got.Header {
		if strings.HasPrefix(name, "Openai-") || strings.HasPrefix(name, "Anthropic-") {
			t.Errorf("the provider got the header %s", name)
		}
	}
	for _, member := range []string{"api_base", "extra_headers", "logits_processors", "custom_logit_processor"} {
		if answer, text := w.ask("login", http.MethodPost, chat, `{"model":"large","messages":[],"`+member+`":["https://evil.example.com"]}`); answer.StatusCode != http.StatusForbidden || !strings.Contains(text, member) {
			t.Errorf("%d %s", answer.StatusCode, text)
		}
	}
	for contentType, status := range map[string]int{"application/json; charset=utf-16": 415, "application/json; charset=\"UTF-8\"": 200, "a b/c": 415} {
		if answer, text := w.ask("login", http.MethodPost, chat, `{"model":"large","messages":[{"role":"user","content":"x"}]}`, "Content-Type", contentType); answer.StatusCode != status {
			t.Errorf("%s: %d %s", contentType, answer.StatusCode, text)
		}
	}
	for _, mark := range []string{"\ufeff{", "\xff\xfe{\x00", "\x00{"} {
		if answer, text := w.ask("login", http.MethodPost, chat, mark+`"model":"large"}`); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d %s", mark, answer.StatusCode, text)
		}
	}
	for _, path := range []string{"/elsewhere", "/anthropic/v1/files"} { // nobody is told what there is before it is known who asks
		if answer, text := w.ask("stranger", http.MethodPost, path, "{}"); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	if n := len(p.Recorded()); n != 2 {
		t.Errorf("%d requests reached the provider", n)
	}
}

// TestProvidersAreSentJSON: the gateway reads JSON, and no server is told to read the same bytes as something else. Some read a form where its type
// says so, and a second value of the header is read by some and not by others.
func TestProvidersAreSentJSON(t *testing.T) {
	t.Parallel()
	p := provider.New(providerKey)
	w := newWorld(t, p, roomy())
	const body = `{"model":"large","messages":[{"role":"user","content":"x"}],"metadata":"&model=dear&messages=[]"}`
	for _, types := range [][]string{{"application/x-www-form-urlencoded"}, {"multipart/form-data; boundary=x"}, {"text/plain"}, {"application/json", "application/x-www-form-urlencoded; charset=utf-16"}, {""}, nil} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+chat, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Authorization": {"Bearer login"}, "Content-Type": types}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%q: %d", types, answer.StatusCode)
		}
		got := p.Recorded()
		if last := got[len(got)-1].Header["Content-Type"]; last != "application/json" {
			t.Errorf("%q: the provider got %q", types, last)
		}
	}
}
