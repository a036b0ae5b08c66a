// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// ask the provider; an answer that breaks off is what came before.
func ask(t *testing.T, server http.Handler, path, body string) (w *httptest.ResponseRecorder, cut bool) {
	t.Helper()
	w = httptest.NewRecorder()
	defer func() {
		if r := recover(); r != nil {
			if r != http.ErrAbortHandler { //nolint:errorlint // what was recovered
				panic(r)
			}
			cut = true
		}
	}()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w, false
}

// prompt is a message's text with a script, as a JSON string.
func prompt(script string) string { return string(encode("Work.\n```script\n" + script + "\n```\n")) }

// spoken are requests of each dialect that play a script.
func spoken(streamed bool, script string) map[string][2]string {
	text := prompt(script)
	return map[string][2]string{
		"anthropic": {"/v1/messages", fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"thinking":{"type":"enabled"},"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":%s}]}`, streamed, text)},
		"responses": {"/v1/responses", fmt.Sprintf(`{"model":"m","stream":%v,"reasoning":{},"include":["reasoning.encrypted_content"],"tools":[{"name":"shell"}],"input":%s}`, streamed, text)},
		"chat":      {"/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%v,"stream_options":{"include_usage":true},"n":2,"tools":[{"function":{"name":"bash"}}],"messages":[{"role":"user","content":%s}]}`, streamed, text)},
		"gemini": {
			map[bool]string{true: "/v1beta/models/m:streamGenerateContent?alt=sse", false: "/v1beta/models/m:generateContent"}[streamed],
			fmt.Sprintf(`{"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}],"contents":[{"role":"user","parts":[{"text":%s}]}]}`, text),
		},
	}
}

// TestThoughtsComeBack: what the model has thought is taken back as it was, and in no other form, as the real API does.
func TestThoughtsComeBack(t *testing.T) {
	for _, manner := range []string{"", "hides", "redacts"} {
		script := fmt.Sprintf("turns: [{thinking: Should I do it, text: I do., run: make, manners: [%s]}, {text: Done.}]", manner)
		server := New("")
		first, _ := ask(t, server, "/v1/messages", spoken(false, script)["anthropic"][1])
		var answer struct {
			Content []map[string]any `json:"content"`
		}
		if err := json.Unmarshal(first.Body.Bytes(), &answer); err != nil || len(answer.Content) != 3 {
			t.Fatalf("%v: %s", err, first.Body)
		}
		again := func(content []map[string]any, between string) (int, string) {
			results := fmt.Sprintf(`{"role":"user","content":[%s{"type":"tool_result","tool_use_id":%q,"content":"made"}]}`, between, answer.Content[2]["id"])
			body := fmt.Sprintf(`{"model":"m","max_tokens":9,"thinking":{"type":"enabled"},"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":%s},{"role":"assistant","content":%s},%s]}`,
				prompt(script), encode(content), results)
			w, _ := ask(t, server, "/v1/messages", body)
			return w.Code, w.Body.String()
		}
		if status, text := again(answer.Content, ""); status != http.StatusOK || !strings.Contains(text, "Done.") {
			t.Errorf("%s, as it was: %d %s", manner, status, text)
		}
		if status, text := again(answer.Content[1:], ""); status != http.StatusBadRequest || !strings.Contains(text, "Expected `thinking`") {
			t.Errorf("%s, left out: %d %s", manner, status, text)
		}
		if status, text := again(answer.Content, `{"type":"text","text":"first"},`); status != http.StatusBadRequest || !strings.Contains(text, "immediately after") {
			t.Errorf("%s, a text before the result: %d %s", manner, status, text)
		}
		for name := range answer.Content[0] {
			changed := slices.Clone(answer.Content)
			changed[0] = maps.Clone(answer.Content[0])
			if changed[0][name] = "x"; name == "type" {
				continue
			}
			if status, text := again(changed, ""); status != http.StatusBadRequest || !strings.Contains(text, "Invalid `signature`") {
				t.Errorf("%s, another %s: %d %s", manner, name, status, text)
			}
		}
	}
}

// TestEncryptedReasoningComesBack: a reasoning item is taken back as it was, with what follows it.
func TestEncryptedReasoningComesBack(t *testing.T) {
	const script = "turns: [{thinking: Should I do it, run: make, manners: []}, {text: Done.}]"
	server := New("")
	first, _ := ask(t, server, "/v1/responses", spoken(false, script)["responses"][1])
	var answer struct {
		Output []map[string]any `json:"output"`
	}
	if err := json.Unmarshal(first.Body.Bytes(), &answer); err != nil || len(answer.Output) != 2 || answer.Output[0]["type"] != "reasoning" {
		t.Fatalf("%v: %s", err, first.Body)
	}
	again := func(items ...any) (int, string) {
		result := object{"type": "function_call_output", "call_id": answer.Output[1]["call_id"], "output": "made"}
		items = append([]any{object{"type": "message", "role": "user", "content": json.RawMessage(prompt(script))}}, append(items, result)...)
		w, _ := ask(t, server, "/v1/responses", string(encode(object{"model": "m", "tools": []any{object{"name": "shell"}}, "input": items})))
		return w.Code, w.Body.String()
	}
	if status, text := again(answer.Output[0], answer.Output[1]); status != http.StatusOK || !strings.Contains(text, "Done.") {
		t.Errorf("as it was: %d %s", status, text)
	}
	if status, text := again(answer.Output[1], answer.Output[0]); status != http.StatusBadRequest || !strings.Contains(text, "required following item") {
		t.Errorf("in another order: %d %s", status, text)
	}
	answer.Output[0]["encrypted_content"] = "x"
	if status, text := again(answer.Output[0], answer.Output[1]); status != http.StatusBadRequest || !strings.Contains(text, "could not be verified") {
		t.Errorf("another content: %d %s", status, text)
	}
}

// TestManners: each manner shows in each dialect that has it.
func TestManners(t *testing.T) {
	shows := map[Manner]map[string]string{
		Thinks:   {"anthropic": "signature_delta", "responses": "response.reasoning_summary_text.delta", "chat": "reasoning_content"},
		Twice:    {"anthropic": "true # beside turn 0", "responses": "true # beside turn 0", "chat": "# beside turn 0"},
		Unknown:  {"anthropic": "weather", "responses": "weather", "chat": `"object":""`},
		Comments: {"anthropic": "\n: still", "responses": "\n: still", "chat": "\n: still", "gemini": "\n: still"},
		Returns:  {"anthropic": "\r\n\r\n", "responses": "\r\n\r\n", "chat": "\r\n\r\n", "gemini": "\r\n\r\n"},
		Queues:   {"responses": "response.queued"},
	}
	for manner, dialects := range shows {
		for name, want := range dialects {
			for given, found := range map[Manner]bool{manner: true, "": false} {
				request := spoken(true, fmt.Sprintf("turns: [{text: Soon – really., run: make, manners: [%s]}]", given))[name]
				w, _ := ask(t, New(""), request[0], request[1])
				got := w.Body.String()
				if manner == Twice { // arguments come in two halves
					got = strings.NewReplacer(`"}`, "", `true`, "").Replace(strings.Join(arguments(got), ""))
					want = "# beside turn 0"
				}
				if strings.Contains(got, want) != found {
					t.Errorf("%s with manners [%s]: %q is there: %v\n%s", name, given, want, !found, got)
				}
			}
		}
	}
	for name, request := range spoken(true, "turns: [{text: Soon., manners: [uncounted]}]") {
		if w, _ := ask(t, New(""), request[0], request[1]); strings.Contains(w.Body.String(), "put_tokens") || strings.Contains(w.Body.String(), "prompt_tokens") || strings.Contains(w.Body.String(), "TokenCount") {
			t.Errorf("%s is counted: %s", name, w.Body)
		}
	}
	if w, _ := ask(t, New(""), "/v1/messages", spoken(true, "turns: [{manners: [polite]}]")["anthropic"][1]); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "polite") {
		t.Errorf("an unknown manner: %d %s", w.Code, w.Body)
	}
}

// arguments of calls in a stream, in pieces.
func arguments(text string) (parts []string) {
	for line := range strings.Lines(text) {
		var event struct {
			Delta struct {
				Partial string `json:"partial_json"`
			} `json:"delta"`
			Choices []struct {
				Index int `json:"index"`
				Delta struct {
					ToolCalls []struct {
						Function struct {
							Arguments string `json:"arguments"`
						} `json:"function"`
					} `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
			Arguments string `json:"arguments"`
		}
		_ = json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &event) // or its delta is a text
		parts = append(parts, event.Delta.Partial, event.Arguments)
		for _, c := range event.Choices {
			for _, call := range c.Delta.ToolCalls {
				if c.Index == 0 {
					parts = append(parts, call.Function.Arguments)
				}
			}
		}
	}
	return parts
}

// TestCuts: each dialect's stream breaks off where the script says so, once.
func TestCuts(t *testing.T) {
	for cut, broken := range map[Cut]func(string) bool{
		CutBefore:    func(s string) bool { return strings.HasSuffix(s, "\n\n") },
		CutEvent:     func(s string) bool { return strings.HasSuffix(s, `"type":`) },
		CutCharacter: func(s string) bool { return strings.HasSuffix(s, "\xe2") },
		CutEnd:       func(s string) bool { return strings.HasSuffix(s, "\n\n") },
	} {
		for name, request := range spoken(true, fmt.Sprintf("turns: [{text: one two three four, cut: %s, manners: []}]", cut)) {
			server := New("")
			w, aborted := ask(t, server, request[0], request[1])
			if got := w.Body.String(); !broken(got) || aborted == (cut == CutEnd) || strings.Contains(got, "four") {
				t.Errorf("%s, cut %s: aborted %v\n%s", name, cut, aborted, got)
			}
			if w, aborted = ask(t, server, request[0], request[1]); aborted || !strings.Contains(w.Body.String(), "four") {
				t.Errorf("%s, cut %s, the second time: aborted %v\n%s", name, cut, aborted, w.Body)
			}
		}
	}
}

// TestMannersAreChosen: a script that asks for nothing meets every manner in some conversation, the same ones each time, unless it is plain.
func TestMannersAreChosen(t *testing.T) {
	met := map[Manner]bool{}
	for n := range 64 {
		for _, m := range choose(fmt.Sprint(n), 0) {
			met[m] = true
		}
	}
	if len(met) != len(chosen) {
		t.Errorf("met %v", met)
	}
	for n := range 16 {
		script := fmt.Sprintf("turns: [{text: Answer %d., run: make}]", n)
		_, id, err := find(&conversation{texts: []string{"```script\n" + script + "\n```"}})
		if err != nil {
			t.Fatal(err)
		}
		request := spoken(false, script)["anthropic"]
		w, _ := ask(t, New(""), request[0], request[1])
		if got, want := strings.Contains(w.Body.String(), "thinking"), slices.Contains(choose(id, 0), Thinks); got != want {
			t.Errorf("thinks %v, want %v: %s", got, want, w.Body)
		}
		if !strings.Contains(w.Body.String(), `"ephemeral_5m_input_tokens":`) || strings.Contains(w.Body.String(), `"cache_creation_input_tokens":0`) {
			t.Errorf("nothing goes to the cache: %s", w.Body)
		}
		request = spoken(false, "plain: true\n"+script)["anthropic"]
		if w, _ = ask(t, New(""), request[0], request[1]); strings.Contains(w.Body.String(), "thinking") || strings.Contains(w.Body.String(), "beside") || !strings.Contains(w.Body.String(), `"cache_creation_input_tokens":0`) {
			t.Errorf("plain: %s", w.Body)
		}
	}
}

// TestStopsAndChoices: an answer ends as the script says, in the words of the dialect, and has as many choices as are asked for.
func TestStopsAndChoices(t *testing.T) {
	for name, stop := range map[string][2]string{
		"anthropic": {"pause_turn", `"stop_reason":"pause_turn"`}, "responses": {"max_output_tokens", `"incomplete_details":{"reason":"max_output_tokens"}`},
		"chat": {"length", `"finish_reason":"length","index":1`}, "gemini": {"MAX_TOKENS", `"finishReason":"MAX_TOKENS"`},
	} {
		for _, streamed := range []bool{true, false} {
			request := spoken(streamed, fmt.Sprintf("turns: [{text: So far., stop: %s, manners: [], cache: {read: 3, write: 2, writeHour: 1}}]", stop[0]))[name]
			w, _ := ask(t, New(""), request[0], request[1])
			got := w.Body.String()
			if !strings.Contains(got, stop[1]) {
				t.Errorf("%s streamed=%v: %s", name, streamed, got)
			}
			cached := map[string]string{"anthropic": `"ephemeral_1h_input_tokens":1,"ephemeral_5m_input_tokens":2`, "responses": `"cached_tokens":3`, "chat": `"cached_tokens":3`, "gemini": `"cachedContentTokenCount":3`}[name]
			if !strings.Contains(got, cached) {
				t.Errorf("%s streamed=%v lacks %s: %s", name, streamed, cached, got)
			}
		}
	}
}
