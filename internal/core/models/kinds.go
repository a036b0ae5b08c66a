// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "maps"

// Names of kinds that other code speaks of.
const (
	generic = "generic"
	bedrock = "bedrock"
)

// chatDialect is Chat Completions, and completionLimit its newer member for the most tokens of an answer
// (https://platform.openai.com/docs/api-reference/chat/create).
const (
	chatDialect     = "openai-chat"
	completionLimit = "max_completion_tokens"
)

// Paths of the dialects' endpoints, and of Gemini's two.
const (
	anthropicMessages = "/v1/messages"
	anthropicCount    = "/v1/messages/count_tokens"
	openaiChat        = "/v1/chat/completions"
	openaiResponses   = "/v1/responses"
	openaiCompact     = "/v1/responses/compact"
	openaiCount       = "/v1/responses/input_tokens"
	geminiGenerate    = "/v1beta/models/{model}:generateContent"
	geminiStream      = "/v1beta/models/{model}:streamGenerateContent"
	geminiCount       = "/v1beta/models/{model}:countTokens"
)

// Kinds of backends. A new one is an entry here, an example in docs/reference/backends.md, and its golden request.
func Kinds() []Kind {
	return []Kind{
		// https://docs.claude.com/en/api/messages, https://docs.claude.com/en/api/messages-count-tokens
		{Name: "anthropic", Serves: own(anthropicMessages, anthropicCount)},
		// https://platform.openai.com/docs/api-reference
		{Name: "openai", Serves: own(openaiChat, openaiResponses, openaiCompact, openaiCount), StreamUsage: true, LimitMember: completionLimit},
		azureOpenAI(),
		vertex(),
		bedrockRuntime(),
		// https://ai.google.dev/gemini-api/docs/openai and https://ai.google.dev/api/generate-content
		{Name: "google-openai", Serves: both(own(geminiGenerate, geminiStream, geminiCount), map[string]Place{openaiChat: {Path: "/v1beta/openai/chat/completions"}})},
		// https://docs.github.com/en/rest/models/inference
		{
			Name: "github-models", Serves: map[string]Place{openaiChat: {Path: "/inference/chat/completions"}},
			Headers: map[string]string{"X-Github-Api-Version": "2022-11-28"}, StreamUsage: true,
		},
		openRouter(),
		// https://docs.ollama.com/api/openai-compatibility and https://docs.ollama.com/api/anthropic-compatibility
		{Name: "ollama", Serves: own(openaiChat, openaiResponses, anthropicMessages), StreamUsage: true},
		// https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html: the option --api-key is for every path.
		{Name: "vllm", Serves: own(openaiChat, openaiResponses, anthropicMessages, anthropicCount), KeyHeader: "Authorization", KeyPrefix: "Bearer ", StreamUsage: true, BothLimits: true},
		{Name: generic},
	}
}

// azureOpenAI has the v1 API, whose paths are OpenAI's, and the dated ones, in which a deployment has a path of its own.
// https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
// https://learn.microsoft.com/azure/ai-foundry/openai/reference
func azureOpenAI() Kind {
	return Kind{
		Name: "azure-openai", KeyHeader: "Api-Key", StreamUsage: true, LimitMember: completionLimit,
		Serves: map[string]Place{
			openaiChat:      {Path: "/openai/v1/chat/completions", Dated: "/openai/deployments/{model}/chat/completions"},
			openaiResponses: {Path: "/openai/v1/responses", Dated: "/openai/responses"},
		},
	}
}

// vertex is Vertex AI; its base URL ends with the project and the location. What it serves of OpenAI is
// https://cloud.google.com/vertex-ai/generative-ai/docs/migrate/openai/overview; its models are named PUBLISHER/MODEL there, such as google/gemini-2.5-pro
// (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/migrate/openai/examples), and Claude is not among them. Google's APIs refuse parameters that they do not know, such as
// the beta=true of Anthropic's clients.
// https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
// https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/count-tokens
// https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference
func vertex() Kind {
	const version = `"anthropic_version":"vertex-2023-10-16"`
	return Kind{
		Name: "vertex", Credential: Google,
		Serves: map[string]Place{
			anthropicMessages: {
				Path: "/publishers/anthropic/models/{model}:rawPredict", Streamed: "/publishers/anthropic/models/{model}:streamRawPredict",
				Without: []string{"model", "anthropic_version"}, With: version, Query: []string{},
			},
			anthropicCount: {Path: "/publishers/anthropic/models/count-tokens:rawPredict", Without: []string{"anthropic_version"}, With: version, Query: []string{}},
			geminiGenerate: {Path: "/publishers/google/models/{model}:generateContent"},
			geminiStream:   {Path: "/publishers/google/models/{model}:streamGenerateContent"},
			geminiCount:    {Path: "/publishers/google/models/{model}:countTokens"},
			openaiChat:     {Path: "/endpoints/openapi/chat/completions"},
		},
	}
}

// bedrockRuntime is Amazon Bedrock's InvokeModel.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html
func bedrockRuntime() Kind {
	return Kind{
		Name: bedrock, Credential: AWS,
		Serves: map[string]Place{anthropicMessages: {
			Path: "/model/{model}/invoke", Streamed: "/model/{model}/invoke-with-response-stream",
			Without: []string{"model", "stream", "anthropic_version", "anthropic_beta"}, With: `"anthropic_version":"bedrock-2023-05-31"`, Betas: bedrockBetas(), Query: []string{},
		}},
	}
}

// bedrockBetas are the ones that Bedrock knows; a request with another one is refused ("invalid beta flag"), and Anthropic's clients send others.
// The one for a context of a million tokens is left out: it has another price.
// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html
func bedrockBetas() []string {
	return []string{
		"computer-use-2024-10-22", "computer-use-2025-01-24", "context-management-2025-06-27", "dev-full-thinking-2025-05-14",
		"effort-2025-11-24", "interleaved-thinking-2025-05-14", "output-128k-2025-02-19", "token-efficient-tools-2025-02-19",
		"tool-examples-2025-10-29", "tool-search-tool-2025-10-19",
	}
}

// openRouter takes the choice of models and providers only from the platform. It counts the tokens of every stream
// (https://openrouter.ai/docs/use-cases/usage-accounting).
// https://openrouter.ai/docs/api-reference/overview and https://openrouter.ai/docs/features/provider-routing
func openRouter() Kind {
	return Kind{
		Name: "openrouter", KeyHeader: "Authorization", KeyPrefix: "Bearer ", BothLimits: true,
		Serves: map[string]Place{
			openaiChat:        {Path: "/api/v1/chat/completions"},
			openaiResponses:   {Path: "/api/v1/responses"},
			anthropicMessages: {Path: "/api/v1/messages"},
		},
	}
}

// own are endpoints that a provider has where their dialect has them.
func own(paths ...string) map[string]Place {
	places := map[string]Place{}
	for _, path := range paths {
		places[path] = Place{Path: path}
	}
	return places
}

// both joins places.
func both(a, b map[string]Place) map[string]Place {
	maps.Copy(a, b)
	return a
}
