// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// providers are the hosts of well-known providers of models, read in their documents on 2026-11-26. "*" stands for one part of a name, or for a part of
// one. Hosts that serve other things as well, such as *.googleapis.com, are not here as a whole.
var providers = []string{
	"api.anthropic.com",
	"api.openai.com", "*.api.openai.com", // https://platform.openai.com/docs/guides/your-data, regional hosts
	"*.openai.azure.com", "*.services.ai.azure.com", "*.cognitiveservices.azure.com", "*.inference.ai.azure.com",
	"generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*-aiplatform.googleapis.com", "aiplatform.*.rep.googleapis.com",
	"bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com", "bedrock-mantle.*.api.aws",
	"models.github.ai", "models.inference.ai.azure.com", "api.githubcopilot.com", "*.githubcopilot.com",
	"openrouter.ai", "api.mistral.ai", "codestral.mistral.ai", "api.deepseek.com", "api.groq.com", "api.x.ai", "api.cohere.com", "api.cohere.ai",
	"api.together.xyz", "api.together.ai", "api.fireworks.ai", "api.perplexity.ai", "api.cerebras.ai", "api.moonshot.ai", "api.moonshot.cn", "api.z.ai",
	"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "router.huggingface.co", "api-inference.huggingface.co", "api.replicate.com",
	"integrate.api.nvidia.com", "api.sambanova.ai", "ollama.com", "opencode.ai", "ai-gateway.vercel.sh", "gateway.ai.cloudflare.com",
}

// Provider reports whether a host is that of a well-known provider of models.
func Provider(host string) bool {
	host = strings.TrimSuffix(lower(host), ".")
	return slices.ContainsFunc(providers, func(pattern string) bool { return fits(pattern, host) })
}

// fits reports whether a host is what a pattern with at most one "*" says. The "*" stands for something that has no dot.
func fits(pattern, host string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == host
	}
	middle, ok := strings.CutPrefix(host, before)
	if !ok {
		return false
	}
	middle, ok = strings.CutSuffix(middle, after)
	return ok && middle != "" && !strings.Contains(middle, ".")
}

// Beside refuses a target that is a well-known provider of models, or the host of one of the gateway's backends; nil for another one.
func Beside(target Target, backends []string) error {
	backend := func(host string) bool { return service(host) == service(target.Host) }
	if !Provider(target.Host) && !slices.ContainsFunc(backends, backend) {
		return nil
	}
	return &Refusal{Reason: ReasonModelProvider, Message: fmt.Sprintf(
		"%s serves models, and agents ask models through the gateway, at the address in their environment: set egress.modelProviders of a SupervisorPolicy to Allow if calls that it does not see are wanted", target)}
}

// service is a host without what a cluster's DNS adds to the name and the namespace of a Service: with it or without, and with the cluster's domain or
// without, a name has the same address.
func service(host string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(host, ".")+".", ".svc.")
	return strings.TrimSuffix(name, ".")
}

// leastKey is the length of the shortest key of a provider, in bytes. What is shorter stands in place of one: some clients do not start without.
const leastKey = 20

// keyNames are how the variables begin, and end, from which clients read keys of providers.
var (
	keyOwners = []string{
		"ANTHROPIC_", "CLAUDE_CODE_OAUTH_", "OPENAI_", "CODEX_", "AZURE_OPENAI_", "AZURE_API_", "GEMINI_", "GOOGLE_API_", "GOOGLE_GENERATIVE_AI_", "AWS_BEARER_TOKEN_BEDROCK",
		"OPENROUTER_", "MISTRAL_", "DEEPSEEK_", "GROQ_", "XAI_", "COHERE_", "TOGETHER_", "FIREWORKS_", "PERPLEXITY_", "CEREBRAS_", "MOONSHOT_", "ZAI_", "DASHSCOPE_", "COPILOT_",
	}
	keyEnds = []string{"API_KEY", "_KEY", "AUTH_TOKEN", "ACCESS_TOKEN", "_TOKEN", "TOKEN_BEDROCK"}
	// keyBeginnings are how keys begin, where they tell whose they are.
	keyBeginnings = []string{"sk-ant-", "sk-proj-", "sk-or-v1-", "sk-svcacct-", "AIzaSy", "gsk_", "xai-", "fw_", "pplx-", "csk-"}
)

// Key says why a variable of an agent's environment would have it ask models beside the gateway; empty where it would not. The value is not quoted.
func Key(name, value string) string {
	switch u, err := url.Parse(value); {
	case len(value) >= leastKey && slices.ContainsFunc(keyBeginnings, func(b string) bool { return strings.HasPrefix(value, b) }):
		return "has the form of a key of a provider of models"
	case len(value) >= leastKey && slices.ContainsFunc(keyOwners, func(b string) bool { return strings.HasPrefix(name, b) }) &&
		slices.ContainsFunc(keyEnds, func(e string) bool { return strings.HasSuffix(name, e) }):
		return "is where clients look for the key of a provider of models"
	case err == nil && u.Host != "" && Provider(u.Hostname()):
		return "has the address of a provider of models"
	}
	return ""
}
