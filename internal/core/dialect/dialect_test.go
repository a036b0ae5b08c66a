// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

func TestServe(t *testing.T) {
	for request, want := range map[string]struct {
		dialect      string
		kind         dialect.Kind
		known, found bool
	}{
		"POST /anthropic/v1/messages":              {"anthropic", dialect.Generate, true, true},
		"POST /anthropic/v1/messages/count_tokens": {"anthropic", dialect.Measure, true, true},
		"GET /anthropic/v1/models":                 {"anthropic", dialect.List, true, true},
		"HEAD /anthropic":                          {"anthropic", dialect.Probe, true, true},
		"GET /anthropic/v1/messages":               {"anthropic", 0, true, false},
		"POST /anthropic/v1/messages/":             {"anthropic", 0, true, false},
		"POST /anthropic/v1/../v1/messages":        {"anthropic", 0, true, false},
		"POST /anthropic/v1/files":                 {"anthropic", 0, true, false},
		"POST /anthropics/v1/messages":             {},
		"POST /openai/v1/responses":                {"openai-responses", dialect.Generate, true, true},
		"POST /openai/v1/chat/completions":         {"openai-chat", dialect.Generate, true, true},
		"GET /openai/v1/models":                    {"openai-chat", dialect.List, true, true},
		"GET /openai/v1/responses":                 {"openai-chat", 0, true, false},
		"POST /v1/messages":                        {},
		"GET /":                                    {},
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
		for _, header := range []string{"Authorization", "X-Api-Key", "Cookie", "Host", "Connection", "Proxy-Authorization", "X-Forwarded-For", "Forwarded", "Transfer-Encoding", "Accept-Encoding", "Tidewaiter-Task"} {
			if d.Passes(header) {
				t.Errorf("%s: header %s of the agent reaches the provider", d.Name, header)
			}
		}
		if !d.Passes("Content-Type") || !d.Passes("accept") {
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
		"not a text":          {`{"model":7}`, "", "", "is not a text"},
		"twice":               {`{"model":"a","model":"b"}`, "", "", "duplicate"},
		"twice, escaped":      {`{"model":"a","mod\u0065l":"b"}`, "", "", "duplicate"},
		"twice, within":       {`{"model":"a","x":{"y":1,"y":2}}`, "", "", "duplicate"},
		"not an object":       {`["model"]`, "", "", "not a JSON object"},
		"cut short":           {`{"model":"a"`, "", "", "not JSON"},
		"no JSON":             {`model=a`, "", "", "not JSON"},
		"something after it":  {`{"model":"a"} {}`, "", "", "follows"},
		"nothing":             {``, "", "", "not JSON"},
		"too deep":            {`{"model":"a","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "", "", "depth"},
	} {
		r, err := dialect.ReadRequest([]byte(tc.body))
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
		if diff := cmp.Diff(tc.want, string(r.WithModel(`b"`))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := r.WithModel(tc.model); string(got) != tc.body {
			t.Errorf("%s: the same model makes it %s", name, got)
		}
	}
}

// FuzzRequest: what is spliced is the same JSON but for its model.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{`{"model":"a"}`, `{"x":[{"model":1}],"model":"\u0061","y":null}`, `{"model":"a"`, `{}`, "{\"model\":\"a\",\"\xff\":\"\xff\"}"} {
		f.Add([]byte(seed), "claude")
	}
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		r, err := dialect.ReadRequest(body)
		if err != nil || model == "" {
			return
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatalf("%q was read and is not JSON: %v", body, err)
		}
		spliced := r.WithModel(model)
		if err := json.Unmarshal(spliced, &after); err != nil {
			t.Fatalf("%q became %q: %v", body, spliced, err)
		}
		if again, err := dialect.ReadRequest(spliced); err != nil || again.Model != strings.ToValidUTF8(model, "\ufffd") && strings.ToValidUTF8(model, "") == model {
			t.Fatalf("%q became %q: model %q, %v", body, spliced, again.Model, err)
		}
		delete(before, "model")
		delete(after, "model")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("%q became %q:\n%s", body, spliced, diff)
		}
	})
}
