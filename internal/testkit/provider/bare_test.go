// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestNoToolMayBeCalled: a model that may call none answers in words, in each dialect, whether or not it is streamed; what the script has it call it
// calls with the next request. A turn of words is played as it is.
func TestNoToolMayBeCalled(t *testing.T) {
	const prompt = "Add a page.\\n```script\\nturns:\\n- text: I look.\\n  run: ls web\\n- until: nothing\\n  while: cat a\\n```\\n"
	for name, tc := range map[string]struct {
		path, list, tools, user, words, none string
	}{
		"anthropic": {"/v1/messages", "messages", `{"name":"Bash"}`, `{"role":"user","content":"%s"}`, `{"role":"assistant","content":[{"type":"text","text":"%s"}]}`, `{"type":"none"}`},
		"chat":      {"/v1/chat/completions", "messages", `{"type":"function","function":{"name":"bash"}}`, `{"role":"user","content":"%s"}`, `{"role":"assistant","content":"%s"}`, `"none"`},
		"responses": {"/v1/responses", "input", `{"type":"function","name":"shell"}`, `{"role":"user","content":"%s"}`, `{"role":"assistant","content":[{"type":"output_text","text":"%s"}]}`, `"none"`},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, streamed), func(t *testing.T) {
				server := New("")
				entries := []string{fmt.Sprintf(tc.user, prompt)}
				ask := func(choice string) string {
					body := fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"tools":[%s],"%s":[%s]%s}`, streamed, tc.tools, tc.list, strings.Join(entries, ","), choice)
					w := httptest.NewRecorder()
					server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, tc.path, strings.NewReader(body)))
					if w.Code != http.StatusOK {
						t.Fatalf("%d: %s", w.Code, w.Body)
					}
					return w.Body.String()
				}
				calls := func(answer string) bool {
					return strings.Contains(answer, "ls web") || strings.Contains(answer, "cat a")
				}
				bare := `,"tool_choice":` + tc.none
				for range 2 { // each of the turns without tools is in the conversation
					if answer := ask(bare); calls(answer) || !strings.Contains(answer, "look.") {
						t.Fatalf("without tools: %s", answer)
					}
					entries = append(entries, fmt.Sprintf(tc.words, without+" I look."), fmt.Sprintf(tc.user, "Go on."))
				}
				if answer := ask(""); !strings.Contains(answer, "ls web") {
					t.Errorf("with tools: %s", answer)
				}
				entries = append(entries, fmt.Sprintf(tc.words, "I have looked."), fmt.Sprintf(tc.user, "Go on."))
				if answer := ask(bare); calls(answer) {
					t.Errorf("it waits without tools: %s", answer)
				}
				if answer := ask(strings.Replace(bare, none, "auto", 1)); !strings.Contains(answer, "cat a") {
					t.Errorf("it waits: %s", answer)
				}
				entries = append(entries, fmt.Sprintf(tc.words, "nothing"), fmt.Sprintf(tc.user, "Go on."))
				if answer := ask(bare); strings.Contains(answer, "no tools in") || !strings.Contains(answer, "Done.") {
					t.Errorf("in words: %s", answer)
				}
			})
		}
	}
}
