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
		s             Steering
		want, fails   string
	}{
		"anthropic, behind results and before marks of what comes": {
			"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"a","name":"t","input":{}},{"type":"tool_use","id":"b","name":"t","input":{}}]}, {"content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"base64","data":"eA=="}}],"cache_control":{"type":"ephemeral"}}],"role":"user"}]}`,
			Steering{Notes: []Note{{After: 3, Text: said}}},
			`{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"a","name":"t","input":{}},{"type":"tool_use","id":"b","name":"t","input":{}}]}, {"content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"base64","data":"eA=="}}],"cache_control":{"type":"ephemeral"}},{"type":"text","text":"[SUPERVISOR] say \"no\""}],"role":"user"}]}`, "",
		},
		"anthropic, behind a text": {
			"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"}],"tools":[{}]}`, Steering{Notes: []Note{{After: 1, Text: said}}, NoTools: true},
			`{"tool_choice":{"type":"none"},"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"do"},{"type":"text","text":"[SUPERVISOR] say \"no\""}]}],"tools":[{}]}`, "",
		},
		"anthropic, behind the model's words": {"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","content":"{"}]}`, Steering{Notes: []Note{{After: 2, Text: said}}}, "", "does not end with what its model is told"},
		"anthropic, behind what the client says of itself": {
			"anthropic", `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":"Be brief."}]}`, Steering{Notes: []Note{{After: 2, Text: "x"}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":[{"type":"text","text":"Be brief."},{"type":"text","text":"x"}]}]}`, "",
		},
		"anthropic, an empty list":      {"anthropic", `{"model":"m","messages":[{"role":"user","content":[]}]}`, Steering{Notes: []Note{{After: 1, Text: "x"}}}, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, ""},
		"anthropic, no content":         {"anthropic", `{"model":"m","messages":[{"role":"user","content":null},{"role":"user","content":"b"}]}`, Steering{Notes: []Note{{After: 1, Text: "x"}}}, `{"model":"m","messages":[{"role":"user","content":null},{"role":"user","content":"x"},{"role":"user","content":"b"}]}`, ""},
		"no such entry":                 {"anthropic", `{"model":"m","messages":[{"role":"user","content":"do"}]}`, Steering{Notes: []Note{{After: 2, Text: said}}}, "", "has 1 entries, and none with number 2"},
		"no conversation":               {"anthropic", `{"model":"m"}`, Steering{Notes: []Note{{After: 1, Text: said}}}, "", `no member "messages"`},
		"no tools where there are none": {"openai-chat", `{"model":"m","messages":[]}`, Steering{NoTools: true}, `{"model":"m","messages":[]}`, ""},
		"chat, behind results and a text, and no tools": {"openai-chat", `{"model":"m","tool_choice":"auto","tools":[{}],"messages":[{"role":"user","content":"do"},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"}]}`,
			Steering{Notes: []Note{{1, said}, {4, "again"}}, NoTools: true},
			`{"model":"m","tool_choice":"none","tools":[{}],"messages":[{"role":"user","content":"do\n\n[SUPERVISOR] say \"no\""},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"user","content":"again"}]}`, ""},
		"chat, what is left out": {"openai-chat", `{"model":"m","messages":[{"role":"user","content":"do"},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"assistant","tool_calls":[1]},{"role":"tool","tool_call_id":"b","content":"2"}]}`,
			Steering{Notes: []Note{{1, "tried"}, {3, "gone too"}}, Cuts: []Cut{{1, 3}}},
			`{"model":"m","messages":[{"role":"user","content":"do\n\ntried"},{"role":"assistant","tool_calls":[1]},{"role":"tool","tool_call_id":"b","content":"2"}]}`, ""},
		"a cut of everything": {"openai-chat", `{"model":"m","messages":[{"role":"user","content":"do"}]}`, Steering{Cuts: []Cut{{0, 1}}}, "", "cannot be left out"},
		"responses":           {"openai-responses", `{"model":"m","input":[{"type":"message","role":"user","content":[]},{"type":"reasoning"},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"1"}],"tool_choice":"auto","tools":[{}]}`, Steering{Notes: []Note{{4, "x"}}, NoTools: true}, `{"model":"m","input":[{"type":"message","role":"user","content":[]},{"type":"reasoning"},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]}],"tool_choice":"none","tools":[{}]}`, ""},
		"responses, a text":   {"openai-responses", `{"model":"m","input":"do"}`, Steering{Notes: []Note{{1, "x"}}}, `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"do"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := Find(tc.dialect)
			r, err := d.ReadRequest([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Steer(tc.s, endsOf(r))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%v, want %q", err, tc.fails)
				}
				return
			}
			if diff := cmp.Diff(tc.want, string(got)); err != nil || diff != "" || !json.Valid(got) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if sent, err := d.ReadRequest(got); err != nil || sent.Bare() != (tc.s.NoTools && r.Tools) {
				t.Errorf("%v, %v", sent.Bare(), err)
			}
		})
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
				got, err := r.Steer(Steering{Notes: []Note{{strings.Count(before, "role") + 1, "x"}}}, endsOf(r))
				if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
					t.Errorf("%s: %v (-want +got):\n%s", d.Name, err, diff)
				}
			}
		}
	}
}
