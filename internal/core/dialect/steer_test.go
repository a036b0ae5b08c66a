// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// endsOf the entries of a request.
func endsOf(r Request) (ends []int) {
	c, at := r.Conversation(), 0
	for {
		_, end, ok := c.Next(at)
		if !ok {
			return ends
		}
		ends, at = append(ends, end), end
	}
}

// TestSteer: where a supervisor's words stand in each dialect. What comes after the arrow is the whole request, with nothing else changed.
func TestSteer(t *testing.T) {
	const said = `[SUPERVISOR] say "no"`
	for name, tc := range map[string]struct {
		dialect, body string
		s             Edits
		want          string
	}{
		"anthropic, behind results and before marks of what comes": {
			"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"a","name":"t","input":{}},{"type":"tool_use","id":"b","name":"t","input":{}}]}, {"content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"base64","data":"eA=="}}],"cache_control":{"type":"ephemeral"}}],"role":"user"}]}`,
			Edits{Notes: []Note{{After: 3, Text: said}}},
			`{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"a","name":"t","input":{}},{"type":"tool_use","id":"b","name":"t","input":{}}]}, {"content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"base64","data":"eA=="}}],"cache_control":{"type":"ephemeral"}},{"type":"text","text":"[SUPERVISOR] say \"no\""}],"role":"user"}]}`,
		},
		"anthropic, behind a text": {
			"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"}],"tools":[{}]}`, Edits{Notes: []Note{{After: 1, Text: said}}, NoTools: true},
			`{"tool_choice":{"type":"none"},"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"do"},{"type":"text","text":"[SUPERVISOR] say \"no\""}]}],"tools":[{}]}`,
		},
		"anthropic, behind the model's words": {"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","content":"{"}]}`, Edits{Notes: []Note{{After: 1, Text: said}, {After: 2, Text: said}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"do"},{"type":"text","text":"[SUPERVISOR] say \"no\""}]},{"role":"assistant","content":"{"}]}`},
		"anthropic, behind what the client says of itself": {
			"anthropic", `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":"Be brief."}]}`, Edits{Notes: []Note{{After: 2, Text: "x"}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":[{"type":"text","text":"Be brief."},{"type":"text","text":"x"}]}]}`,
		},
		"anthropic, an empty list":      {"anthropic", `{"model":"m","messages":[{"role":"user","content":[]}]}`, Edits{Notes: []Note{{After: 1, Text: "x"}}}, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`},
		"anthropic, no content":         {"anthropic", `{"model":"m","messages":[{"role":"user","content":null},{"role":"user","content":"b"}]}`, Edits{Notes: []Note{{After: 1, Text: "x"}}}, `{"model":"m","messages":[{"role":"user","content":null},{"role":"user","content":"x"},{"role":"user","content":"b"}]}`},
		"no such entry":                 {"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"}]}`, Edits{Notes: []Note{{After: 2, Text: said}}}, `{"model":"m","messages":[{"role":"user","content":"do"}]}`},
		"no conversation":               {"anthropic", `{"model":"m"}`, Edits{Notes: []Note{{After: 1, Text: said}}}, `{"model":"m"}`},
		"no tools where there are none": {"openai-chat", `{"model":"m","messages":[]}`, Edits{NoTools: true}, `{"model":"m","messages":[]}`},
		"chat, behind results and a text, and no tools": {"openai-chat", `{"model":"m","tool_choice":"auto","tools":[{}],"messages":[{"role":"user","content":"do"},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"}]}`,
			Edits{Notes: []Note{{1, said}, {4, "again"}}, NoTools: true},
			`{"model":"m","tool_choice":"none","tools":[{}],"messages":[{"role":"user","content":"do\n\n[SUPERVISOR] say \"no\""},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"user","content":"again"}]}`},
		"chat, what is left out": {"openai-chat", `{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"assistant","tool_calls":[1]},{"role":"tool","tool_call_id":"b","content":"2"}]}`,
			Edits{Notes: []Note{{1, "tried"}, {3, "gone too"}}, Cuts: []Cut{{1, 3}}},
			`{"model":"m","messages":[{"role":"user","content":"do\n\ntried"},{"role":"assistant","tool_calls":[1]},{"role":"tool","tool_call_id":"b","content":"2"}]}`},
		"responses, behind what is no message": {"openai-responses", `{"model":"m","input":[{"type":"reasoning"},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"1"}]}`, Edits{Notes: []Note{{1, "x"}, {2, "x"}}},
			`{"model":"m","input":[{"type":"reasoning"},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"1"}]}`},
		"a cut of everything": {"openai-chat", `{"model":"m","messages":[{"role":"user","content":"do"}]}`, Edits{Cuts: []Cut{{0, 1}}}, `{"model":"m","messages":[{"role":"user","content":"do"}]}`},
		"responses":           {"openai-responses", `{"model":"m","input":[{"type":"message","role":"user","content":[]},{"type":"reasoning"},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"1"}],"tool_choice":"auto","tools":[{}]}`, Edits{Notes: []Note{{4, "x"}}, NoTools: true}, `{"model":"m","input":[{"type":"message","role":"user","content":[]},{"type":"reasoning"},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]}],"tool_choice":"none","tools":[{}]}`},
		"gemini, behind a result and a text, and no tools": {"gemini", `{"contents":[{"role":"user","parts":[{"text":"do"}]},{"role":"model","parts":[{"functionCall":{"name":"t"},"thoughtSignature":"cw=="}]}, {"role":"user","parts":[{"functionResponse":{"name":"t","response":{}}}]}],"tool_config":{"functionCallingConfig":{"mode":"AUTO"}},"tools":[{"functionDeclarations":[{}]}]}`,
			Edits{Notes: []Note{{1, said}, {2, "x"}, {3, "again"}}, NoTools: true},
			`{"contents":[{"role":"user","parts":[{"text":"do"}]},{"role":"user","parts":[{"text":"[SUPERVISOR] say \"no\""}]},{"role":"model","parts":[{"functionCall":{"name":"t"},"thoughtSignature":"cw=="}]}, {"role":"user","parts":[{"functionResponse":{"name":"t","response":{}}}]},{"role":"user","parts":[{"text":"again"}]}],"tool_config":{"functionCallingConfig":{"mode":"NONE"}},"tools":[{"functionDeclarations":[{}]}]}`},
		"gemini, no tools":  {"gemini", `{"contents":[],"tools":[{}]}`, Edits{NoTools: true}, `{"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"contents":[],"tools":[{}]}`},
		"responses, a text": {"openai-responses", `{"model":"m","input":"do"}`, Edits{Notes: []Note{{1, "x"}}}, `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"do"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := Find(tc.dialect)
			r, err := d.ReadRequest([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			got := r.Steer(tc.s, endsOf(r))
			if diff := cmp.Diff(tc.want, string(got)); diff != "" || !json.Valid(got) {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if sent, err := d.ReadRequest(got); err != nil || sent.Bare() != (tc.s.NoTools && r.Tools) {
				t.Errorf("%v, %v", sent.Bare(), err)
			}
		})
	}
}

// TestHasPlace: nothing is said for the first time between a call and its result, or between what the model says.
func TestHasPlace(t *testing.T) {
	const model = "does not end with the text for its model"
	for _, tc := range []struct {
		dialect, history string
		// fails is, by entry, why nothing can be said behind it; "" where something can.
		fails []string
	}{
		{"anthropic", `[{"role":"user","content":"do"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"user","content":"mind"},{"role":"assistant","content":"I"}]`,
			[]string{"", model, "", "", model}},
		{"openai-chat", `[{"role":"user","content":"do"},{"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"user","content":"mind"}]`,
			[]string{"", model, "the result of a call follows", "", ""}},
		{"openai-responses", `[{"role":"user","content":"do"},{"type":"reasoning"},{"type":"function_call","call_id":"a"},{"type":"custom_tool_call","call_id":"b"},{"type":"function_call_output","call_id":"a"},{"type":"custom_tool_call_output","call_id":"b"},{"role":"user","content":"mind"}]`,
			[]string{"", model, model, model, "the result of a call follows", "", ""}},
		{"openai-responses", `[{"role":"user","content":"do"},{"type":"function_call","call_id":"a"}]`, []string{"", model}},
		{"openai-responses", `[{"role":"user","content":"do"},{"type":"message","role":"assistant","content":"so"}]`, []string{"", ""}},
		{"openai-responses", `"do"`, []string{""}},
		{"gemini", `[{"parts":[{"text":"do"}]},{"role":"model","parts":[{"functionCall":{"name":"t"}}]},{"role":"user","parts":[{"functionResponse":{"name":"t"}}]},{"role":"user","parts":[]}]`, []string{"", model, "", ""}},
		{"anthropic", `[]`, nil},
	} {
		d, _ := Find(tc.dialect)
		r, err := d.ReadRequest([]byte(`{"model":"m","` + d.History + `":` + tc.history + `}`))
		if err != nil {
			t.Fatal(err)
		}
		ends := endsOf(r)
		if len(ends) != len(tc.fails) {
			t.Fatalf("%s has %d entries", tc.history, len(ends))
		}
		for i, fails := range tc.fails {
			if err := r.HasPlace(i+1, ends); (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
				t.Errorf("behind entry %d of %s: %v, want %q", i+1, tc.history, err, fails)
			}
		}
		for _, after := range []int{0, len(ends) + 1} {
			if err := r.HasPlace(after, ends); err == nil {
				t.Errorf("behind entry %d of %s is a place", after, tc.history)
			}
		}
	}
	for body, want := range map[string]string{`{"model":"m"}`: `no member "messages"`, `{"model":"m","messages":"do"}`: "is not a list", `{"model":"m","messages":{}}`: "is not a list"} {
		d, _ := Find("anthropic")
		r, err := d.ReadRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.HasPlace(1, []int{4}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestSteerBehindWhatIsNoMessage: a list may have anything in it, and a note stands behind it as a message of its own.
func TestSteerBehindWhatIsNoMessage(t *testing.T) {
	for _, d := range All() {
		for _, odd := range []string{`7`, `null`, `"x"`, `[]`, `["content","x"]`, `{}`} {
			for _, list := range []string{odd + `,{"role":"user","content":"a"}`, `{"role":"user","content":"a"}, ` + odd, `{"role":"user","content":"a"},` + odd + `,{"role":"user","content":"b"}`} {
				r, err := d.ReadRequest([]byte(`{"model":"m","` + d.History + `":[` + list + `]}`))
				if err != nil {
					t.Fatal(err)
				}
				before, after, _ := strings.Cut(list, odd)
				want := `{"model":"m","` + d.History + `":[` + before + odd + "," + d.turn(false, "x") + after + `]}`
				if d.Name == "openai-responses" {
					want = strings.Replace(want, d.turn(false, "x"), responsesNote("x"), 1)
				}
				if diff := cmp.Diff(want, string(r.Steer(Edits{Notes: []Note{{strings.Count(before, "role") + 1, "x"}}}, endsOf(r)))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", d.Name, diff)
				}
			}
		}
	}
}
