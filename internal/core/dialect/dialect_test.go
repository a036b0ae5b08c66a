// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

func TestServe(t *testing.T) {
	for request, want := range map[string]struct {
		dialect      string
		kind         dialect.Kind
		known, found bool
	}{
		"POST /anthropic/v1/messages":                            {"anthropic", dialect.Generate, true, true},
		"POST /anthropic/v1/messages/count_tokens":               {"anthropic", dialect.Measure, true, true},
		"GET /anthropic/v1/models":                               {"anthropic", dialect.List, true, true},
		"HEAD /anthropic":                                        {"anthropic", dialect.Probe, true, true},
		"GET /anthropic/v1/messages":                             {"anthropic", 0, true, false},
		"POST /anthropic/v1/messages/":                           {"anthropic", 0, true, false},
		"POST /anthropic/v1/../v1/messages":                      {"anthropic", 0, true, false},
		"POST /anthropic/v1/files":                               {"anthropic", 0, true, false},
		"POST /anthropics/v1/messages":                           {},
		"POST /openai/v1/responses":                              {"openai-responses", dialect.Generate, true, true},
		"POST /openai/v1/chat/completions":                       {"openai-chat", dialect.Generate, true, true},
		"GET /openai/v1/models":                                  {"openai-chat", dialect.List, true, true},
		"GET /openai/v1/responses":                               {"openai-chat", 0, true, false},
		"POST /gemini/v1beta/models/a-1.5:generateContent":       {"gemini", dialect.Generate, true, true},
		"POST /gemini/v1beta/models/a-1.5:streamGenerateContent": {"gemini", dialect.Generate, true, true},
		"POST /gemini/v1beta/models/a-1.5:countTokens":           {"gemini", dialect.Measure, true, true},
		"GET /gemini/v1beta/models":                              {"gemini", dialect.List, true, true},
		"POST /gemini/v1beta/models/:generateContent":            {"gemini", 0, true, false},
		"POST /gemini/v1beta/models/a/b:generateContent":         {"gemini", 0, true, false},
		"POST /gemini/v1beta/models/a:b:generateContent":         {"gemini", 0, true, false},
		"POST /gemini/v1beta/models/a:batchGenerateContent":      {"gemini", 0, true, false},
		"POST /gemini/v1beta/cachedContents":                     {"gemini", 0, true, false},
		"POST /gemini/upload/v1beta/files":                       {"gemini", 0, true, false},
		"POST /v1/messages":                                      {},
		"GET /":                                                  {},
	} {
		method, path, _ := strings.Cut(request, " ")
		d, e, known, found := dialect.Serve(method, path)
		if d.Name != want.dialect || e.Kind != want.kind || known != want.known || found != want.found {
			t.Errorf("%s: %s, kind %d, known %v, found %v; want %+v", request, d.Name, e.Kind, known, found, want)
		}
	}
}

// TestDialects: what every entry of the list must have.
func TestDialects(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range dialect.All() {
		if found, ok := dialect.Find(d.Name); !ok || found.Prefix != d.Prefix || seen[d.Name] {
			t.Errorf("%s: listed twice, or not found", d.Name)
		}
		seen[d.Name] = true
		for _, status := range []int{400, 401, 403, 404, 413, 429, 500, 503, 504, 529} {
			var anything map[string]any
			body := d.Error(dialect.Failure{Status: status, Message: "say \"what\"\nis wrong"})
			if err := json.Unmarshal(body, &anything); err != nil || !strings.Contains(string(body), "is wrong") {
				t.Errorf("%s: error %d is %s: %v", d.Name, status, body, err)
			}
		}
		if broken := string(d.Broken(dialect.Failure{Status: 504, Message: "two\nlines"})); !strings.HasSuffix(broken, "\n\n") || strings.Count(broken, "\n\n") != 1 {
			t.Errorf("%s: a broken stream ends with %q, want one event", d.Name, broken)
		}
		for _, header := range []string{"Authorization", "X-Api-Key", "Cookie", "Host", "Connection", "Proxy-Authorization", "X-Forwarded-For", "Forwarded", "Transfer-Encoding", "Accept-Encoding", "Content-Type", "Content-Encoding", "Tidewaiter-Task"} {
			if d.Passes(header) {
				t.Errorf("%s: header %s of the agent reaches the provider", d.Name, header)
			}
		}
		if !d.Passes("User-Agent") || !d.Passes("accept") {
			t.Errorf("%s: a header that every request needs does not pass", d.Name)
		}
		if _, ok := dialect.Find("none"); ok {
			t.Error("a dialect that does not exist was found")
		}
	}
}

func TestRequest(t *testing.T) {
	for name, tc := range map[string]struct{ body, model, want, err string }{
		"first":               {`{"model":"a","x":[1,{"model":"c"}]}`, "a", `{"model":"b\"","x":[1,{"model":"c"}]}`, ""},
		"with room around it": {" {\n \"x\": 1.50 ,\"model\" :\t\"\\u0061\" , \"y\":\"\\ud83d\"}\n", "a", " {\n \"x\": 1.50 ,\"model\" :\t\"b\\\"\" , \"y\":\"\\ud83d\"}\n", ""},
		"not UTF-8":           {"{\"model\":\"a\",\"x\":\"\xff\"}", "a", "{\"model\":\"b\\\"\",\"x\":\"\xff\"}", ""},
		"none":                {`{"x":{"model":"a"}}`, "", "", `no member "model"`},
		"not a text":          {`{"model":7}`, "", "", "is not a string"},
		"twice":               {`{"model":"a","model":"b"}`, "", "", "duplicate"},
		"twice, escaped":      {`{"model":"a","mod\u0065l":"b"}`, "", "", "duplicate"},
		"twice, within":       {`{"model":"a","x":{"y":1,"y":2}}`, "", "", "duplicate"},
		"not an object":       {`["model"]`, "", "", "not a JSON object"},
		"cut short":           {`{"model":"a"`, "", "", "not JSON"},
		"no JSON":             {`model=a`, "", "", "not JSON"},
		"something after it":  {`{"model":"a"} {}`, "", "", "data after its JSON"},
		"nothing":             {``, "", "", "not JSON"},
		"too deep":            {`{"model":"a","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "", "", "depth"},
	} {
		r, err := find("anthropic").ReadRequest([]byte(tc.body))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %q", name, err, tc.err)
			}
			continue
		}
		if err != nil || r.Model != tc.model {
			t.Errorf("%s: model %q, %v", name, r.Model, err)
			continue
		}
		if diff := cmp.Diff(tc.want, body(t, r, `b"`, "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := body(t, r, tc.model, ""); got != tc.body {
			t.Errorf("%s: the same model makes it %s", name, got)
		}
	}
}

func find(name string) dialect.Dialect {
	d, _ := dialect.Find(name)
	return d
}

func body(t testing.TB, r dialect.Request, model, text string) string {
	t.Helper()
	b, err := r.Body(dialect.Edit{Model: model, Before: dialect.Quote(text)})
	if err != nil {
		t.Fatalf("body: %v", err)
	}
	return string(b)
}

// TestText: a text comes before all that the agent says to the model, and what the agent says stays as it is, byte by byte.
func TestText(t *testing.T) {
	const text = "say \"no\"\n<!-- é -->\u2028"
	const in = `say \"no\"\n<!-- é -->` + "\u2028"
	for name, tc := range map[string]struct{ dialect, body, want string }{
		"Anthropic, none":          {"anthropic", ` { "model":"a", "x": 1.0}`, ` {"system":"` + in + `", "model":"a", "x": 1.0}`},
		"Anthropic, null":          {"anthropic", `{"system": null,"model":"a"}`, `{"system": "` + in + `","model":"a"}`},
		"Anthropic, a text":        {"anthropic", `{"model":"a","system": "\u0041 \/"}`, `{"model":"a","system": "` + in + `\u0041 \/"}`},
		"Anthropic, a list":        {"anthropic", `{"system": [ {"type":"text","text":"b","cache_control":{}}],"model":"a"}`, `{"system": [{"type":"text","text":"` + in + `"}, {"type":"text","text":"b","cache_control":{}}],"model":"a"}`},
		"Anthropic, an empty list": {"anthropic", `{"system":[ ],"model":"a"}`, `{"system":[{"type":"text","text":"` + in + `"} ],"model":"a"}`},
		"Anthropic, odd":           {"anthropic", `{"system":{"a":1},"model":"a"}`, `"system" of the request is neither a string nor a list`},
		"Responses, none":          {"openai-responses", `{"model":"a","input":"hi"}`, `{"instructions":"` + in + `","model":"a","input":"hi"}`},
		"Responses, a text":        {"openai-responses", `{"model":"a","instructions":"code","input":[]}`, `{"model":"a","instructions":"` + in + `code","input":[]}`},
		"Chat, none":               {"openai-chat", `{"model":"a","messages":[{"role":"user","content":"hi"}]}`, `{"model":"a","messages":[{"role":"system","content":"` + in + `"},{"role":"user","content":"hi"}]}`},
		"Chat, system":             {"openai-chat", `{"model":"a","messages":[{"content":"code","role":"system"},{"role":"user","content":"hi"}]}`, `{"model":"a","messages":[{"content":"` + in + `code","role":"system"},{"role":"user","content":"hi"}]}`},
		"Chat, developer, a list":  {"openai-chat", `{"messages": [ {"role":"developer","content":[{"type":"text","text":"code"}]}],"model":"a"}`, `{"messages": [ {"role":"developer","content":[{"type":"text","text":"` + in + `"},{"type":"text","text":"code"}]}],"model":"a"}`},
		"Chat, system, no content": {"openai-chat", `{"messages":[{"role":"system"}],"model":"a"}`, `{"messages":[{"role":"system","content":"` + in + `"},{"role":"system"}],"model":"a"}`},
		"Chat, empty":              {"openai-chat", `{"messages":[],"model":"a"}`, `{"messages":[{"role":"system","content":"` + in + `"}],"model":"a"}`},
		"Chat, odd roles":          {"openai-chat", `{"messages":[{"role":7,"content":"x"}],"model":"a"}`, `{"messages":[{"role":"system","content":"` + in + `"},{"role":7,"content":"x"}],"model":"a"}`},
		"Chat, odd content":        {"openai-chat", `{"messages":[{"role":"system","content":7}],"model":"a"}`, `"messages[0].content" of the request is neither`},
		"Chat, no messages":        {"openai-chat", `{"model":"a"}`, `"messages" of the request is not a list`},
		"Gemini, none":             {"gemini", `{"contents":[]}`, `{"systemInstruction":{"parts":[{"text":"` + in + `"}]},"contents":[]}`},
		"Gemini, null":             {"gemini", `{"system_instruction":null}`, `{"system_instruction":{"parts":[{"text":"` + in + `"}]}}`},
		"Gemini, parts":            {"gemini", `{"systemInstruction":{"role":"user", "parts": [ {"text":"b"}]}}`, `{"systemInstruction":{"role":"user", "parts": [{"text":"` + in + `"}, {"text":"b"}]}}`},
		"Gemini, no parts":         {"gemini", `{"systemInstruction":{"role":"user"}}`, `{"systemInstruction":{"parts":[{"text":"` + in + `"}],"role":"user"}}`},
		"Gemini, an empty one":     {"gemini", `{"systemInstruction":{}}`, `{"systemInstruction":{"parts":[{"text":"` + in + `"}]}}`},
		"Gemini, odd":              {"gemini", `{"systemInstruction":"code"}`, `"systemInstruction" of the request is not an object`},
		"Gemini, odd parts":        {"gemini", `{"systemInstruction":{"parts":7}}`, `"systemInstruction" of the request is not an object`},
		"Chat, odd messages":       {"openai-chat", `{"model":"a","messages":{}}`, `"messages" of the request is not a list`},
	} {
		r, err := find(tc.dialect).ReadRequest([]byte(tc.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := r.Body(dialect.Edit{Model: "a", Before: dialect.Quote(text)})
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != tc.want && (err == nil || !strings.HasPrefix(string(got), tc.want)) {
			t.Errorf("%s:\n%s, want\n%s", name, got, tc.want)
		}
		// Another model and a text at once are each of them.
		if both, err := r.Body(dialect.Edit{Model: "other", Before: dialect.Quote(text)}); err == nil && string(both) != strings.Replace(tc.want, `"model":"a"`, `"model":"other"`, 1) {
			t.Errorf("%s: with another model: %s", name, both)
		}
	}
}

// TestObjections: what is said about an answer stands at the end of the conversation, after the answer.
func TestObjections(t *testing.T) {
	for name, tc := range map[string]struct {
		dialect, body, before, answer, want string
	}{
		"Anthropic":               {"anthropic", `{"model":"a","messages":[{"role":"user","content":"hi"} ],"x":1}`, "", `a "text"`, `{"model":"a","messages":[{"role":"user","content":"hi"} ,{"role":"assistant","content":"a \"text\""},{"role":"user","content":"Again."}],"x":1}`},
		"Anthropic, before":       {"anthropic", `{"model":"a","messages":[{"role":"user","content":"hi"}]}`, "First.", "x", `{"system":"First.","model":"a","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"x"},{"role":"user","content":"Again."}]}`},
		"no answer":               {"anthropic", `{"model":"a","messages":[1]}`, "", "", `{"model":"a","messages":[1,{"role":"user","content":"Again."}]}`},
		"Responses, a list":       {"openai-responses", `{"model":"a","input":[{"role":"user"}]}`, "", "x", `{"model":"a","input":[{"role":"user"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Again."}]}]}`},
		"Responses, a text":       {"openai-responses", `{"input":"hi","model":"a"}`, "", "", `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Again."}]}],"model":"a"}`},
		"Chat":                    {"openai-chat", `{"messages":[{"role":"system","content":"s"}],"model":"a"}`, "First.", "x", `{"messages":[{"role":"system","content":"First.s"},{"role":"assistant","content":"x"},{"role":"user","content":"Again."}],"model":"a"}`},
		"Chat, empty":             {"openai-chat", `{"messages":[],"model":"a"}`, "First.", "", `{"messages":[{"role":"system","content":"First."},{"role":"user","content":"Again."}],"model":"a"}`},
		"Gemini":                  {"gemini", `{"contents":[{"parts":[{"text":"hi"}]}]}`, "First.", "x", `{"systemInstruction":{"parts":[{"text":"First."}]},"contents":[{"parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"x"}]},{"role":"user","parts":[{"text":"Again."}]}]}`},
		"no conversation":         {"anthropic", `{"model":"a"}`, "", "", `the request has no member "messages"`},
		"an odd conversation":     {"openai-responses", `{"model":"a","input":7}`, "", "", `"input" of the request is neither a string nor a list`},
		"an odd one, in messages": {"anthropic", `{"model":"a","messages":null}`, "", "", `"messages" of the request is neither a string nor a list`},
	} {
		r, err := find(tc.dialect).ReadRequest([]byte(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Body(dialect.Edit{Model: "a", Before: dialect.Quote(tc.before), Objections: []dialect.Objection{{Answer: tc.answer, Text: "Again."}}})
		if err != nil {
			got = []byte(err.Error())
		}
		if diff := cmp.Diff(tc.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRequestsWithTools are told from those without.
func TestRequestsWithTools(t *testing.T) {
	for body, want := range map[string]bool{`{"model":"a","tools":[{"name":"x"}]}`: true, `{"model":"a","tools":[ ]}`: false, `{"model":"a","tools":null}`: false, `{"model":"a"}`: false} {
		for _, d := range dialect.All() {
			if r, err := d.ReadRequest([]byte(body)); err != nil || r.Tools != want {
				t.Errorf("%s: %s: %v, %v", d.Name, body, r.Tools, err)
			}
		}
	}
}

// TestTwoSpellings of one member are refused: gateway and provider could take different ones.
func TestTwoSpellings(t *testing.T) {
	for _, body := range []string{
		`{"systemInstruction":{},"system_instruction":{}}`, `{"tool_config":{},"toolConfig":{}}`, `{"contents":[],"contents_":[]}`, `{"tools":[],"tools_":[{}]}`, `{"model":"a","model_":"b"}`,
	} {
		if _, err := find("gemini").ReadRequest([]byte(body)); err == nil || !strings.Contains(err.Error(), "two spellings") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestAPrefixStays: what a provider has cached of a conversation is found again in its next turn: with the same text before
// it, a longer conversation still begins with the shorter one.
func TestAPrefixStays(t *testing.T) {
	text := strings.Repeat("Follow the house rules.\n", 40)
	for name, frame := range map[string][2]string{
		"anthropic":        {`{"model":"a","system":[{"type":"text","text":"You write code.","cache_control":{"type":"ephemeral"}}],"messages":[`, `]}`},
		"openai-responses": {`{"model":"a","instructions":"You write code.","input":[`, `]}`},
		"openai-chat":      {`{"model":"a","messages":[{"role":"system","content":"You write code."}`, `]}`},
	} {
		var before string
		turns := frame[0]
		for turn := range 40 {
			if !strings.HasSuffix(turns, "[") {
				turns += ","
			}
			turns += fmt.Sprintf(`{"role":"user","content":"turn %d \ud83d"}`, turn)
			r, err := find(name).ReadRequest([]byte(turns + frame[1]))
			if err != nil {
				t.Fatal(err)
			}
			now := body(t, r, "large", text)
			if common := strings.TrimSuffix(before, frame[1]); !strings.HasPrefix(now, common) {
				t.Fatalf("%s, turn %d: %d bytes of the turn before, and not all are in this one", name, turn, len(common))
			}
			if before = now; !strings.Contains(now, "house rules") {
				t.Fatalf("%s: the text is not there", name)
			}
		}
	}
}

// longestModel is longer than any configured name of a model, in bytes. A request may have six times as much, which is a name whose bytes are all escaped.
const longestModel = 300

// FuzzRequest: what is spliced is the same JSON but for its model and the text before it.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a"}`, `{"x":[{"model":1}],"model":"\u0061","y":null}`, `{"model":"a"`, `{}`, "{\"model\":\"a\",\"\xff\":\"\xff\"}",
		`{"system":"a","model":"b"}`, `{"system":[],"model":"b"}`, `{"system":[{"type":"text","text":"a"}],"model":"b"}`, `{"instructions":null,"model":"b"}`,
		`{"messages":[{"role":"system","content":"a"}],"model":"b"}`, `{"messages":[{"content":["a"],"role":"developer"}],"model":"b"}`, `{"messages":[1],"model":"b"}`,
	} {
		f.Add([]byte(seed), "claude", "obey")
	}
	f.Fuzz(func(t *testing.T, given []byte, model, text string) {
		if model == "" || len(model) > longestModel || !utf8.ValidString(model) || !utf8.ValidString(text) { // both together may be valid where neither is
			return
		}
		for _, d := range dialect.All() {
			r, err := d.ReadRequest(given)
			if err != nil {
				return
			}
			var before, after map[string]json.RawMessage
			if err := json.Unmarshal(given, &before); err != nil {
				t.Fatalf("%q was read and is not JSON: %v", given, err)
			}
			spliced, err := r.Body(dialect.Edit{Model: model, Before: dialect.Quote(text)})
			if err != nil {
				continue
			}
			if err := json.Unmarshal(spliced, &after); err != nil {
				t.Fatalf("%s: %q became %q: %v", d.Name, given, spliced, err)
			}
			if again, err := d.ReadRequest(spliced); err != nil || again.Model != model {
				t.Fatalf("%s: %q became %q: model %q, %v", d.Name, given, spliced, again.Model, err)
			}
			// A null of four bytes becomes two quotes.
			if without, err := r.Body(dialect.Edit{Model: model}); err != nil || len(spliced)+2 < len(without)+len(text) {
				t.Fatalf("%s: %q became %q, without the text: %v", d.Name, given, spliced, err)
			}
			if told, err := r.Body(dialect.Edit{Model: model, Before: dialect.Quote(text), Objections: []dialect.Objection{{Answer: text, Text: "o"}, {Text: "p"}}}); err == nil && (!json.Valid(told) || len(told) <= len(spliced)) {
				t.Fatalf("%s: %q became %q", d.Name, given, told)
			}
			delete(before, "model")
			delete(after, "model")
			if text != "" {
				delete(before, d.System)
				delete(after, d.System)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%s: %q became %q:\n%s", d.Name, given, spliced, diff)
			}
		}
	})
}
