// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// provider of models: where it answers, and how a key of it is known.
type provider struct {
	// name of it, for people.
	name string
	// hosts at which it answers. "*" stands for one part of a name, or for a part of one. Hosts that serve other things as well, such as *.googleapis.com, are
	// not here as a whole.
	hosts []string
	// variables from which clients read its keys, in capital letters: a whole name, or with "_" at its end the beginning of names that end as keyEnds say.
	variables []string
	// keys are how its keys begin, where that tells whose they are.
	keys []string
	// because says why a provider has no hosts, or no variables.
	because string
}

// providers are the well-known ones, as in their documents and in the clients' documents on 2026-11-26. TestProvidersAreWhole holds that none has
// hosts and no variables, or the other way round, without a reason.
var providers = []provider{
	{"Anthropic", []string{"api.anthropic.com"}, []string{"ANTHROPIC_", "CLAUDE_CODE_OAUTH_", "CLAUDE_API_"}, []string{"sk-ant-"}, ""},
	// https://platform.openai.com/docs/guides/your-data has the regional hosts.
	{"OpenAI", []string{"api.openai.com", "*.api.openai.com"}, []string{"OPENAI_", "CODEX_"}, []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}, ""},
	// Before Azure, whose pattern one of its hosts fits.
	{"GitHub Models", []string{"models.github.ai", "models.inference.ai.azure.com"}, nil, nil, "GITHUB_TOKEN opens it, which a build needs for repositories and packages"},
	{
		"Azure", []string{"*.openai.azure.com", "*.services.ai.azure.com", "*.cognitiveservices.azure.com", "*.inference.ai.azure.com"},
		[]string{"AZURE_OPENAI_", "AZURE_API_", "AZURE_AI_API_", "AZURE_INFERENCE_", "AZURE_AI_INFERENCE_", "AZURE_COGNITIVE_SERVICES_"}, nil, "",
	},
	{
		"Google", []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*-aiplatform.googleapis.com", "aiplatform.*.rep.googleapis.com"},
		[]string{"GEMINI_", "GOOGLE_API_", "GOOGLE_GENERATIVE_AI_"}, []string{"AIzaSy"}, "",
	},
	// The other variables of AWS are for all of its services, and most of those serve no models.
	{
		"Amazon Bedrock", []string{"bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com", "bedrock-mantle.*.api.aws"},
		[]string{"AWS_BEARER_TOKEN_BEDROCK"}, []string{"bedrock-api-key-"}, "",
	},
	{"GitHub Copilot", []string{"api.githubcopilot.com", "*.githubcopilot.com"}, []string{"COPILOT_", "GITHUB_COPILOT_"}, nil, ""},
	{"OpenRouter", []string{"openrouter.ai"}, []string{"OPENROUTER_"}, []string{"sk-or-v1-"}, ""},
	{"Mistral", []string{"api.mistral.ai", "codestral.mistral.ai"}, []string{"MISTRAL_", "CODESTRAL_"}, nil, ""},
	{"DeepSeek", []string{"api.deepseek.com"}, []string{"DEEPSEEK_"}, nil, ""},
	{"Groq", []string{"api.groq.com"}, []string{"GROQ_"}, []string{"gsk_"}, ""},
	{"xAI", []string{"api.x.ai"}, []string{"XAI_", "GROK_"}, []string{"xai-"}, ""},
	{"Cohere", []string{"api.cohere.com", "api.cohere.ai"}, []string{"COHERE_", "CO_API_"}, nil, ""},
	{"Together AI", []string{"api.together.xyz", "api.together.ai"}, []string{"TOGETHER_", "TOGETHERAI_"}, []string{"tgp_v1_"}, ""},
	{"Fireworks AI", []string{"api.fireworks.ai"}, []string{"FIREWORKS_"}, []string{"fw_"}, ""},
	{"Perplexity", []string{"api.perplexity.ai"}, []string{"PERPLEXITY_", "PPLX_", "PERPLEXITYAI_"}, []string{"pplx-"}, ""},
	{"Cerebras", []string{"api.cerebras.ai"}, []string{"CEREBRAS_"}, []string{"csk-"}, ""},
	{"Moonshot AI", []string{"api.moonshot.ai", "api.moonshot.cn"}, []string{"MOONSHOT_", "KIMI_"}, nil, ""},
	{"Z.AI", []string{"api.z.ai"}, []string{"ZAI_", "Z_AI_", "ZHIPU_", "ZHIPUAI_"}, nil, ""},
	{"Alibaba Cloud Model Studio", []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"}, []string{"DASHSCOPE_", "QWEN_"}, nil, ""},
	{
		"Hugging Face", []string{"router.huggingface.co", "api-inference.huggingface.co"},
		[]string{"HF_", "HUGGINGFACE_", "HUGGING_FACE_", "HUGGINGFACEHUB_"}, []string{"hf_"}, "",
	},
	{"Replicate", []string{"api.replicate.com"}, []string{"REPLICATE_"}, []string{"r8_"}, ""},
	{"NVIDIA", []string{"integrate.api.nvidia.com"}, []string{"NVIDIA_", "NIM_API_"}, []string{"nvapi-"}, ""},
	{"SambaNova", []string{"api.sambanova.ai"}, []string{"SAMBANOVA_"}, nil, ""},
	{"Ollama", []string{"ollama.com"}, []string{"OLLAMA_"}, nil, ""},
	{"OpenCode Zen", []string{"opencode.ai"}, []string{"OPENCODE_"}, nil, ""},
	{"Vercel AI Gateway", []string{"ai-gateway.vercel.sh"}, []string{"AI_GATEWAY_"}, []string{"vck_"}, ""},
	// One token of Cloudflare opens its models and its other services.
	{"Cloudflare", []string{"gateway.ai.cloudflare.com"}, []string{"CLOUDFLARE_API_", "CF_API_", "CF_AIG_", "CLOUDFLARE_AI_"}, nil, ""},
	// Last, because the others say more.
	{"a provider of models", nil, []string{"LLM_", "LITELLM_"}, []string{"sk-"}, "clients of several providers read these, and several begin their keys so"},
}

// Provider is the name of the well-known provider of models that answers at a host; empty for another host.
func Provider(host string) string {
	host = strings.TrimSuffix(lower(host), ".")
	for _, p := range providers {
		if slices.ContainsFunc(p.hosts, func(pattern string) bool { return fits(pattern, host) }) {
			return p.name
		}
	}
	return ""
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
	if Provider(target.Host) == "" && !slices.ContainsFunc(backends, backend) {
		return nil
	}
	return &Refusal{Reason: ReasonModelProvider, Message: fmt.Sprintf(
		"%s serves models, and agents ask models through the gateway, at the address in their environment. To allow calls that it does not see, set egress.modelProviders of a SupervisorPolicy to Allow", target)}
}

// service is a host without what a cluster's DNS adds to the name and the namespace of a Service: with it or without, and with the cluster's domain or
// without, a name has the same address.
func service(host string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(host, ".")+".", ".svc.")
	return strings.TrimSuffix(name, ".")
}

// leastKey is the length of the shortest key of a provider, in bytes. What is shorter stands in place of one: some clients do not start without.
const leastKey = 20

// telling is how many bytes a beginning of keys has that tells enough for all marks of keys to follow. After a shorter one only letters and digits do, as
// in the keys of those providers: "sk-" begins names, too.
const telling = 6

// keyEnds are how variables with keys end.
var keyEnds = []string{"KEY", "KEYS", "TOKEN"}

// Key says why a variable of an agent's environment would make it call models without the gateway; empty if it would not. It names the
// provider, and does not quote the value. Clients read names in capital letters, and an agent reads them all.
func Key(name, value string) string {
	value = strings.TrimSpace(value)
	if len(value) >= leastKey {
		for _, p := range providers {
			if p.reads(strings.ToUpper(name)) {
				return "is where clients look for the key of " + p.name
			}
		}
		for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return !isKey(r) }) {
			for _, p := range providers {
				if p.gave(word) {
					return "has the form of a key of " + p.name
				}
			}
		}
	}
	if p := Provider(hostOf(value)); p != "" {
		return "has the address of " + p + ", which serves models"
	}
	return ""
}

// reads reports whether clients read a key of the provider from a variable, whose name is in capital letters.
func (p provider) reads(name string) bool {
	return slices.ContainsFunc(p.variables, func(variable string) bool {
		if !strings.HasSuffix(variable, "_") {
			return name == variable
		}
		rest, ok := strings.CutPrefix(name, variable)
		return ok && slices.ContainsFunc(keyEnds, func(end string) bool { return strings.HasSuffix(rest, end) })
	})
}

// gave reports whether the word of letters, digits, "-" and "_" has the form of the provider's keys.
func (p provider) gave(word string) bool {
	return len(word) >= leastKey && slices.ContainsFunc(p.keys, func(begins string) bool {
		rest, ok := strings.CutPrefix(word, begins)
		return ok && (len(begins) >= telling || !strings.ContainsAny(rest, "-_"))
	})
}

func isKey(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// hostOf a value that is an address, with its scheme or without; empty for any other value.
func hostOf(value string) string {
	if !strings.Contains(value, "://") {
		value = "//" + strings.TrimPrefix(value, "//")
	}
	u, err := url.Parse(value)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
