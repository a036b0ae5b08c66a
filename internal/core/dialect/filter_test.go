// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// filtered is what becomes of a request of a dialect: its body, what was taken out, and why it is refused.
func filtered(t *testing.T, name, body string, a dialect.Allowed) (string, []string, *dialect.RefusedError) {
	t.Helper()
	d, _ := dialect.Find(name)
	r, err := d.ReadRequest([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	r, err = r.Filter(d.Endpoints[0], a)
	if refused, is := errors.AsType[*dialect.RefusedError](err); is {
		return "", nil, refused
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Body(dialect.Edit{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadRequest(out); err != nil {
		t.Fatalf("%s became %s: %v", body, out, err)
	}
	return string(out), r.TakenOut, nil
}

// What a client offers by itself is taken out of the list of tools, and every other byte stays.
func TestFilterTakesOut(t *testing.T) {
	t.Parallel()
	const responses = `{"store":false,"model":"m",`
	for _, tc := range []struct{ name, dialect, body, want, taken string }{
		{"first of the tools", "anthropic", `{"model":"m","tools":[ {"type":"web_search_20250305","name":"web_search","max_uses":8} , {"name":"Bash","input_schema":{"type":"object"}} ] }`,
			`{"model":"m","tools":[ {"name":"Bash","input_schema":{"type":"object"}} ] }`, "anthropic/web_search"},
		{"last of the tools", "anthropic", `{"model":"m","tools":[{"name":"Bash"}, {"type":"web_fetch_20260309","name":"web_fetch"}],"messages":[]}`,
			`{"model":"m","tools":[{"name":"Bash"}],"messages":[]}`, "anthropic/web_fetch"},
		{"two in the middle", "anthropic", `{"model":"m","tools":[{"name":"a"},{"type":"code_execution_20250825","name":"c"},{"name":"advisor","model":"x","type":"advisor_20260301"},{"name":"b"}]}`,
			`{"model":"m","tools":[{"name":"a"},{"name":"b"}]}`, "anthropic/code_execution anthropic/advisor"},
		{"all, and the choice with them", "anthropic", `{"tools":[{"type":"web_search_20260318","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"},"model":"m"}`,
			`{"model":"m"}`, "anthropic/web_search"},
		{"all, where they come last", "anthropic", `{"model":"m","tool_choice":{"type":"auto"},"tools":[{"type":"web_search_20260318","name":"web_search"}]}`,
			`{"model":"m"}`, "anthropic/web_search"},
		{"a choice that names one", "anthropic", `{"model":"m","tool_choice":{"type":"tool","name":"web_search"},"tools":[{"name":"a"},{"type":"web_search_20260318","name":"web_search"}]}`,
			`{"model":"m","tools":[{"name":"a"}]}`, "anthropic/web_search"},
		{"a choice of another", "anthropic", `{"model":"m","tool_choice":{"type":"tool","name":"a"},"tools":[{"name":"a"},{"type":"web_search_20260318","name":"web_search"}]}`,
			`{"model":"m","tool_choice":{"type":"tool","name":"a"},"tools":[{"name":"a"}]}`, "anthropic/web_search"},
		{"a type in other letters of JSON", "anthropic", `{"model":"m","tools":[{"name":"a"},{"type":"web\u005fsearch_20260318","name":"web_search"}]}`,
			`{"model":"m","tools":[{"name":"a"}]}`, "anthropic/web_search"},
		{"callers of a tool", "anthropic", `{"model":"m","tools":[{"name":"a","allowed_callers":["direct","code_execution_20250825"]},{"name":"b","allowed_callers":["direct"]}]}`,
			`{"model":"m","tools":[{"name":"a"},{"name":"b","allowed_callers":["direct"]}]}`, "anthropic/code_execution"},
		{"a thread that begins", "anthropic", `{"model":"m","thread":{"type":"create"},"messages":[]}`, `{"model":"m","messages":[]}`, "thread"},

		{"codex", "openai-responses", `{"model":"m","tools":[{"type":"function","name":"exec_command"},{"type":"web_search","external_web_access":false},{"type":"image_generation"}],"tool_choice":"auto","store":false}`,
			`{"model":"m","tools":[{"type":"function","name":"exec_command"}],"tool_choice":"auto","store":false}`, "openai/web_search openai/image_generation"},
		{"in a namespace", "openai-responses", responses + `"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},{"type":"web_search_preview_2025_03_11"}]}]}`,
			responses + `"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}`, "openai/web_search"},
		{"a whole namespace", "openai-responses", responses + `"tools":[{"type":"custom","name":"c"},{"type":"namespace","name":"n","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}]}`,
			responses + `"tools":[{"type":"custom","name":"c"}]}`, "openai/code_interpreter"},
		{"all, and what goes with them", "openai-responses", responses + `"parallel_tool_calls":true,"tools":[{"type":"web_search"}],"tool_choice":"required"}`, `{"store":false,"model":"m"}`, "openai/web_search"},
		{"a choice by its type", "openai-responses", responses + `"tools":[{"type":"function","name":"f"},{"type":"web_search_preview"}],"tool_choice":{"type":"web_search_preview"}}`,
			responses + `"tools":[{"type":"function","name":"f"}]}`, "openai/web_search"},
		{"one of the allowed tools", "openai-responses", responses + `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"web_search"}]},"tools":[{"type":"function","name":"f"},{"type":"web_search"}]}`,
			responses + `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]},"tools":[{"type":"function","name":"f"}]}`, "openai/web_search"},
		{"all of the allowed tools", "openai-responses", responses + `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}]},"tools":[{"type":"function","name":"f"},{"type":"web_search"}]}`,
			responses + `"tools":[{"type":"function","name":"f"}]}`, "openai/web_search"},
		{"tools that the conversation adds", "openai-responses", responses + `"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"}]},{"type":"tool_search_output","call_id":"c","execution":"client","tools":[{"type":"function","name":"f"},{"type":"image_generation"}]}]}`,
			responses + `"input":[{"type":"additional_tools","role":"developer","tools":[]},{"type":"tool_search_output","call_id":"c","execution":"client","tools":[{"type":"function","name":"f"}]}]}`, "openai/web_search openai/image_generation"},
		{"a shell of the provider", "openai-responses", responses + `"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"shell","environment":{"type":"container_auto"}},{"type":"shell"}]}`,
			responses + `"tools":[{"type":"shell","environment":{"type":"local"}}]}`, "openai/shell"},

		{"a search of Chat Completions", "openai-chat", `{"web_search_options":{},"model":"m","messages":[]}`, `{"model":"m","messages":[]}`, "openai/web_search"},
		// Routers take Gemini's tools in other dialects: https://docs.litellm.ai/docs/providers/gemini#google-search-tool
		{"a search of Gemini", "openai-chat", `{"model":"m","tools":[{"googleSearch":{}},{"type":"function","function":{"name":"f"}},{"type":"function","url_context":{},"function":{"name":"g"}}]}`,
			`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}]}`, "google/google_search google/url_context"},
		{"code of Gemini", "anthropic", `{"model":"m","tools":[{"name":"a"},{"codeExecution":{}}]}`, `{"model":"m","tools":[{"name":"a"}]}`, "google/code_execution"},
		{"a search of xAI", "openai-chat", `{"model":"m","search_parameters":{"mode":"on"},"messages":[],"enable_search":true}`, `{"model":"m","messages":[]}`, "xai/search dashscope/search"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, taken, refused := filtered(t, tc.dialect, tc.body, dialect.Allowed{})
			if refused != nil {
				t.Fatal(refused)
			}
			if got != tc.want || strings.Join(taken, " ") != tc.taken {
				t.Errorf("%s\nbecame %s\n  want %s\ntaken out: %q, want %q", tc.body, got, tc.want, taken, tc.taken)
			}
			again, more, refused := filtered(t, tc.dialect, got, dialect.Allowed{})
			if refused != nil || again != got || len(more) > 0 {
				t.Errorf("a second time: %s %q %v", again, more, refused)
			}
			all := dialect.Allowed{State: true, Tools: strings.Fields(tc.taken)}
			if kept, none, refused := filtered(t, tc.dialect, tc.body, all); refused != nil || kept != tc.body || len(none) > 0 {
				t.Errorf("where it is allowed: %s %q %v", kept, none, refused)
			}
		})
	}
}

// Whether the model may call tools is said of what is left.
func TestFilterCountsTools(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"model":"m","tools":[{"type":"web_search"}]}`:                                                    false,
		`{"model":"m","tools":[{"type":"web_search"},{"type":"function","name":"f"}]}`:                     true,
		`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"custom","name":"c"}]}]}`:       true,
		`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"web_search","name":"web"}]}]}`: false,
	} {
		d, _ := dialect.Find("openai-responses")
		r, err := d.ReadRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil || r.Tools != want {
			t.Errorf("%s: %v, %v", body, r.Tools, err)
		}
	}
}

// What providers would keep is not kept.
func TestFilterStore(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ dialect, body, want string }{
		{"openai-responses", `{"model":"m"}`, `{"store":false,"model":"m"}`},
		{"openai-responses", `{ "model":"m","store":true}`, `{ "model":"m","store":false}`},
		{"openai-responses", `{"store": null ,"model":"m"}`, `{"store": false ,"model":"m"}`},
		{"openai-responses", `{"model":"m","store":false}`, `{"model":"m","store":false}`},
		{"openai-chat", `{"model":"m","store":true}`, `{"model":"m","store":false}`},
		{"openai-chat", `{"model":"m","store":false}`, `{"model":"m","store":false}`},
		{"openai-chat", `{"model":"m"}`, `{"model":"m"}`},
		{"anthropic", `{"model":"m"}`, `{"model":"m"}`},
	} {
		if got, _, refused := filtered(t, tc.dialect, tc.body, dialect.Allowed{}); refused != nil || got != tc.want {
			t.Errorf("%s %s became %s, %v", tc.dialect, tc.body, got, refused)
		}
		if got, _, refused := filtered(t, tc.dialect, tc.body, dialect.Allowed{State: true}); refused != nil || got != tc.body {
			t.Errorf("%s %s became %s where state is allowed, %v", tc.dialect, tc.body, got, refused)
		}
	}
	d, _ := dialect.Find("openai-responses")
	for _, e := range d.Endpoints[1:] { // which have no such member
		r, err := d.ReadRequest([]byte(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		if r, err = r.Filter(e, dialect.Allowed{}); err != nil {
			t.Fatal(err)
		}
		if body, err := r.Body(dialect.Edit{Model: "m"}); err != nil || string(body) != `{"model":"m"}` {
			t.Errorf("%s: %s, %v", e.Path, body, err)
		}
	}
}

// refusal of a request: its path, and what a policy lists so that it passes; empty for what nothing allows.
type refusal struct{ dialect, members, path, allows string }

const state = "providerState"

func refusals() []refusal {
	const (
		claude, responses, chat = "anthropic", "openai-responses", "openai-chat"
		link                    = `"https://example.com/?q=secret"`
	)
	message := func(content string) string { return `"messages":[{"role":"user","content":` + content + `}]` }
	input := func(content string) string {
		return `"input":[{"type":"message","role":"user","content":` + content + `}]`
	}
	return []refusal{
		{claude, `"mcp_servers":[{"type":"url","name":"n","url":` + link + `}]`, "mcp_servers", "anthropic/mcp_servers"},
		{claude, `"tools":[{"name":"a"},{"type":"mcp_toolset","mcp_server_name":"n"}]`, "tools[1]", "anthropic/mcp_servers"},
		{claude, `"tools":[{"type":"teleport_20270101","name":"t"}]`, "tools[0]", "anthropic/teleport"},
		{claude, `"tools":[{"type":7,"name":"t"}]`, "tools[0]", ""},
		{claude, `"tools":[{"type":"A B","name":"t"}]`, "tools[0]", ""},
		{claude, `"container":"c_1"`, "container", state},
		{claude, `"container":{"id":"c_1"}`, "container.id", state},
		{claude, `"container":{"skills":[{"type":"custom","skill_id":"s"}]}`, "container.skills", "anthropic/skills"},
		{claude, `"thread":{"type":"continue","previous_message_id":"msg_1"}`, "thread", state},
		{claude, `"thread":{"previous_message_id":"msg_1"}`, "thread", state},
		{claude, `"system":[{"type":"image","source":{"type":"url","url":` + link + `}}]`, "system[0].source.url", "anthropic/url"},
		{claude, message(`[{"type":"text","text":"t"},{"type":"image","source":{"type":"url","url":` + link + `}}]`), "messages[0].content[1].source.url", "anthropic/url"},
		{claude, message(`[{"type":"document","source":{"type":"url","url":` + link + `}}]`), "messages[0].content[0].source.url", "anthropic/url"},
		{claude, message(`[{"source":{"url":` + link + `},"type":"document"}]`), "messages[0].content[0].source.url", "anthropic/url"},
		{claude, message(`[{"type":"image","source":{"type":"s3","uri":"s3://b/k"}}]`), "messages[0].content[0].source", "anthropic/s3"},
		{claude, message(`[{"type":"document","source":{"type":"file","file_id":"file_1"}}]`), "messages[0].content[0].source.file_id", state},
		{claude, message(`[{"type":"container_upload","file_id":"file_1"}]`), "messages[0].content[0]", state},
		{claude, message(`[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":` + link + `}}]}]`), "messages[0].content[0].content[0].source.url", "anthropic/url"},
		{claude, message(`[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":` + link + `}}]}}]`), "messages[0].content[0].source.content[0].source.url", "anthropic/url"},
		{claude, message(`[{"type":"web_fetch_tool_result","tool_use_id":"t","content":{"type":"web_fetch_result","url":"u","content":{"type":"document","source":{"type":"url","url":` + link + `}}}}]`), "messages[0].content[0].content.content.source.url", "anthropic/url"},
		{claude, message(`[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20260318","name":"web_search"}}}]`), "messages[0].content[0].tool.definition", "anthropic/web_search"},
		{claude, message(`[{"type":"compaction","tool_changes":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"mcp_toolset"}}}]}]`), "messages[0].content[0].tool_changes[0].tool.definition", "anthropic/mcp_servers"},
		{claude, message(`[{"type":"hologram","source":{"type":"url"}}]`), "messages[0].content[0]", "anthropic/hologram"},

		{responses, `"tools":[{"type":"mcp","server_label":"l","server_url":` + link + `}]`, "tools[0]", "openai/mcp"},
		{responses, `"tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp","connector_id":"c"}]}]`, "tools[0].tools[0]", "openai/mcp"},
		{responses, `"tools":[{"type":"teleport"}]`, "tools[0]", "openai/teleport"},
		{responses, `"tools":[{"type":"file_search","vector_store_ids":["vs"]}]`, "tools[0]", state + " openai/file_search"},
		{responses, `"background":true`, "background", state},
		{responses, `"previous_response_id":"resp_1"`, "previous_response_id", state},
		{responses, `"previous_response\u005fid":"resp_1"`, "previous_response_id", state},
		{responses, `"conversation":{"id":"conv_1"}`, "conversation", state},
		{responses, `"prompt":{"id":"pmpt_1"}`, "prompt", state},
		{responses, `"input":[{"type":"item_reference","id":"msg_1"}]`, "input[0]", state},
		{responses, `"input":[{"id":"msg_1"}]`, "input[0]", state},
		{responses, `"input":[{"type":null,"id":"msg_1"}]`, "input[0]", state},
		{responses, `"input":[{"type":"reasoning","id":"rs_1","summary":[]}]`, "input[0]", state},
		{responses, `"input":[{"type":"image_generation_call","id":"ig_1"}]`, "input[0]", state},
		{responses, `"input":[{"type":"mcp_approval_response","approval_request_id":"a","approve":true}]`, "input[0]", "openai/mcp"},
		{responses, `"input":[{"type":"additional_tools","tools":[{"type":"mcp","server_url":` + link + `}]}]`, "input[0].tools[0]", "openai/mcp"},
		{responses, `"input":[{"type":"tool_search_output","tools":[{"type":"mcp","server_url":` + link + `}]}]`, "input[0].tools[0]", "openai/mcp"},
		{responses, `"input":[{"type":"hologram"}]`, "input[0]", "openai/hologram"},
		{responses, `"input":[{"type":"shell_call","environment":{"type":"container_reference","container_id":"c"}}]`, "input[0].environment.container_id", state},
		{responses, input(`[{"type":"input_image","image_url":` + link + `}]`), "input[0].content[0].image_url", "openai/url"},
		{responses, input(`[{"type":"input_image","file_id":"file_1"}]`), "input[0].content[0].file_id", state},
		{responses, input(`[{"type":"input_file","file_url":` + link + `}]`), "input[0].content[0].file_url", "openai/url"},
		{responses, input(`[{"type":"input_file","file_id":"file_1"}]`), "input[0].content[0].file_id", state},
		{responses, `"input":[{"role":"user","content":[{"type":"input_image","image_url":` + link + `}]}]`, "input[0].content[0].image_url", "openai/url"},
		{responses, `"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":` + link + `}]}]`, "input[0].output[0].image_url", "openai/url"},
		{responses, `"input":[{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_file","file_id":"f"}]}]`, "input[0].output[0].file_id", state},
		{responses, `"input":[{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":` + link + `}}]`, "input[0].output.image_url", "openai/url"},

		{chat, `"plugins":[{"id":"web"}]`, "plugins", "openrouter/plugins"},
		{chat, `"data_sources":[{"type":"azure_search","parameters":{"endpoint":` + link + `}}]`, "data_sources", "azure/data_sources"},
		{chat, `"tools":[{"type":"openrouter:web_search"}]`, "tools[0]", "openrouter/web_search"},
		{chat, `"tools":[{"type":"builtin_function","function":{"name":"$web_search"}}]`, "tools[0]", "openai/builtin_function"},
		{chat, `"functions":[{"name":"f"}]`, "functions", ""},
		{chat, `"function_call":"auto"`, "function_call", ""},
		{chat, `"messages":[{"role":"assistant","function_call":{"name":"f","arguments":""}}]`, "messages[0].function_call", ""},
		{chat, `"messages":[{"role":"function","name":"f","content":"x"}]`, "messages[0].role", ""},
		{chat, `"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]`, "messages[0].audio.id", state},
		{chat, message(`[{"type":"image_url","image_url":{"url":` + link + `}}]`), "messages[0].content[0].image_url.url", "openai/url"},
		{chat, message(`[{"type":"image_url","image_url":` + link + `}]`), "messages[0].content[0].image_url", "openai/url"},
		{chat, message(`[{"type":"image_url","image_url":{"url":{"url":` + link + `}}}]`), "messages[0].content[0].image_url.url", "openai/url"},
		{chat, message(`[{"type":"file","file":{"file_data":{"url":` + link + `}}}]`), "messages[0].content[0].file.file_data", "openai/url"},
		{claude, message(`[{"type":"image","source":{"type":"url","url":{"url":` + link + `}}}]`), "messages[0].content[0].source.url", "anthropic/url"},
		{chat, message(`[{"type":"image_url","image_url":{"url":" data:x"}}]`), "messages[0].content[0].image_url.url", "openai/url"},
		{chat, message(`[{"type":"video_url","video_url":{"url":` + link + `}}]`), "messages[0].content[0].video_url.url", "openai/url"},
		{chat, message(`[{"type":"video","video":["data:x",` + link + `]}]`), "messages[0].content[0].video[1]", "openai/url"},
		{chat, message(`[{"type":"input_audio","input_audio":{"data":` + link + `}}]`), "messages[0].content[0].input_audio.data", "openai/url"},
		{chat, message(`[{"type":"file","file":{"file_data":` + link + `}}]`), "messages[0].content[0].file.file_data", "openai/url"},
		{chat, message(`[{"type":"file","file":{"file_id":"file_1"}}]`), "messages[0].content[0].file.file_id", state},
		{chat, message(`[{"type":"hologram","url":"x"}]`), "messages[0].content[0]", "openai/hologram"},
		{chat, `"messages":[{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":` + link + `}}]}]`, "messages[0].content[0].image_url.url", "openai/url"},
		{chat, `"prediction":{"type":"content","content":[{"type":"image_url","image_url":{"url":` + link + `}}]}`, "prediction.content[0].image_url.url", "openai/url"},
		{chat, `"messages":[{"role":"assistant","images":[{"type":"image_url","image_url":{"url":` + link + `}}]}]`, "messages[0].images[0].image_url.url", "openai/url"},
	}
}

// What has an address, or refers to what the provider keeps, is refused with the member and the policy's value, and passes byte for byte where
// the policy allows it.
func TestFilterRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range refusals() {
		t.Run(tc.dialect+" "+tc.path+" "+tc.allows, func(t *testing.T) {
			t.Parallel()
			body := `{"store":false,"model":"m",` + tc.members + `}`
			_, _, refused := filtered(t, tc.dialect, body, dialect.Allowed{})
			if refused == nil {
				t.Fatalf("%s passes", body)
			}
			want := dialect.Unclear
			allow := dialect.Allowed{}
			for word := range strings.FieldsSeq(tc.allows) {
				if word == state {
					allow.State, want = true, dialect.State
				} else {
					allow.Tools = append(allow.Tools, word)
					if want == dialect.Unclear {
						want = dialect.ServerTool
					}
				}
			}
			if tc.allows == "" && strings.HasPrefix(tc.path, "tools") {
				want = dialect.ServerTool
			}
			if refused.Path != tc.path || refused.Reason != want {
				t.Errorf("%s: refused at %q because of %d: %v", body, refused.Path, refused.Reason, refused)
			}
			for word := range strings.FieldsSeq(tc.allows) {
				if word != state && !allow.State && !strings.Contains(refused.Message, word) || word == state && !strings.Contains(refused.Message, "providerState") {
					t.Errorf("%q does not name %s", refused.Message, word)
				}
			}
			if tc.allows == "" {
				return
			}
			if got, taken, refused := filtered(t, tc.dialect, body, allow); refused != nil || got != body || len(taken) > 0 {
				t.Errorf("where it is allowed: %s %q %v", got, taken, refused)
			}
		})
	}
}

// What agents send today passes byte for byte.
func TestFilterPasses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ dialect, body string }{
		{"anthropic", `{"model":"m","system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"do"},{"role":"system","content":[{"type":"text","text":"t"},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"mcp__x","input_schema":{"Type":"A","type":"object"}}}}],"clear_at":"x"},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"Bash","input":{"Model":1,"url":"https://x","type":"url"}}]},{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"https://x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aaaa"}},{"type":"tool_reference","tool_name":"x"}]}]},` +
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"https://x","title":"t","encrypted_content":"e"}]}]}],` +
			`"tools":[{"name":"Bash","description":"d","input_schema":{"type":"object","properties":{"Type":{}}},"eager_input_streaming":true},{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"},{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"},{"type":"custom","name":"c","defer_loading":true}],` +
			`"metadata":{"user_id":"u","Model":"m"},"context_management":{"edits":[]},"output_config":{"effort":"high"},"diagnostics":{"previous_message_id":"m"},"max_tokens":9,"stream":true}`},
		{"openai-responses", `{"model":"m","instructions":"i","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"t"}]},{"role":"user","content":"x"},{"type":"reasoning","summary":[],"content":null,"encrypted_content":"e"},{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"},` +
			`{"type":"function_call","name":"exec","arguments":"{\"url\":\"https://x\"}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"https://x"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"DATA:image/png;base64,aa"}]},{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"open_page","url":"https://x"}},` +
			`{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}},{"type":"compaction","encrypted_content":"e"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"t","annotations":[{"type":"url_citation","url":"https://x"}]}]}],` +
			`"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":false},{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"d"}},{"type":"local_shell"},{"type":"tool_search","execution":"client"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"g","defer_loading":true}]}],` +
			`"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"high"},"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","background":false,"previous_response_id":null,"unknown":{"Model":1}}`},
		{"openai-chat", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aa","detail":"low"}},{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,aa","filename":"https://x"}}]},` +
			`{"role":"assistant","content":null,"function_call":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}],"reasoning_content":"r"},{"role":"tool","tool_call_id":"c","content":"https://x"}],` +
			`"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"URL":{"type":"string"}}}}}],"tool_choice":{"type":"function","function":{"name":"bash"}},"stream":true,"stream_options":{"include_usage":true},"plugins":[],"store":false}`},
	} {
		got, taken, refused := filtered(t, tc.dialect, tc.body, dialect.Allowed{})
		if refused != nil || len(taken) > 0 {
			t.Errorf("%s: %v %q", tc.dialect, refused, taken)
		} else if got != tc.body {
			t.Error(cmp.Diff(tc.body, got))
		}
	}
}

// Two readers of a name could take it for different ones.
func TestFilterFolds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ dialect, body, path string }{
		{"anthropic", `{"Model":"x","model":"m"}`, `"Model"`},
		{"anthropic", `{"model":"m","MESSAGES":[]}`, `"MESSAGES"`},
		{"anthropic", `{"model":"m","me\u017f\u017fages":[]}`, `"meſſages"`},
		{"anthropic", `{"model":"m","toolſ":[]}`, `"toolſ"`},
		{"openai-chat", `{"model":"m","max_to\u212aens":1}`, `"max_to` + "\u212a" + `ens"`},
		{"openai-chat", `{"model":"m","toolChoice":"auto"}`, `"toolChoice"`},
		{"openai-chat", `{"model":"m","dataSources":[]}`, `"dataSources"`},
		{"anthropic", `{"model":"m","tools":[{"Type":"web_search_20250305","name":"n"}]}`, `tools[0]."Type"`},
		{"anthropic", `{"model":"m","messages":[{"Role":"user","content":""}]}`, `messages[0]."Role"`},
		{"anthropic", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","Text":"x"}]}]}`, `messages[0].content[0]."Text"`},
		{"anthropic", `{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"URL":"x"}}]}]}`, `messages[0].content[0].source."URL"`},
		{"openai-chat", `{"model":"m","tools":[{"type":"function","function":{"Name":"x"}}]}`, `tools[0].function."Name"`},
		{"openai-chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"Url":"x"}}]}]}`, `messages[0].content[0].image_url."Url"`},
		{"openai-chat", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"Arguments":""}}]}]}`, `messages[0].tool_calls[0].function."Arguments"`},
		{"openai-responses", `{"model":"m","input":[{"type":"message","role":"user","Content":"x"}]}`, `input[0]."Content"`},
		{"openai-responses", `{"model":"m","Previous_Response_ID":"x"}`, `"Previous_Response_ID"`},
	} {
		_, _, refused := filtered(t, tc.dialect, tc.body, dialect.Allowed{State: true})
		if refused == nil || refused.Reason != dialect.Unclear || refused.Path != tc.path {
			t.Errorf("%s: %v", tc.body, refused)
		}
	}
	d, _ := dialect.Find("anthropic")
	for _, body := range []string{ // a name twice, at each depth
		`{"model":"m","tools":[{"name":"a","name":"b"}]}`, `{"model":"m","messages":[{"role":"user","role":"assistant"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","t\u0079pe":"image"}]}]}`,
	} {
		if _, err := d.ReadRequest([]byte(body)); err == nil {
			t.Errorf("%s is read", body)
		}
	}
}

// A request that is nested without an end costs no more than another one.
func TestFilterBounds(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[{"type":"tool_result","content":`, 1000) + `"x"` + strings.Repeat(`}]`, 1000)
	_, _, refused := filtered(t, "anthropic", `{"model":"m","messages":[{"role":"user","content":`+deep+`}]}`, dialect.Allowed{})
	if refused == nil || refused.Reason != dialect.Unclear || len(refused.Path) > 300 {
		t.Errorf("%v", refused)
	}
	var tools []string
	for i := range 100 {
		tools = append(tools, fmt.Sprintf(`{"type":"web_search","name":"n%d"}`, i))
	}
	if got, taken, refused := filtered(t, "openai-responses", `{"model":"m","store":false,"tools":[`+strings.Join(tools, ",")+`]}`, dialect.Allowed{}); refused != nil || got != `{"model":"m","store":false}` || len(taken) != 1 {
		t.Errorf("%s %q %v", got, taken, refused)
	}
	long := strings.Repeat("x", 1<<20)
	_, _, refused = filtered(t, "anthropic", `{"model":"m","tools":[{"type":"`+long+`"}]}`, dialect.Allowed{})
	if refused == nil || len(refused.Error()) > 500 {
		t.Errorf("a message of %d bytes", len(refused.Error()))
	}
}

// What a backend does not get is left out, in whatever letters it is written.
func TestFilterWithout(t *testing.T) {
	t.Parallel()
	d, _ := dialect.Find("openai-chat")
	r, err := d.ReadRequest([]byte(`{"service_tier":"priority","model":"m","Provider":{"order":["x"]},"messages":[],"web_search_options":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
		t.Fatal(err)
	}
	without := dialect.Fold("service_tier", "provider", "route")
	if has := r.Has(without); !slices.Equal(has, []string{"service_tier", "Provider"}) {
		t.Errorf("%q", has)
	}
	body, err := r.Body(dialect.Edit{Model: "other", Before: dialect.Quote("Be kind."), Without: without})
	if want := `{"model":"other","messages":[{"role":"system","content":"Be kind."}]}`; err != nil || string(body) != want {
		t.Errorf("%s, %v", body, err)
	}
}

// TestEveryDialectHasAWall: a new one without a list would pass everything.
func TestEveryDialectHasAWall(t *testing.T) {
	t.Parallel()
	for _, d := range dialect.All() {
		body := `{"model":"m","tools":[{"type":"teleport"}]}`
		if got, _, refused := filtered(t, d.Name, body, dialect.Allowed{}); refused == nil {
			t.Errorf("%s: a tool that nobody knows passes: %s", d.Name, got)
		}
	}
}

// TestFilterFoldsTheTypeOfATool: a definition that is added in a conversation, and says its type in other letters, is looked at like any other.
func TestFilterFoldsTheTypeOfATool(t *testing.T) {
	t.Parallel()
	body := `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_addition","tool":{"Type":"tool_definition","definition":{"type":"mcp_toolset"}}}]}]}`
	if got, _, refused := filtered(t, "anthropic", body, dialect.Allowed{}); refused == nil {
		t.Errorf("it passes: %s", got)
	}
}
