// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// roomy bounds have room for all that these tests give.
var roomy = conversation.GivenBounds{Results: 64, Text: 1 << 10, Texts: 4 << 10, Beyond: 1 << 10}

// given is a result of which all is kept. Of one that is not only text, all is what counts and text what is shown.
func given(call, tool, text string, all ...string) conversation.Given {
	whole := strings.Join(append(all, text)[:max(1, len(all))], "\n")
	sum := sha256.Sum256([]byte(whole))
	return conversation.Given{Call: call, Tool: tool, Bytes: int64(len(whole)), SHA256: hex.EncodeToString(sum[:]), Text: text}
}

func failed(g conversation.Given) conversation.Given {
	g.Failed = true
	return g
}

// results of a request that has passed the filter.
func results(t testing.TB, name, body string, bounds conversation.GivenBounds) ([]conversation.Given, int64) {
	t.Helper()
	d := find(name)
	r, err := d.ReadRequest([]byte(body))
	if err != nil {
		t.Fatalf("%.200s: %v", body, err)
	}
	if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
		t.Fatalf("%.200s: %v", body, err)
	}
	return r.Results(bounds)
}

// TestResultsThatAreNew: those behind what the model has said last, with the names of its tools; in every dialect.
func TestResultsThatAreNew(t *testing.T) {
	tool := map[string]string{"anthropic": "Bash", "openai-responses": "exec_command", "openai-chat": "bash", "gemini": "run_shell_command"}
	each(t, func(t *testing.T, l *listener) {
		w := l.wire
		name := tool[w.dialect]
		old := []string{w.user("Go."), w.call("a", "ls"), w.result("a", "old")}
		for what, tc := range map[string]struct {
			entries []string
			want    []conversation.Given
		}{
			"nothing was called":          {[]string{w.user("Go.")}, nil},
			"nothing is there":            {nil, nil},
			"the first":                   {old, []conversation.Given{given("a", name, "old")}},
			"behind another":              {append(old, w.call("b", "make"), w.result("b", "new\n\"ü\"\x00😀")), []conversation.Given{given("b", name, "new\n\"ü\"\x00😀")}},
			"a person says something":     {append(old, w.user("And?")), []conversation.Given{given("a", name, "old")}},
			"the model has heard it":      {append(old, w.model("Well."), w.user("Go on.")), nil},
			"several":                     {append(old, w.call("b", "x"), w.call("c", "y"), w.result("b", "1"), w.result("c", "2")), []conversation.Given{given("b", name, "1"), given("c", name, "2")}},
			"the answer has begun":        {append(old, w.model("{")), []conversation.Given{given("a", name, "old")}},
			"the answer has begun, later": {append(old, w.call("b", "x"), w.result("b", "new"), w.model("{")), []conversation.Given{given("b", name, "new")}},
		} {
			got, more := results(t, w.dialect, w.body("", true, tc.entries), roomy)
			if diff := cmp.Diff(tc.want, got); diff != "" || more != 0 {
				t.Errorf("%s: %d more (-want +got):\n%s", what, more, diff)
			}
		}
	})
}

// TestResultsOfEachKind: what clients and servers write, in the forms that dialects have.
func TestResultsOfEachKind(t *testing.T) {
	const picture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`
	for _, tc := range []struct {
		dialect, entries string
		want             []conversation.Given
	}{
		{"anthropic", `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}},{"type":"tool_use","id":"b","name":"Bash","input":{}},{"type":"tool_use","id":"c","name":"Shot","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"},` + picture + `,{"type":"text","text":"b"}]},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"no\u002e \ud83d\ude00 \ud83d"},{"type":"text","text":"hm"},{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"z","content":null}]}`,
			[]conversation.Given{given("c", "Shot", "a\n[image]\nb", "a", picture, "b"), failed(given("b", "Bash", "no. 😀 \ufffd")), given("a", "Read", ""), given("z", "", "")}},
		// Names and kinds may be escaped, and a message may have no list.
		{"anthropic", `{"role":"user","content":"x"},{"\u0072ole":"assi\u0073tant","content":[{"type":"tool_use","id":"\u0061","name":"R\u0065ad","input":{}}]},{"role":"user","content":[{"type":"tool\u005fresult","tool_use_id":"a","content":[{"type":"te\u0078t","text":"x"}]}]}`, []conversation.Given{given("a", "Read", "x")}},
		{"openai-chat", `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"b","type":"custom","custom":{"name":"patch","input":""}}]},
			{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},{"role":"tool","tool_call_id":"b","content":"PGID: 7"}`,
			[]conversation.Given{given("a", "read", "one\ntwo"), given("b", "patch", "PGID: 7")}},
		{"openai-responses", `{"type":"reasoning","encrypted_content":"x","summary":[]},{"type":"function_call","call_id":"a","name":"exec","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"apply_patch","input":"x"},{"type":"local_shell_call","id":"c","action":{}},{"type":"shell_call","call_id":"d","action":{}},
			{"type":"function_call_output","call_id":"a","output":"Wall time: 1 seconds\nOutput:\nx"},{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"done"}]},{"type":"local_shell_call_output","id":"c","output":"x","status":"failed"},{"type":"shell_call_output","call_id":"d","output":[{"stdout":"x","stderr":""}],"status":"incomplete"},
			{"type":"message","role":"developer","content":"note"}`,
			[]conversation.Given{given("a", "exec", "Wall time: 1 seconds\nOutput:\nx"), given("b", "apply_patch", "done"), failed(given("c", "local_shell_call", "x")), failed(given("d", "shell_call", `{"stdout":"x","stderr":""}`))}},
		{"gemini", `{"role":"model","parts":[{"functionCall":{"name":"ls","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"x"}}},{"function_response":{"id":"b","name":"cat","response":{"error":"no such file"}}},{"functionResponse":{"name":"all","response":{"output":"x","rest":1}}},{"functionResponse":{"name":"shot","response":{"output":"seen"},"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}}]}`,
			[]conversation.Given{given("", "ls", "x"), failed(given("b", "cat", "no such file")), given("", "all", `{"output":"x","rest":1}`), given("", "shot", "seen\n[parts]", "seen", `[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]`)}},
	} {
		member := find(tc.dialect).History
		body := `{"model":"m","` + member + `":[` + tc.entries + `]}`
		got, more := results(t, tc.dialect, body, roomy)
		if diff := cmp.Diff(tc.want, got); diff != "" || more != 0 {
			t.Errorf("%s: %d more (-want +got):\n%s", tc.dialect, more, diff)
		}
	}
}

// TestResultsAreBounded: in number, by the text of each and of all. Without room for texts everything else is there.
func TestResultsAreBounded(t *testing.T) {
	bounds := conversation.GivenBounds{Results: 5, Text: 10, Texts: 25, Beyond: 3}
	each(t, func(t *testing.T, l *listener) {
		w := l.wire
		entries := []string{w.user("Go.")}
		for n := range 8 {
			entries = append(entries, w.result(fmt.Sprint(n), strings.Repeat(fmt.Sprint(n), 12)))
		}
		body := w.body("", true, entries)
		got, more := results(t, w.dialect, body, bounds)
		var texts []string
		for n, g := range got {
			if want := given(fmt.Sprint(n), g.Tool, strings.Repeat(fmt.Sprint(n), 12)); g.SHA256 != want.SHA256 || g.Bytes != 12 || g.Call != want.Call {
				t.Errorf("%+v", g)
			}
			texts = append(texts, g.Text)
		}
		if diff := cmp.Diff([]string{"000000000000", "111111111111", "22222222", "", ""}, texts); diff != "" || more != 3 {
			t.Errorf("%d more (-want +got):\n%s", more, diff)
		}
		got, more = results(t, w.dialect, body, conversation.GivenBounds{Results: 8})
		for _, g := range got {
			if g.Text != "" || g.Bytes != 12 || len(g.SHA256) != 64 {
				t.Errorf("without texts: %+v", g)
			}
		}
		if len(got) != 8 || more != 0 {
			t.Errorf("without texts: %d, %d more", len(got), more)
		}
	})
}

// TestHostileResults: what the gateway lets through costs no more than its size, however many results, levels and escapes it has, and nothing that
// is kept is larger than its bound.
func TestHostileResults(t *testing.T) {
	const many = 100_000
	bounds := conversation.GivenBounds{Results: 64, Text: 16 << 10, Texts: 64 << 10, Beyond: 64 << 10}
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	deeper := "[" + strings.Repeat(deep+",", (8<<20)/len(deep)) + "0]"
	repeated := func(one string) string { return strings.TrimSuffix(strings.Repeat(one+",", many), ",") }
	long := strings.Repeat("x", 8<<20)
	for what, tc := range map[string]struct {
		dialect, entries string
		list             int
		more             int64
	}{
		"results":              {"anthropic", `{"role":"user","content":[` + repeated(`{"type":"tool_result"}`) + `]}`, 64, many - 64},
		"messages":             {"anthropic", repeated(`{"role":"user","content":[{"type":"tool_result"}]}`), 64, many - 64},
		"outputs":              {"openai-responses", repeated(`{"type":"function_call_output","call_id":"a"}`), 64, many - 64},
		"tools":                {"openai-chat", repeated(`{"role":"tool"}`), 64, many - 64},
		"parts":                {"gemini", `{"parts":[` + repeated(`{"functionResponse":{}}`) + `]}`, 64, many - 64},
		"calls":                {"anthropic", `{"role":"assistant","content":[` + repeated(`{"type":"tool_use","id":"\u0061","name":"b"}`) + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}`, 1, 0},
		"turns":                {"openai-chat", repeated(`{"role":"assistant"},{"role":"tool"}`), 1, 0},
		"levels":               {"anthropic", `{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":` + deeper + `}]}]}`, 1, 0},
		"levels of a response": {"gemini", `{"parts":[{"functionResponse":{"response":{"output":` + deeper + `}}}]}`, 1, 0},
		"a long text":          {"anthropic", `{"role":"user","content":[{"type":"tool_result","content":"` + long + `"}]}`, 1, 0},
		"a long name":          {"openai-chat", `{"role":"tool","tool_call_id":"` + long + `"}`, 1, 0},
		"a long escaped name":  {"openai-chat", `{"role":"tool","tool_call_id":"` + strings.Repeat(`\u0061`, 1<<20) + `"}`, 1, 0},
		"escapes":              {"anthropic", `{"role":"user","content":[{"type":"tool_result","content":"` + strings.Repeat(`\n\ud83d\ude00`, 1<<19) + `"}]}`, 1, 0},
		"a role that is long":  {"openai-chat", `{"role":"` + long + `"},{"role":"tool"}`, 1, 0},
	} {
		t.Run(what, func(t *testing.T) {
			d := find(tc.dialect)
			body := []byte(`{"model":"m","` + d.History + `":[` + tc.entries + `]}`)
			r, err := d.ReadRequest(body)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			list, more := r.Results(bounds)
			runtime.ReadMemStats(&after)
			if len(list) != tc.list || more != tc.more {
				t.Errorf("%d, and %d more; want %d and %d", len(list), more, tc.list, tc.more)
			}
			size := 0
			for _, g := range list {
				if len(g.Call) > conversation.MaxGivenName || len(g.Tool) > conversation.MaxGivenName || len(g.Text) > bounds.Text+bounds.Beyond {
					t.Errorf("%d bytes of ID, %d of name, %d of text", len(g.Call), len(g.Tool), len(g.Text))
				}
				size += g.Size()
			}
			if most := bounds.Most(len(body)); size > most {
				t.Errorf("%d bytes are kept, want at most %d", size, most)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > uint64(2*len(body)+1<<20) {
				t.Errorf("%d bytes were allocated for a request of %d", used, len(body))
			}
		})
	}
}

// FuzzResults: no request that passes makes it panic; what is kept is bounded, and a text that is kept whole has the size that is said of it where it
// is nothing but text.
func FuzzResults(f *testing.F) {
	for _, w := range wires() {
		f.Add(w.body("", true, []string{w.user("Go."), w.call("a", "ls"), w.result("a", "x\n\\\"😀"), w.user("And?")}))
	}
	f.Add(`{"model":"m","input":[7,null,"x",[],{"type":7},{"type":"function_call_output","output":[7,null,"x",[],{}]}],"messages":[7,null,"x",[],{"role":"tool","content":7},{"role":"user","content":[7,{"type":"tool_result","content":{"a":[]}}]}],"contents":{"parts":{"functionResponse":{"response":7}}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		bounds := conversation.GivenBounds{Results: 4, Text: 16, Texts: 40, Beyond: 8}
		for _, d := range dialect.All() {
			r, err := d.ReadRequest([]byte(body))
			if err != nil {
				continue
			}
			list, more := r.Results(bounds)
			size := 0
			for _, g := range list {
				size += len(g.Text)
				if len(g.Text) > bounds.Text+bounds.Beyond || len(g.SHA256) != 64 || g.Bytes < 0 {
					t.Fatalf("%s: %+v", d.Name, g)
				}
			}
			if len(list) > bounds.Results || more > 0 && len(list) < bounds.Results || size > bounds.Texts+3*bounds.Beyond+bounds.Text {
				t.Fatalf("%s: %d results with %d bytes, and %d more", d.Name, len(list), size, more)
			}
			all, _ := r.Results(conversation.GivenBounds{Results: 4})
			if len(all) != len(list) {
				t.Fatalf("%s: %d results without texts, %d with them", d.Name, len(all), len(list))
			}
			for i := range all {
				if all[i].SHA256 != list[i].SHA256 || all[i].Call != list[i].Call {
					t.Fatalf("%s: %+v, %+v", d.Name, all[i], list[i])
				}
			}
		}
	})
}
