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
		"models.github.ai": true, "router.huggingface.co": true, "api.anthropic.com": true, "API.Anthropic.com.": true, "eu.api.openai.com": true, "acme.openai.azure.com": true,
		"bedrock-runtime.eu-west-1.amazonaws.com": true, "europe-west4-aiplatform.googleapis.com": true,
		"a.b.openai.azure.com": false, ".openai.azure.com": false, "anthropic.com": false, "docs.anthropic.com": false, "storage.googleapis.com": false,
		"s3.eu-west-1.amazonaws.com": false, "bedrock-runtime..amazonaws.com": false, "bedrock-runtime.a.b.amazonaws.com": false, "registry.npmjs.org": false, "": false,
	} {
		if got := Provider(host); (got != "") != want {
			t.Errorf("%q: %q", host, got)
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

// TestProvidersAreWhole: the hosts of a provider and the variables of its keys stand in one row, and a row that has only one of them says why. What a row
// has is found, and found as its own.
func TestProvidersAreWhole(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, p := range providers {
		if p.name == "" || names[p.name] {
			t.Errorf("%q has no name, or one that another has", p.name)
		}
		names[p.name] = true
		if half := len(p.hosts) == 0 || len(p.variables) == 0; half == (p.because == "") {
			t.Errorf("%s: %d hosts, %d variables, because %q", p.name, len(p.hosts), len(p.variables), p.because)
		}
		for _, host := range p.hosts {
			if got := Provider(strings.Replace(host, "*", "x", 1)); got != p.name {
				t.Errorf("%s is of %q, want %s", host, got, p.name)
			}
		}
		long := strings.Repeat("x", 40)
		for _, v := range p.variables {
			if v != strings.ToUpper(v) {
				t.Errorf("%s is not in capital letters", v)
			}
			if strings.HasSuffix(v, "_") {
				v += "API_KEY"
			}
			if got := Key(v, long); got != "is where clients look for the key of "+p.name {
				t.Errorf("%s %s, want that of %s", v, got, p.name)
			}
		}
		for _, k := range p.keys {
			if got := Key("SETTING", k+long); got != "has the form of a key of "+p.name {
				t.Errorf("%s… %s, want that of %s", k, got, p.name)
			}
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 40)
	for _, tc := range []struct {
		name, value, why string
	}{
		{"ANTHROPIC_API_KEY", long, "clients look for the key of Anthropic"},
		{"ANTHROPIC_AUTH_TOKEN", long, "clients look for the key of Anthropic"},
		{"anthropic_api_key", long, "clients look for the key of Anthropic"},
		{"Azure_OpenAI_APIKey", long, "clients look for the key of Azure"},
		{"AWS_BEARER_TOKEN_BEDROCK", long, "clients look for the key of Amazon Bedrock"},
		{"HF_TOKEN", "hf_" + long, "clients look for the key of Hugging Face"},
		{"HUGGINGFACE_API_KEY", long, "clients look for the key of Hugging Face"},
		{"HUGGING_FACE_HUB_TOKEN", long, "clients look for the key of Hugging Face"},
		{"REPLICATE_API_TOKEN", long, "clients look for the key of Replicate"},
		{"NVIDIA_API_KEY", "nvapi-" + long, "clients look for the key of NVIDIA"},
		{"SAMBANOVA_API_KEY", long, "clients look for the key of SambaNova"},
		{"OLLAMA_API_KEY", long, "clients look for the key of Ollama"},
		{"OPENCODE_API_KEY", long, "clients look for the key of OpenCode Zen"},
		{"AI_GATEWAY_API_KEY", long, "clients look for the key of Vercel AI Gateway"},
		{"CLOUDFLARE_API_TOKEN", long, "clients look for the key of Cloudflare"},
		{"LLM_API_KEY", long, "clients look for the key of a provider of models"},

		{"MY_SETTING", "sk-ant-api03-x_y-" + long, "form of a key of Anthropic"},
		{"MY_SETTING", "nvapi-" + long, "form of a key of NVIDIA"},
		{"MODEL_KEY", "sk-" + long, "form of a key of a provider of models"},
		{"MODEL_KEY", " sk-" + long + "\n", "form of a key of a provider of models"},
		{"HEADERS", "x-api-key: sk-ant-" + long, "form of a key of Anthropic"},
		{"SETTINGS", `{"options":{"apiKey":"sk-proj-` + long + `"}}`, "form of a key of OpenAI"},

		{"MY_SETTING", "https://api.openai.com/v1", "address of OpenAI"},
		{"MY_SETTING", "api.openai.com", "address of OpenAI"},
		{"MY_SETTING", "api.openai.com:443", "address of OpenAI"},
		{"MY_SETTING", "API.OpenAI.com./v1", "address of OpenAI"},
		{"MY_SETTING", "//api.openai.com/v1", "address of OpenAI"},
		{"MY_SETTING", "https://me:" + long + "@acme.openai.azure.com:8443?a=b", "address of Azure"},

		{"OPENAI_API_KEY", "unused", ""}, // some clients do not start without
		{"OPENAI_BASE_URL", "http://127.0.0.1:8447/openai/v1", ""},
		{"OPENAI_MODEL", long, ""},
		{"HF_HOME", "/home/agent/.cache/huggingface", ""},
		{"HF_ENDPOINT", "https://huggingface.co", ""},
		{"NVIDIA_VISIBLE_DEVICES", "GPU-" + long, ""},
		{"OLLAMA_HOST", "http://ollama.models.svc:11434", ""},
		{"CLOUDFLARE_ACCOUNT_ID", long, ""},
		{"TEXT", "%zz api.openai.com", ""},
		{"NO_PROXY", "api.openai.com,localhost", ""},
		{"CLUSTER", "sk-production-cluster-of-europe-1", ""}, // Slovakia
		{"IMAGE", "hf_hub_downloads_cache_directory", ""},
		{"FIRMWARE", "fw_2026_11_26_release_candidate", ""},
		{"LANGFUSE_SECRET_KEY", "sk-lf-" + "1b6b2f5e-0d3a-4f3e-9a51-5b9d6f0c1234", ""},
		{"STRIPE_SECRET_KEY", "sk_test_" + long, ""},
	} {
		if got := Key(tc.name, tc.value); tc.why == "" && got != "" || !strings.Contains(got, tc.why) || strings.Contains(got, long) {
			t.Errorf("%s=%s: %q, want %q", tc.name, tc.value, got, tc.why)
		}
	}
}

// TestKeysOfABuild: what builds, tests and forges need in an environment is not refused.
func TestKeysOfABuild(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("aB3", 14)
	for name, value := range map[string]string{
		"GITHUB_TOKEN": "ghp_" + long, "GH_TOKEN": "github_pat_" + long, "GITLAB_TOKEN": "glpat-" + long, "CI_JOB_TOKEN": long, "NPM_TOKEN": "npm_" + long, "NODE_AUTH_TOKEN": "npm_" + long,
		"PYPI_TOKEN": "pypi-" + long, "TWINE_PASSWORD": "pypi-" + long, "CARGO_REGISTRY_TOKEN": "cio" + long, "GEM_HOST_API_KEY": "rubygems_" + long, "NUGET_API_KEY": "oy2" + long,
		"DATABASE_URL": "postgres://shop:" + long + "@db.shop.svc:5432/shop", "REDIS_URL": "redis://:" + long + "@cache:6379/0", "MONGODB_URI": "mongodb+srv://shop:" + long + "@shop.example.net",
		"SLACK_TOKEN": "xoxb-" + long, "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/" + long, "SENTRY_AUTH_TOKEN": "sntrys_" + long, "SENTRY_DSN": "https://" + long + "@o1.ingest.sentry.io/1",
		"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": long, "AWS_SESSION_TOKEN": long, "GOOGLE_APPLICATION_CREDENTIALS": "/var/run/secrets/google/key.json",
		"AZURE_CLIENT_SECRET": long, "AZURE_STORAGE_KEY": long, "AZURE_DEVOPS_EXT_PAT": long, "DIGITALOCEAN_TOKEN": "dop_v1_" + long, "DIGITALOCEAN_ACCESS_TOKEN": "dop_v1_" + long,
		"VERCEL_TOKEN": long, "NETLIFY_AUTH_TOKEN": "nfp_" + long, "FLY_API_TOKEN": "fo1_" + long, "HEROKU_API_KEY": long, "TF_TOKEN_app_terraform_io": long, "VAULT_TOKEN": "hvs." + long,
		"SONAR_TOKEN": "sqp_" + long, "CODECOV_TOKEN": long, "SNYK_TOKEN": long, "DOCKER_PASSWORD": "dckr_pat_" + long, "DOCKER_AUTH_CONFIG": `{"auths":{"ghcr.io":{"auth":"` + long + `"}}}`,
		"STRIPE_SECRET_KEY": "sk_test_" + long, "TWILIO_AUTH_TOKEN": long, "SENDGRID_API_KEY": "SG." + long, "DATADOG_API_KEY": long, "DD_API_KEY": long, "NEW_RELIC_LICENSE_KEY": long,
		"SECRET_KEY": long, "SECRET_KEY_BASE": long + long, "JWT_SECRET": long, "ENCRYPTION_KEY": long, "DJANGO_SECRET_KEY": "django-insecure-" + long, "RAILS_MASTER_KEY": long, "API_KEY": long, "TOKEN": long,
		"GPG_PRIVATE_KEY": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n" + long + "+/" + long + "=\n", "SSH_KEY": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + long, "SUPABASE_KEY": "eyJhbGciOiJIUzI1NiJ9." + long,
		"LINEAR_API_KEY": "lin_api_" + long, "JIRA_API_TOKEN": "ATATT3x" + long, "FIGMA_TOKEN": "figd_" + long, "MAPBOX_ACCESS_TOKEN": "pk." + long, "ALGOLIA_API_KEY": long,
		"GOPROXY": "https://proxy.golang.org,direct", "GOPRIVATE": "git.example.com", "PIP_INDEX_URL": "https://pypi.org/simple", "HTTPS_PROXY": "http://127.0.0.1:8448", "NODE_OPTIONS": "--max-old-space-size=4096",
		"JAVA_TOOL_OPTIONS": "-Xmx2g -XX:+UseSerialGC", "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "sk_SK.UTF-8", "CI": "true",
	} {
		if why := Key(name, value); why != "" {
			t.Errorf("%s is refused: it %s", name, why)
		}
	}
}
