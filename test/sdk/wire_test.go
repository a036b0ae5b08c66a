// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// wire is a provider that answers what a test says, and keeps the last request's body.
type wire struct {
	headers map[string]string
	status  int
	// answers in their order; the last one stays.
	answers []string
	asked   atomic.Int64
	body    atomic.Pointer[[]byte]
}

// ServeHTTP implements http.Handler. A stream ends with its text as if it were whole.
func (p *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	p.body.Store(&body)
	answer := p.answers[min(int(p.asked.Add(1)), len(p.answers))-1]
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(answer, "event:") || strings.HasPrefix(answer, "data:") {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for name, value := range p.headers {
		w.Header().Set(name, value)
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	fmt.Fprint(w, answer)
	_ = http.NewResponseController(w).Flush()
}

// event of a stream of Anthropic or of Responses.
func event(kind, fields string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
}

func anthropicClient(url string, retries int) *anthropic.Client {
	return new(anthropic.NewClient(anthropicoption.WithBaseURL(url+"/anthropic"), anthropicoption.WithAuthToken("login"), anthropicoption.WithMaxRetries(retries)))
}

func openaiClient(url string, retries int) *openai.Client {
	return new(openai.NewClient(openaioption.WithBaseURL(url+"/openai/v1"), openaioption.WithAPIKey("login"), openaioption.WithMaxRetries(retries)))
}

// TestAnthropicStops: each reason to stop, its details and its counts reach the client, whole and streamed. What the model has thought goes back byte for
// byte with its signature. https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
func TestAnthropicStops(t *testing.T) {
	const usage = `{"input_tokens":12,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":7,"service_tier":"standard"}`
	const thinking = `{"type":"thinking","thinking":"Let \u00e9 me … <think>","signature":"EqQBCgIYAhIM+/=="}`
	blocks := []string{thinking, `{"type":"redacted_thinking","data":"Emw+/a=="}`, `{"type":"text","text":"Hm."}`, `{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"a"}}`, `{"type":"tool_use","id":"toolu_2","name":"Bash","input":{"command":"b"}}`}
	for _, stop := range []anthropic.StopReason{"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"} {
		whole := fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"large","content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":%s}`, strings.Join(blocks, ","), stop, usage)
		stream := event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"large","content":[],"stop_reason":null,"stop_sequence":null,"usage":`+usage+`}`) +
			event("ping", "") +
			event("content_block_start", `,"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`) +
			event("content_block_delta", `,"index":0,"delta":{"type":"thinking_delta","thinking":"Let \u00e9 me … <think>"}`) +
			event("content_block_delta", `,"index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM+/=="}`) + event("content_block_stop", `,"index":0`) +
			event("content_block_start", `,"index":1,"content_block":`+blocks[1]) + event("content_block_stop", `,"index":1`) +
			event("content_block_start", `,"index":2,"content_block":{"type":"text","text":""}`) + event("content_block_delta", `,"index":2,"delta":{"type":"text_delta","text":"Hm."}`) + event("content_block_stop", `,"index":2`)
		for i, command := range []string{"a", "b"} {
			stream += event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{}}`, 3+i, 1+i)) +
				event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"%s\"}"}`, 3+i, command)) + event("content_block_stop", fmt.Sprintf(`,"index":%d`, 3+i))
		}
		stream += event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":%s`, stop, usage)) + event("message_stop", "")
		p := &wire{answers: []string{whole, stream, whole}}
		client := anthropicClient(gatewayTo(t, p), 0)
		params := anthropic.MessageNewParams{Model: "any", MaxTokens: 9, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))}, Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "Bash"}}}}
		check := func(m *anthropic.Message) {
			t.Helper()
			if m.StopReason != stop || len(m.Content) != 5 || m.Content[0].Signature != "EqQBCgIYAhIM+/==" || m.Content[0].Thinking != "Let é me … <think>" || m.Content[1].Data != "Emw+/a==" ||
				m.Content[3].ID != "toolu_1" || m.Content[4].ID != "toolu_2" || string(m.Content[4].Input) != `{"command":"b"}` ||
				m.Usage.CacheReadInputTokens != 400 || m.Usage.CacheCreationInputTokens != 30 || m.Usage.CacheCreation.Ephemeral1hInputTokens != 20 || m.Usage.OutputTokens != 7 {
				t.Errorf("%s: %s", stop, m.RawJSON())
			}
		}
		m, err := client.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		check(m)
		all, s := anthropic.Message{}, client.Messages.NewStreaming(t.Context(), params)
		for s.Next() {
			if err := all.Accumulate(s.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		check(&all)
		sent := new([]byte)
		record := anthropicoption.WithMiddleware(func(r *http.Request, next anthropicoption.MiddlewareNext) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			*sent, r.Body = body, io.NopCloser(bytes.NewReader(body))
			return next(r)
		})
		params.Messages = append(params.Messages, all.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock("toolu_1", "x", false), anthropic.NewToolResultBlock("toolu_2", "y", true)))
		if _, err := client.Messages.New(t.Context(), params, record); err != nil {
			t.Fatal(err)
		}
		// Nothing but the name of the model and the templates differs.
		got := bytes.Replace(*p.body.Load(), []byte(`"model":"large"`), []byte(`"model":"any"`), 1)
		if i := bytes.Index(*sent, []byte(`"messages":`)); i < 0 || !bytes.Contains(got, (*sent)[i:bytes.Index(*sent, []byte(`,"model"`))]) || !bytes.Contains(got, []byte("EqQBCgIYAhIM+/==")) {
			t.Errorf("%s: the client has sent\n%s\nand the provider got\n%s", stop, *sent, got)
		}
	}
}

// TestErrorsOfProviders are errors of the clients' own classes, with what the provider says of them and of another try, in all of the forms that it can say
// so. The gateway has tried again itself, as far as the provider wants that.
func TestErrorsOfProviders(t *testing.T) {
	later := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, tc := range map[string]struct {
		status  int
		headers map[string]string
		asked   int64
	}{
		"overloaded":                  {529, nil, 3},
		"limited":                     {429, map[string]string{"Retry-After-Ms": "5", "X-Ratelimit-Limit-Requests": "60"}, 3},
		"limited until a date":        {429, map[string]string{"Retry-After": later}, 1},
		"not again":                   {500, map[string]string{"X-Should-Retry": "false"}, 1},
		"again":                       {409, map[string]string{"X-Should-Retry": "true", "Retry-After": "0"}, 3},
		"too large":                   {413, nil, 1},
		"without a right to a model":  {403, nil, 1},
		"a model that does not exist": {404, nil, 1},
	} {
		said := map[string]string{"Request-Id": "req_1", "X-Request-Id": "req_1"}
		for header, value := range tc.headers {
			said[header] = value
		}
		check := func(sdk string, p *wire, status int, raw string, r *http.Response, is bool, err error) {
			t.Helper()
			if !is || status != tc.status || !strings.Contains(raw, "The provider says so") || p.asked.Load() != tc.asked {
				t.Errorf("%s, %s: %v after %d tries: %s", name, sdk, err, p.asked.Load(), raw)
				return
			}
			for header, value := range said {
				if r != nil && r.Header.Get(header) != value {
					t.Errorf("%s, %s: %s is %q, want %q", name, sdk, header, r.Header.Get(header), value)
				}
			}
		}
		p := &wire{status: tc.status, headers: said, answers: []string{`{"type":"error","error":{"type":"overloaded_error","message":"The provider says so"},"request_id":"req_1"}`}}
		_, err := anthropicClient(gatewayTo(t, p), 0).Messages.New(t.Context(), anthropic.MessageNewParams{Model: "any", MaxTokens: 9, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))}})
		if a, is := errors.AsType[*anthropic.Error](err); is {
			check("Anthropic", p, a.StatusCode, a.RawJSON(), a.Response, a.RequestID == "req_1", err)
		} else {
			t.Errorf("%s: %v", name, err)
		}
		p = &wire{status: tc.status, headers: said, answers: []string{`{"error":{"message":"The provider says so","type":"server_error","param":null,"code":"some_code"}}`}}
		_, err = openaiClient(gatewayTo(t, p), 0).Responses.New(t.Context(), responses.ResponseNewParams{Model: "any", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello")}})
		if o, is := errors.AsType[*openai.Error](err); is {
			check("OpenAI", p, o.StatusCode, o.RawJSON(), o.Response, o.Code == "some_code", err)
		} else {
			t.Errorf("%s: %v", name, err)
		}
		p = &wire{status: tc.status, headers: said, answers: []string{fmt.Sprintf(`{"error":{"code":%d,"message":"The provider says so","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"27s"}]}}`, tc.status)}}
		_, err = gemini(t, gatewayTo(t, p), "login").Models.GenerateContent(t.Context(), "any", genai.Text("Hello"), nil)
		if g, is := errors.AsType[genai.APIError](err); is {
			check("Google", p, g.Code, g.Message, nil, len(g.Details) == 1, err)
		} else {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheClientsWaitAsTheProviderSays: what the gateway leaves to the client is obeyed by it.
func TestTheClientsWaitAsTheProviderSays(t *testing.T) {
	// 3 tries of the gateway, and another 3 after a client's own pause.
	p := &wire{status: http.StatusTooManyRequests, headers: map[string]string{"Retry-After-Ms": "300"}, answers: []string{`{"error":{"message":"slowly","type":"rate_limit_exceeded"}}`}}
	began := time.Now()
	_, err := openaiClient(gatewayTo(t, p), 1).Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "any", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")}})
	if took := time.Since(began); err == nil || p.asked.Load() != 6 || took < 1500*time.Millisecond {
		t.Errorf("%v after %d tries in %s", err, p.asked.Load(), took)
	}
}

// TestChatAnswers: choices, probabilities, refusals and counts reach the client as the provider gives them.
// https://platform.openai.com/docs/api-reference/chat/object, https://platform.openai.com/docs/api-reference/chat/streaming
func TestChatAnswers(t *testing.T) {
	const whole = `{"id":"c1","object":"chat.completion","created":1,"model":"large","system_fingerprint":"fp","service_tier":"default","choices":[` +
		`{"index":0,"message":{"role":"assistant","content":"A","refusal":null,"annotations":[]},"logprobs":{"content":[{"token":"A","logprob":-0.25,"bytes":[65],"top_logprobs":[]}],"refusal":null},"finish_reason":"stop"},` +
		`{"index":1,"message":{"role":"assistant","content":null,"refusal":"I cannot."},"logprobs":null,"finish_reason":"content_filter"}],` +
		`"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":16,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":5,"accepted_prediction_tokens":0}}}`
	chunk := func(rest string) string {
		return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"large","obfuscation":"x7",` + rest + "}\n\n"
	}
	words := chunk(`"choices":[{"index":0,"delta":{"role":"assistant","content":"A"},"logprobs":{"content":[{"token":"A","logprob":-0.25,"bytes":[65],"top_logprobs":[]}],"refusal":null},"finish_reason":null}],"usage":null`) +
		chunk(`"choices":[{"index":1,"delta":{"role":"assistant","refusal":"I cannot."},"finish_reason":null}],"usage":null`) +
		chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null`) + chunk(`"choices":[{"index":1,"delta":{},"finish_reason":"content_filter"}],"usage":null`)
	count := chunk(`"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"completion_tokens_details":{"reasoning_tokens":5}}`)
	const done = "data: [DONE]\n\n"
	params := openai.ChatCompletionNewParams{Model: "any", N: openai.Int(2), Logprobs: openai.Bool(true), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")}}
	c, err := openaiClient(gatewayTo(t, &wire{answers: []string{whole}}), 0).Chat.Completions.New(t.Context(), params)
	if err != nil || c.RawJSON() != whole || len(c.Choices) != 2 || c.Choices[1].Message.Refusal != "I cannot." || c.Choices[0].Logprobs.Content[0].Logprob != -0.25 || c.Usage.CompletionTokensDetails.ReasoningTokens != 5 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, tc := range map[string]struct {
		include string // what the client sends for include_usage; empty where it does not
		counted bool
	}{
		"not asked": {"", false}, "asked": {"true", true}, "not wanted": {"false", false}, "null": {"null", false},
	} {
		p := &wire{answers: []string{words + count + done}}
		set := openaioption.WithHeader("X-Stainless-Lang", "go")
		if tc.include != "" {
			set = openaioption.WithJSONSet("stream_options.include_usage", map[string]any{"true": true, "false": false, "null": nil}[tc.include])
		}
		s, all := openaiClient(gatewayTo(t, p), 0).Chat.Completions.NewStreaming(t.Context(), params, set), openai.ChatCompletionAccumulator{}
		for s.Next() {
			all.AddChunk(s.Current())
		}
		if err := s.Err(); err != nil || len(all.Choices) != 2 || all.Choices[0].Message.Content != "A" || all.Choices[1].FinishReason != "content_filter" || (all.Usage.TotalTokens == 29) != tc.counted {
			t.Errorf("%s: %+v, %v", name, all.ChatCompletion, err)
		}
		if body := *p.body.Load(); !bytes.Contains(body, []byte(`"include_usage":true`)) || bytes.Count(body, []byte("include_usage")) != 1 {
			t.Errorf("%s: the provider got %s", name, body)
		}
	}
}

// TestResponsesAnswers: what ends a response otherwise than completed, and the endpoints beside it.
// https://platform.openai.com/docs/api-reference/responses, https://platform.openai.com/docs/api-reference/responses-streaming
func TestResponsesAnswers(t *testing.T) {
	const of = `"id":"resp_1","object":"response","created_at":1,"model":"large","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA+/="},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"I cannot."}]},` +
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"shell","arguments":"{\"a\":1}","status":"completed"},{"type":"function_call","id":"fc_2","call_id":"call_2","name":"shell","arguments":"{}","status":"completed"}],` +
		`"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":16},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":29}`
	params := responses.ResponseNewParams{Model: "any", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello")}}
	for kind, status := range map[string]string{
		"response.completed": `"status":"completed"`, "response.incomplete": `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`,
		"response.failed": `"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slowly."}`,
	} {
		response := "{" + of + "," + status + "}"
		client := openaiClient(gatewayTo(t, &wire{answers: []string{response, event("response.created", `,"response":{"id":"resp_1","object":"response","status":"queued","model":"large","output":[]}`) + event(kind, `,"response":`+response)}}), 0)
		r, err := client.Responses.New(t.Context(), params)
		if err != nil || r.RawJSON() != response || r.Output[0].EncryptedContent != "gAAA+/=" || r.Output[3].CallID != "call_2" {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
		s, last := client.Responses.NewStreaming(t.Context(), params), responses.ResponseStreamEventUnion{}
		for s.Next() {
			last = s.Current()
		}
		if s.Err() != nil || last.Type != kind || last.Response.RawJSON() != response {
			t.Errorf("%s: %s, %v", kind, last.RawJSON(), s.Err())
		}
	}
	p := &wire{answers: []string{`{"object":"response.input_tokens","input_tokens":11}`}}
	count, err := openaiClient(gatewayTo(t, p), 0).Responses.InputTokens.Count(t.Context(), responses.InputTokenCountParams{Model: openai.String("any"), Input: responses.InputTokenCountParamsInputUnion{OfString: openai.String("Hello")}})
	if err != nil || count.InputTokens != 11 || !bytes.Contains(*p.body.Load(), []byte(`"model":"large"`)) {
		t.Errorf("%+v, %v: %s", count, err, *p.body.Load())
	}
	p = &wire{answers: []string{`{"id":"resp_2","object":"response.compaction","created_at":1,"output":[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}],"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":0},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":29}}`}}
	compacted, err := openaiClient(gatewayTo(t, p), 0).Responses.Compact(t.Context(), responses.ResponseCompactParams{Model: "any", Input: responses.ResponseCompactParamsInputUnion{OfString: openai.String("Hello")}})
	if err != nil || compacted.Usage.OutputTokens != 9 || len(compacted.Output) != 1 || bytes.Contains(*p.body.Load(), []byte(`"store"`)) {
		t.Errorf("%+v, %v: %s", compacted, err, *p.body.Load())
	}
}

// TestGeminiAnswers: candidates that stop otherwise, a prompt that is blocked, and signatures of thoughts, which go back as they came.
// https://ai.google.dev/api/generate-content#FinishReason, https://ai.google.dev/gemini-api/docs/thought-signatures
func TestGeminiAnswers(t *testing.T) {
	const usage = `"usageMetadata":{"promptTokenCount":20,"cachedContentTokenCount":16,"candidatesTokenCount":4,"thoughtsTokenCount":5,"totalTokenCount":29},"modelVersion":"large","responseId":"r1"`
	const calls = `{"functionCall":{"id":"f1","name":"shell","args":{"a":1}},"thoughtSignature":"CiQB+/8="},{"functionCall":{"id":"f2","name":"shell","args":{}}}`
	for _, finish := range []genai.FinishReason{"STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"} {
		whole := fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm","thought":true},%s]},"finishReason":%q,"index":0}],%s}`, calls, finish, usage)
		p := &wire{answers: []string{whole, "data: " + whole + "\n\n", whole}}
		client := gemini(t, gatewayTo(t, p), "login")
		check := func(r *genai.GenerateContentResponse, err error) {
			t.Helper()
			if err != nil || r.Candidates[0].FinishReason != finish || len(r.FunctionCalls()) != 2 || r.FunctionCalls()[1].ID != "f2" || r.UsageMetadata.ThoughtsTokenCount != 5 || r.UsageMetadata.CachedContentTokenCount != 16 {
				t.Errorf("%s: %+v, %v", finish, r, err)
			}
		}
		r, err := client.Models.GenerateContent(t.Context(), "any", genai.Text("Hello"), nil)
		check(r, err)
		n := 0
		for r, err := range client.Models.GenerateContentStream(t.Context(), "any", genai.Text("Hello"), nil) {
			check(r, err)
			n++
		}
		if n != 1 {
			t.Errorf("%s: %d parts of a stream", finish, n)
		}
		history := append(genai.Text("Hello"), r.Candidates[0].Content, genai.NewContentFromFunctionResponse("shell", map[string]any{"x": 1}, genai.RoleUser))
		if _, err := client.Models.GenerateContent(t.Context(), "any", history, nil); err != nil || !bytes.Contains(*p.body.Load(), []byte(`"thoughtSignature":"CiQB+/8="`)) {
			t.Errorf("%s: %v, %s", finish, err, *p.body.Load())
		}
	}
	blocked := `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},` + usage + "}"
	client := gemini(t, gatewayTo(t, &wire{answers: []string{blocked, "data: " + blocked + "\n\n"}}), "login")
	if r, err := client.Models.GenerateContent(t.Context(), "any", genai.Text("Hello"), nil); err != nil || r.PromptFeedback.BlockReason != "PROHIBITED_CONTENT" {
		t.Errorf("%+v, %v", r, err)
	}
	for r, err := range client.Models.GenerateContentStream(t.Context(), "any", genai.Text("Hello"), nil) {
		if err != nil || r.PromptFeedback.BlockReason != "PROHIBITED_CONTENT" {
			t.Errorf("streamed: %+v, %v", r, err)
		}
	}
}

// TestStreamsThatEndEarly as if they were whole are errors for each client, and no short answers.
func TestStreamsThatEndEarly(t *testing.T) {
	p := &wire{answers: []string{event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"large","content":[],"usage":{"input_tokens":9,"output_tokens":1}}`) +
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":"Half"}`)}}
	a := anthropicClient(gatewayTo(t, p), 0).Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{Model: "any", MaxTokens: 9, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))}})
	for a.Next() { //nolint:revive // to its end
	}
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("Anthropic: %v", err)
	}
	p = &wire{answers: []string{`data: {"id":"c1","object":"chat.completion.chunk","model":"large","choices":[{"index":0,"delta":{"content":"Half"}}]}` + "\n\n"}}
	c := openaiClient(gatewayTo(t, p), 0).Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "any", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")}})
	for c.Next() { //nolint:revive // to its end
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("Chat Completions: %v", err)
	}
	p = &wire{answers: []string{event("response.output_text.delta", `,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Half"`)}}
	r, last := openaiClient(gatewayTo(t, p), 0).Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "any", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello")}}), ""
	for r.Next() {
		last = r.Current().Message
	}
	if err := r.Err(); err == nil && !strings.Contains(last, "broke off") {
		t.Errorf("Responses: %q, %v", last, err)
	}
	p = &wire{answers: []string{`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Half"}]},"index":0}]}` + "\n\n"}}
	var broken error
	for _, err := range gemini(t, gatewayTo(t, p), "login").Models.GenerateContentStream(t.Context(), "any", genai.Text("Hello"), nil) {
		broken = errors.Join(broken, err)
	}
	if broken == nil || !strings.Contains(broken.Error(), "broke off") {
		t.Errorf("Gemini: %v", broken)
	}
}
