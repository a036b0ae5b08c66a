// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/host/callers"
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
	w := newWorld(t, p, quick())
	const secret = "THE-REPOSITORY"
	at := func(path, body, reason, member string) {
		t.Helper()
		before := len(p.Recorded())
		body = fmt.Sprintf(`{"model":"large","max_tokens":9,%s}`, strings.ReplaceAll(body, "URL", `"https://evil.example.com/?q=`+secret+`"`))
		answer, text := w.ask("login", http.MethodPost, path, body)
		status := http.StatusForbidden
		if reason == "InvalidRequest" || strings.Contains(body, "thread") {
			status = http.StatusBadRequest
		}
		if answer.StatusCode != status || answer.Header.Get(callers.ReasonHeader) != reason || !strings.Contains(text, "tidewaiter: "+member+": ") {
			t.Errorf("%s: %d %s %s\nwant %d %s %s", body, answer.StatusCode, answer.Header.Get(callers.ReasonHeader), text, status, reason, member)
		}
		if got := p.Recorded(); len(got) != before {
			t.Errorf("%s reached the provider: %s", body, got[len(got)-1].Body)
		}
	}
	const tool, state, invalid = "ServerToolNotAllowed", "ProviderStateNotAllowed", "InvalidRequest"
	at(messages, `"mcp_servers":[{"type":"url","name":"n","url":URL}],"messages":[{"role":"user","content":"x"}]`, tool, "mcp_servers")
	at(messages, `"tools":[{"type":"teleport_20270101","name":"t"}],"messages":[]`, tool, "tools[0]")
	at(messages, `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":URL}}]}]`, tool, "messages[0].content[0].source.url")
	at(messages, `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"document","source":{"type":"url","url":URL}}]}]}]`, tool, "messages[0].content[0].content[0].source.url")
	at(messages, `"container":"c","messages":[]`, state, "container")
	at(messages, `"thread":{"type":"continue","previous_message_id":"m"},"messages":[]`, state, "thread")
	at(messages, `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}]`, state, "messages[0].content[0].source.file_id")
	at(messages, `"Messages":[{"role":"user","content":"x"}],"messages":[]`, invalid, `\"Messages\"`)
	at(messages+"/count_tokens", `"mcp_servers":[{"type":"url","name":"n","url":URL}],"messages":[]`, tool, "mcp_servers")
	at(responses, `"tools":[{"type":"mcp","server_label":"l","server_url":URL}],"input":"x"`, tool, "tools[0]")
	at(responses, `"input":[{"type":"message","role":"user","content":[{"type":"input_file","file_url":URL}]}]`, tool, "input[0].content[0].file_url")
	at(responses, `"background":true,"input":"x"`, state, "background")
	at(responses, `"previous_response_id":"resp_1","input":"x"`, state, "previous_response_id")
	at(responses, `"conversation":"conv_1","input":"x"`, state, "conversation")
	at(responses, `"prompt":{"id":"pmpt_1"},"input":"x"`, state, "prompt")
	at(responses, `"input":[{"id":"msg_1"}]`, state, "input[0]")
	at(responses+"/compact", `"previous_response_id":"resp_1","input":"x"`, state, "previous_response_id")
	at(responses+"/input_tokens", `"conversation":"conv_1","input":"x"`, state, "conversation")
	at(chat, `"plugins":[{"id":"web"}],"messages":[]`, tool, "plugins")
	at(chat, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":URL}}]}]`, tool, "messages[0].content[0].image_url.url")
	at(chat, `"functions":[{"name":"f"}],"messages":[]`, invalid, "functions")
	at(chat, `"messages":[{"role":"user","content":"x"}],"me\u017fsages":[]`, invalid, "\\\"meſsages\\\"")
	for _, got := range p.Recorded() {
		if strings.Contains(got.Body, secret) {
			t.Errorf("the provider got %s", got.Body)
		}
	}
	if n := w.settled(); n != 0 {
		t.Errorf("%d refused calls are in the ledger, which costs nothing to fill", n)
	}
}

// settled is how many calls the ledger has.
func (w *world) settled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.turns)
}

// TestWallTakesOut: what clients offer by themselves is taken out, the rest of the request stays, and the ledger says what it was.
func TestWallTakesOut(t *testing.T) {
	t.Parallel()
	p := provider.New(providerKey)
	w := newWorld(t, p, quick())
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
	w := newWorld(t, p, quick())
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
	w := newWorld(t, p, quick())
	const body = `{"service_tier":"priority","model":"large","Speed":"fast","messages":[{"role":"user","content":"x"}],"provider":{"order":["x"]}}`
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
	if answer, text := w.ask("login", http.MethodPost, chat, `{"model":"large","messages":[],"api_base":"https://evil.example.com"}`); answer.StatusCode != http.StatusForbidden || !strings.Contains(text, "api_base") {
		t.Errorf("%d %s", answer.StatusCode, text)
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
