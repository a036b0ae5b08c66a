// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"strings"
	"testing"
)

func TestProvider(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"api.anthropic.com": true, "API.Anthropic.com.": true, "eu.api.openai.com": true, "acme.openai.azure.com": true,
		"bedrock-runtime.eu-west-1.amazonaws.com": true, "europe-west4-aiplatform.googleapis.com": true,
		"a.b.openai.azure.com": false, ".openai.azure.com": false, "anthropic.com": false, "docs.anthropic.com": false, "storage.googleapis.com": false,
		"s3.eu-west-1.amazonaws.com": false, "bedrock-runtime..amazonaws.com": false, "bedrock-runtime.a.b.amazonaws.com": false, "registry.npmjs.org": false, "": false,
	} {
		if got := Provider(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}

func TestBeside(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"api.openai.com:443": true, "llm.corp.example:8443": true, "vllm.models.svc.cluster.local:443": true, "vllm.models:443": true, "vllm.models.svc:443": true,
		"vllm.models.example:443": false, "registry.npmjs.org:443": false} {
		target, err := ParseTarget(name)
		if err != nil {
			t.Fatal(err)
		}
		err = Beside(target, []string{"llm.corp.example", "vllm.models.svc"})
		r, is := errors.AsType[*Refusal](err)
		if is != refused || is && (r.Reason != ReasonModelProvider || !strings.Contains(r.Message, "egress.modelProviders")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 40)
	for _, tc := range []struct {
		name, value, why string
	}{
		{"ANTHROPIC_API_KEY", long, "clients look for"},
		{"ANTHROPIC_AUTH_TOKEN", long, "clients look for"},
		{"AWS_BEARER_TOKEN_BEDROCK", long, "clients look for"},
		{"MY_SETTING", "sk-ant-" + long, "form of a key"},
		{"MY_SETTING", "https://api.openai.com/v1", "address of a provider"},
		{"OPENAI_API_KEY", "unused", ""}, // some clients do not start without
		{"OPENAI_BASE_URL", "http://127.0.0.1:8447/openai/v1", ""},
		{"NPM_TOKEN", long, ""},
		{"OPENAI_MODEL", long, ""},
		{"TEXT", "%zz api.openai.com", ""},
	} {
		if got := Key(tc.name, tc.value); tc.why == "" && got != "" || !strings.Contains(got, tc.why) || strings.Contains(got, long) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.why)
		}
	}
}
