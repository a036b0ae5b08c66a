// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// TestLimit reads what a request says about its answer, and lowers that without another byte changed.
func TestLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		dialect, body string
		want          dialect.Limit
		// to is what the limit is lowered to, member where there is none, and out the request then.
		to     int64
		member string
		out    string
	}{
		"Anthropic": {
			"anthropic", `{"model":"m", "max_tokens": 32000,"thinking":{"type":"enabled","budget_tokens":1600}}`, dialect.Limit{Tokens: 32_000, Choices: 1, Thinking: 1600},
			2000, "", `{"model":"m", "max_tokens": 2000,"thinking":{"type":"enabled","budget_tokens":1600}}`,
		},
		"a lower limit stays":      {"anthropic", `{"model":"m","max_tokens":10}`, dialect.Limit{Tokens: 10, Choices: 1}, 2000, "", `{"model":"m","max_tokens":10}`},
		"a limit that is a float":  {"anthropic", `{"model":"m","max_tokens":3.2e4}`, dialect.Limit{Tokens: 32_000, Choices: 1}, 2000, "", `{"model":"m","max_tokens":2000}`},
		"a limit that is no limit": {"anthropic", `{"model":"m","max_tokens":-1}`, dialect.Limit{Choices: 1}, 2000, "", `{"model":"m","max_tokens":2000}`},
		"a limit of many digits":   {"anthropic", `{"model":"m","max_tokens":1e400}`, dialect.Limit{Choices: 1}, 2000, "", `{"model":"m","max_tokens":2000}`},
		"Responses":                {"openai-responses", `{"model":"m","max_output_tokens":null}`, dialect.Limit{Choices: 1}, 2000, "", `{"model":"m","max_output_tokens":2000}`},
		"Responses, none":          {"openai-responses", `{"model":"m","top_p":1}`, dialect.Limit{Choices: 1}, 2000, "", `{"max_output_tokens":2000,"model":"m","top_p":1}`},
		"Chat":                     {"openai-chat", `{"model":"m","n":3,"max_tokens":9000}`, dialect.Limit{Tokens: 9000, Choices: 3}, 2000, "max_completion_tokens", `{"model":"m","n":3,"max_tokens":2000}`},
		"Chat, the newer member":   {"openai-chat", `{"model":"m","max_completion_tokens":9000}`, dialect.Limit{Tokens: 9000, Choices: 1}, 2000, "", `{"model":"m","max_completion_tokens":2000}`},
		"Chat, both": {
			"openai-chat", `{"model":"m","max_completion_tokens":9000,"max_tokens":50000}`, dialect.Limit{Tokens: 50_000, Choices: 1}, 10_000, "",
			`{"model":"m","max_completion_tokens":9000,"max_tokens":10000}`,
		},
		"Chat, none":                {"openai-chat", `{ "model":"m"}`, dialect.Limit{Choices: 1}, 2000, "", `{"max_tokens":2000, "model":"m"}`},
		"Chat, none at OpenAI":      {"openai-chat", `{"model":"m"}`, dialect.Limit{Choices: 1}, 2000, "max_completion_tokens", `{"max_completion_tokens":2000,"model":"m"}`},
		"Gemini":                    {"gemini", `{"contents":[],"generationConfig":{"candidateCount":2,"maxOutputTokens":9000}}`, dialect.Limit{Tokens: 9000, Choices: 2}, 2000, "", `{"contents":[],"generationConfig":{"candidateCount":2,"maxOutputTokens":2000}}`},
		"Gemini, the other way":     {"gemini", `{"contents":[],"generation_config":{"max_output_tokens":"9000"}}`, dialect.Limit{Tokens: 9000, Choices: 1}, 2000, "", `{"contents":[],"generation_config":{"max_output_tokens":2000}}`},
		"Gemini, without a limit":   {"gemini", `{"contents":[],"generationConfig":{"topP":1}}`, dialect.Limit{Choices: 1}, 2000, "", `{"contents":[],"generationConfig":{"maxOutputTokens":2000,"topP":1}}`},
		"Gemini, an empty config":   {"gemini", `{"contents":[],"generationConfig":{ }}`, dialect.Limit{Choices: 1}, 2000, "", `{"contents":[],"generationConfig":{"maxOutputTokens":2000 }}`},
		"Gemini, null":              {"gemini", `{"contents":[],"generationConfig":null}`, dialect.Limit{Choices: 1}, 2000, "", `{"contents":[],"generationConfig":{"maxOutputTokens":2000}}`},
		"Gemini, without a config":  {"gemini", `{"contents":[]}`, dialect.Limit{Choices: 1}, 2000, "", `{"generationConfig":{"maxOutputTokens":2000},"contents":[]}`},
		"Gemini, not a config":      {"gemini", `{"contents":[],"generationConfig":7}`, dialect.Limit{Choices: 1}, 2000, "", `{"contents":[],"generationConfig":7}`},
		"a name with escapes":       {"anthropic", `{"model":"m","max\u005ftokens":9000}`, dialect.Limit{Tokens: 9000, Choices: 1}, 2000, "", `{"model":"m","max\u005ftokens":2000}`},
		"no more than any provider": {"openai-chat", `{"model":"m","n":1e30}`, dialect.Limit{Choices: 1<<31 - 1}, 5, "", `{"max_tokens":5,"model":"m","n":1e30}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := readThrough(t, tc.dialect, tc.body)
			if got := r.Limit(nil); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			edit := dialect.Edit{Model: "m", Limit: tc.to, LimitMember: tc.member}
			out, err := r.Body(edit)
			if tc.dialect == "openai-responses" { // which are told not to store
				out = []byte(withoutStore(string(out)))
			}
			if err != nil || string(out) != tc.out {
				t.Errorf("%s %v", out, err)
			}
		})
	}
}

// FuzzLimit: a request with a lower limit is read, and its limit is no higher.
func FuzzLimit(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","max_tokens":9,"max_completion_tokens":3,"n":2,"thinking":{"budget_tokens":7}}`, `{"model":"m"}`, `{"model":"m","generation_config":{"max_output_tokens":"12"},"generationConfig":null}`,
		`{"model":"m","generationConfig":{"maxOutputTokens":1,"max_output_tokens":1e9}}`, `{"model":"m","max_output_tokens":[{}]}`,
	} {
		f.Add(body, uint16(5))
	}
	f.Fuzz(func(t *testing.T, body string, to uint16) {
		for _, d := range dialect.All() {
			r, err := d.ReadRequest([]byte(body))
			if err != nil || to == 0 {
				continue
			}
			if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
				continue
			}
			before := r.Limit(nil)
			out, err := r.Body(dialect.Edit{Model: r.Model, Limit: int64(to)})
			if err != nil {
				t.Fatal(err)
			}
			again, err := d.ReadRequest(out)
			if err != nil {
				t.Fatalf("%s: %q became %q: %v", d.Name, body, out, err)
			}
			if again, err = again.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
				t.Fatalf("%s: %q became %q: %v", d.Name, body, out, err)
			}
			if after := again.Limit(nil); after.Tokens > int64(to) || after.Choices != before.Choices || after.Thinking != before.Thinking {
				t.Fatalf("%s: %q became %q, and %+v is %+v", d.Name, body, out, before, after)
			}
		}
	})
}

// withoutStore undoes what every request of Responses gets that does not say whether it is stored.
func withoutStore(body string) string {
	return strings.Replace(body, `"store":false,`, "", 1)
}

// TestLimitNobodyUnderstands: a number that is read in another way by some servers counts as the most that they could read.
func TestLimitNobodyUnderstands(t *testing.T) {
	const most = 1<<31 - 1
	for _, n := range []string{`" 128 "`, `"١٢٨"`, `128.` + strings.Repeat("0", 80), `[128]`, `true`, `-1`, `"x"`} {
		if got, want := readThrough(t, "openai-chat", `{"model":"m","n":`+n+`,"max_tokens":9}`).Limit(nil), (dialect.Limit{Tokens: 9, Choices: most}); got != want {
			t.Errorf("n is %.20s: %+v, want %+v", n, got, want)
		}
		if got, want := readThrough(t, "gemini", `{"contents":[],"generationConfig":{"candidateCount":`+n+`}}`).Limit(nil), (dialect.Limit{Choices: most}); got != want {
			t.Errorf("candidateCount is %.20s: %+v, want %+v", n, got, want)
		}
		for _, body := range []string{`{"model":"m","max_tokens":9,"max_completion_tokens":` + n + `}`, `{"model":"m","max_tokens":` + n + `,"max_completion_tokens":9}`} {
			if got, want := readThrough(t, "openai-chat", body).Limit(nil), (dialect.Limit{Choices: 1}); got != want {
				t.Errorf("%s: %+v, want no limit", body, got)
			}
		}
	}
	for _, none := range []string{`"n":null,"max_tokens":null,"max_completion_tokens":9`, `"max_completion_tokens":9`} {
		if got, want := readThrough(t, "openai-chat", `{"model":"m",`+none+`}`).Limit(nil), (dialect.Limit{Tokens: 9, Choices: 1}); got != want {
			t.Errorf("%s: %+v, want %+v", none, got, want)
		}
	}
}

// TestLimitThatABackendDoesNotGet is none: it neither bounds what is reserved, nor keeps a limit away.
func TestLimitThatABackendDoesNotGet(t *testing.T) {
	for name, tc := range map[string]struct{ dialect, body, member, without, out string }{
		"Chat":     {"openai-chat", `{"model":"m","Max-Tokens":3}`, "", "max_tokens", ""},
		"stripped": {"openai-chat", `{"model":"m","max_tokens":3}`, "max_completion_tokens", "max_tokens", `{"max_completion_tokens":7,"model":"m"}`},
		"Gemini":   {"gemini", `{"contents":[],"generation_config":{"maxOutputTokens":3}}`, "", "generation_config", `{"generationConfig":{"maxOutputTokens":7},"contents":[]}`},
	} {
		d, _ := dialect.Find(tc.dialect)
		r, err := d.ReadRequest([]byte(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
			if tc.out != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		without := dialect.Fold(tc.without)
		if got := r.Limit(without); got.Tokens != 0 {
			t.Errorf("%s: %+v, want no limit", name, got)
		}
		if out, err := r.Body(dialect.Edit{Model: r.Model, Limit: 7, LimitMember: tc.member, Without: without}); err != nil || string(out) != tc.out {
			t.Errorf("%s: %s, want %s, %v", name, out, tc.out, err)
		}
	}
}

// TestLimitThatABackendDoesNotRead is not believed, and another one takes its place.
func TestLimitThatABackendDoesNotRead(t *testing.T) {
	r := readThrough(t, "openai-chat", `{"model":"m","max_completion_tokens":1}`)
	unread := dialect.Fold("max_completion_tokens")
	if got := r.Limit(unread); got.Tokens != 0 {
		t.Errorf("%+v, want no limit", got)
	}
	const want = `{"max_tokens":7,"model":"m"}`
	if out, err := r.Body(dialect.Edit{Model: "m", Limit: 7, Unread: unread}); err != nil || string(out) != want {
		t.Errorf("%s, want %s, %v", out, want, err)
	}
}
