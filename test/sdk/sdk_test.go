// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sdk_test asks models through the gateway with the official clients of the providers.
package sdk_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
	"github.com/tidewaiter/tidewaiter/internal/testkit/upstream"
)

const providerKey = "the-key-of-the-provider"

// gateway gives the URL of a gateway's server before a scripted provider that speaks every dialect.
func gateway(t *testing.T) string {
	t.Helper()
	return gatewayTo(t, provider.New(providerKey))
}

// gatewayTo gives the URL of a gateway's server before another provider.
func gatewayTo(t *testing.T, provider http.Handler) string {
	t.Helper()
	backend := upstream.Start(t, provider)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw})
	table, err := modelserver.NewTable(coremodels.Config{Backends: []coremodels.Backend{{
		Name: "main", Dialects: []string{"anthropic", "openai-responses", "openai-chat", "gemini"}, BaseURL: backend.URL, Key: "main", CA: string(ca), StreamUsage: new(true),
		Models: []coremodels.Model{{Name: "large"}},
	}}}, map[string]string{"main": providerKey}, backends.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	limits := modelserver.DefaultLimits
	limits.Pause = time.Millisecond
	server := httptest.NewServer(modelserver.New(modelserver.Options{
		Authorizer: authorizer{}, Ledger: blank{}, Table: func() *modelserver.Table { return table }, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Limits: limits,
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// authorizer lets everybody in but the stranger.
type authorizer struct{}

func (authorizer) Authorize(_ context.Context, token string, _ modelserver.Claim) (modelserver.Caller, error) {
	if token == "stranger" {
		return modelserver.Caller{}, fmt.Errorf("%w: unknown", callers.ErrUnauthenticated)
	}
	return modelserver.Caller{Feature: "shop/" + token, Before: dialect.Quote(compose.Layers{Global: []string{"Be kind."}}.Prefix()), Silence: time.Minute}, nil
}

// blank is a ledger that keeps nothing.
type blank struct{}

func (blank) Reserve(context.Context, ledger.Reservation, []ledger.Budget) error { return nil }
func (blank) Usage(context.Context, ledger.Scope, string) (ledger.Usage, error) {
	return ledger.Usage{}, nil
}
func (blank) Taken(context.Context, ledger.Budget) (used, reserved ledger.Amount, err error) {
	return used, reserved, nil
}

func (blank) Settle(context.Context, string, ledger.Interaction) error { return nil }
func (blank) Fold(context.Context, ledger.Interaction)                 {}

const (
	sdkPrompt = "Work.\n```script\nturns:\n- {text: one two three, run: make, fail: {status: 503}}\n```\n"
	cutPrompt = "Work.\n```script\nturns:\n- {text: one two three four five, cut: true}\n```\n"
)

// TestAnthropicSDK: the official client reads what comes through the gateway, streamed and not, and its errors.
func TestAnthropicSDK(t *testing.T) {
	url := gateway(t)
	client := anthropic.NewClient(anthropicoption.WithBaseURL(url+"/anthropic"), anthropicoption.WithAuthToken("login"), anthropicoption.WithMaxRetries(0))
	params := func(prompt string) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{
			Model: "whatever", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
			Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "Bash"}}},
		}
	}
	check := func(m *anthropic.Message) {
		t.Helper()
		if len(m.Content) != 2 || m.Content[0].Text != "one two three" || m.Content[1].Name != "Bash" || !strings.Contains(string(m.Content[1].Input), `"make"`) ||
			m.StopReason != anthropic.StopReasonToolUse || m.Usage.OutputTokens != 10 || m.Model != "large" {
			t.Errorf("message %s", m.RawJSON())
		}
	}
	m, err := client.Messages.New(t.Context(), params(sdkPrompt))
	if err != nil {
		t.Fatal(err)
	}
	check(m)
	stream, streamed := client.Messages.NewStreaming(t.Context(), params(sdkPrompt)), anthropic.Message{}
	for stream.Next() {
		if err := streamed.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	check(&streamed)
	cut := client.Messages.NewStreaming(t.Context(), params(cutPrompt))
	for cut.Next() { //nolint:revive // to its end
	}
	if err := cut.Err(); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("a stream that breaks off: %v", err)
	}
	if count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
		Model: "whatever", Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	}); err != nil || count.InputTokens == 0 {
		t.Errorf("tokens %+v, %v", count, err)
	}
	if list, err := client.Models.List(t.Context(), anthropic.ModelListParams{}); err != nil || len(list.Data) != 1 || list.Data[0].ID != "large" {
		t.Errorf("models %+v, %v", list, err)
	}
	stranger := anthropic.NewClient(anthropicoption.WithBaseURL(url+"/anthropic"), anthropicoption.WithAuthToken("stranger"), anthropicoption.WithMaxRetries(0))
	_, err = stranger.Messages.New(t.Context(), params(sdkPrompt))
	if e, is := errors.AsType[*anthropic.Error](err); !is || e.StatusCode != http.StatusUnauthorized || !strings.Contains(e.RawJSON(), "authentication_error") {
		t.Errorf("a stranger: %v", err)
	}
}

// TestOpenAISDK: the same for both of its APIs.
func TestOpenAISDK(t *testing.T) {
	url := gateway(t)
	client := openai.NewClient(openaioption.WithBaseURL(url+"/openai/v1"), openaioption.WithAPIKey("login"), openaioption.WithMaxRetries(0))
	ask := func(prompt string) responses.ResponseNewParams {
		return responses.ResponseNewParams{
			Model: "whatever", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)},
			Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "shell", Parameters: map[string]any{}, Strict: openai.Bool(false)}}},
		}
	}
	check := func(r *responses.Response) {
		t.Helper()
		if r.OutputText() != "one two three" || len(r.Output) != 2 || r.Output[1].Name != "shell" || r.Usage.OutputTokens != 10 || r.Model != "large" {
			t.Errorf("response %s", r.RawJSON())
		}
	}
	r, err := client.Responses.New(t.Context(), ask(sdkPrompt))
	if err != nil {
		t.Fatal(err)
	}
	check(r)
	stream := client.Responses.NewStreaming(t.Context(), ask(sdkPrompt))
	completed := false
	for stream.Next() {
		if e := stream.Current(); e.Type == "response.completed" {
			completed = true
			check(&e.Response)
		}
	}
	if err := stream.Err(); err != nil || !completed {
		t.Errorf("streamed: completed %v, %v", completed, err)
	}
	cut, said := client.Responses.NewStreaming(t.Context(), ask(cutPrompt)), ""
	for cut.Next() {
		if e := cut.Current(); e.Type == "error" {
			said = e.Message
		}
	}
	if err := cut.Err(); err == nil && !strings.Contains(said, "broke off") {
		t.Errorf("a stream that breaks off: %q, %v", said, err)
	}

	talk := func(prompt string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{
			Model: "whatever", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "bash"})},
		}
	}
	c, err := client.Chat.Completions.New(t.Context(), talk(sdkPrompt))
	if err != nil || c.Choices[0].Message.Content != "one two three" || len(c.Choices[0].Message.ToolCalls) != 1 || c.Model != "large" {
		t.Errorf("completion %+v, %v", c, err)
	}
	counted := talk(sdkPrompt)
	counted.StreamOptions.IncludeUsage = openai.Bool(true)
	chunks, all := client.Chat.Completions.NewStreaming(t.Context(), counted), openai.ChatCompletionAccumulator{}
	for chunks.Next() {
		all.AddChunk(chunks.Current())
	}
	if err := chunks.Err(); err != nil || len(all.Choices) != 1 || all.Choices[0].Message.Content != "one two three" || all.Usage.CompletionTokens != 10 {
		t.Errorf("streamed %+v, %v", all.ChatCompletion, err)
	}
	broken := client.Chat.Completions.NewStreaming(t.Context(), talk(cutPrompt))
	for broken.Next() { //nolint:revive // to its end
	}
	if err := broken.Err(); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("a stream that breaks off: %v", err)
	}
	if list, err := client.Models.List(t.Context()); err != nil || len(list.Data) != 1 || list.Data[0].ID != "large" {
		t.Errorf("models %+v, %v", list, err)
	}
	stranger := openai.NewClient(openaioption.WithBaseURL(url+"/openai/v1"), openaioption.WithAPIKey("stranger"), openaioption.WithMaxRetries(0))
	_, err = stranger.Chat.Completions.New(t.Context(), talk(sdkPrompt))
	if e, is := errors.AsType[*openai.Error](err); !is || e.StatusCode != http.StatusUnauthorized || !strings.Contains(e.Message, "current attempt") {
		t.Errorf("a stranger: %v", err)
	}
}
