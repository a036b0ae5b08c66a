// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "github.com/tidewaiter/tidewaiter/internal/core/dialect"

// Members that the gateway removes from requests to a backend, and members for which it refuses a request.
func (b Backend) Members() (strip, deny dialect.Names) {
	strip, deny = foldedStrip, foldedDeny
	if b.Strip != nil {
		strip = dialect.Fold(b.Strip...)
	}
	if b.Deny != nil {
		deny = dialect.Fold(b.Deny...)
	}
	return strip, deny
}

// Every call uses the built-in lists.
var foldedStrip, foldedDeny = dialect.Fold(BuiltinStrip()...), dialect.Fold(BuiltinDeny()...)

// BuiltinStrip are the members by which an agent would decide what the platform decides: price and place of an answer, other models and other
// providers (https://openrouter.ai/docs/features/provider-routing), how a server puts its templates together and whom it serves first
// (https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html), and llama.cpp's own limit of an answer, which overrides the dialect's.
func BuiltinStrip() []string {
	return []string{
		"service_tier", "speed", "inference_geo", "fallbacks", "fallback_credit_token", "anthropic_beta", "models", "provider", "route", "transforms",
		"chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message", "extra_body", "priority", "n_predict",
	}
}

// BuiltinDeny are the members that name another address, a key, or code. LiteLLM has members for its backends. Servers of vLLM and SGLang
// find one another by members, and run code that members name.
func BuiltinDeny() []string {
	return []string{"api_base", "base_url", "api_key", "kv_transfer_params", "bootstrap_host", "bootstrap_port", "lora_path", "logits_processors", "custom_logit_processor", "extra_headers", "extra_query"}
}
