// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbackends

import (
	"os"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// TestSampleOfBackends: the sample is one that a gateway takes, says when its prices were read, and says all that budgets need of each model.
func TestSampleOfBackends(t *testing.T) {
	text, err := os.ReadFile("../../../config/samples/model-backends.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`read on \d{4}-\d{2}-\d{2} from`).Match(text) {
		t.Error("the sample does not say when its prices were read")
	}
	var object corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatal(err)
	}
	config, err := Read(object.Data["backends.yaml"])
	if err != nil || len(config.Unpriced()) > 0 || len(config.Windowless()) > 0 {
		t.Fatalf("%v; without prices %v, without a window %v", err, config.Unpriced(), config.Windowless())
	}
	dialects := map[string]bool{}
	for _, b := range config.Backends {
		for _, d := range b.Dialects {
			dialects[d] = true
		}
		for _, m := range b.Models {
			if p := m.Prices.Price(); m.MaxOutput == 0 || p.Output <= p.Input || p.Cached >= p.Input || p.Uses.Searches == 0 {
				t.Errorf("%s/%s: most output %d, %+v", b.Name, m.Name, m.MaxOutput, p)
			}
		}
	}
	if len(dialects) != len(dialect.All()) {
		t.Errorf("the sample has models for %v", dialects)
	}
}

// TestSampleCharges: the sample charges what the providers' pages say of a call. The amounts are worked out by hand, in millionths of a dollar.
func TestSampleCharges(t *testing.T) {
	text, err := os.ReadFile("../../../config/samples/model-backends.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatal(err)
	}
	config, err := Read(object.Data["backends.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		model string
		used  ledger.Tokens
		cost  int64
	}{
		// https://platform.claude.com/docs/en/models/opus-5-5/overview: $4 and $20, cache reads $0.20, writes $5 and $8. The example of
		// https://github.com/patrickbykov/claude-telemetry-widget/wiki/Cost comes to $0.130.
		"Opus 5.5, with a cache of an hour": {"claude-opus-5-5", ledger.Tokens{Input: 2000, Cached: 140_000, LongWrites: 8000, Output: 1500}, 8000 + 28_000 + 64_000 + 30_000},
		// https://platform.claude.com/docs/en/models/sonnet-5-5/overview: $2 and $10, writes $2.50 and $4; no rates of long requests.
		"Sonnet 5.5, nine hundred thousand tokens": {"claude-sonnet-5-5", ledger.Tokens{Input: 900_000, Writes: 10_000, LongWrites: 10_000, Output: 1000}, 1_800_000 + 25_000 + 40_000 + 10_000},
		// https://platform.claude.com/docs/en/about-claude/models/whats-new-opus-5: $5, $6.25, $10, $0.50, $25.
		"Opus 5": {"claude-opus-5", ledger.Tokens{Input: 1000, Writes: 1000, LongWrites: 1000, Cached: 1000, Output: 1000}, 5000 + 6250 + 10_000 + 500 + 25_000},
		// Haiku 5.5: a prompt above 100,000 tokens, with what is read from the cache and written to it, costs more for every token, those of the answer as well.
		"Haiku 5.5, just short":  {"claude-haiku-5-5", ledger.Tokens{Input: 50_000, Cached: 40_000, Writes: 10_000, Output: 1000}, 5000 + 400 + 1250 + 500},
		"Haiku 5.5, one more":    {"claude-haiku-5-5", ledger.Tokens{Input: 50_001, Cached: 40_000, Writes: 10_000, Output: 1000}, 25_001 + 2000 + 6250 + 2500}, // 25,000.5, rounded up
		"a search of Sonnet 4.5": {"claude-sonnet-4-5", ledger.Tokens{Input: 1000, Output: 1000, Uses: ledger.Uses{Searches: 3}}, 3000 + 15_000 + 30_000},       // $10 for 1,000 searches
		// https://developers.openai.com/api/docs/models/gpt-6.2-sol: $2, $0.10, $2.50 and $5, $10; above 272,000 tokens input and cache double and output is
		// 1.5 times, for the full request.
		"Sol":                      {"gpt-6.2-sol", ledger.Tokens{Input: 72_000, Cached: 150_000, Writes: 40_000, LongWrites: 10_000, Output: 1000}, 144_000 + 15_000 + 100_000 + 50_000 + 10_000},
		"Sol, a long request":      {"gpt-6.2-sol", ledger.Tokens{Input: 72_001, Cached: 150_000, Writes: 40_000, LongWrites: 10_000, Output: 1000}, 288_004 + 30_000 + 200_000 + 100_000 + 15_000},
		"Neon, which thinks":       {"gemini-4-neon", ledger.Tokens{Input: 1000, Cached: 10_000, Output: 500}, 3000 + 1500 + 7500},
		"Hydrogen, with grounding": {"gemini-4-hydrogen", ledger.Tokens{Input: 1000, Output: 500, Uses: ledger.Uses{Searches: 1}}, 1500 + 3750 + 14_000}, // $14 for 1,000 searches
	} {
		var got int64 = -1
		for _, b := range config.Backends {
			for _, m := range b.Models {
				if m.Name == tc.model {
					got = m.Prices.Price().Cost(tc.used)
				}
			}
		}
		if got != tc.cost {
			t.Errorf("%s: %d, want %d", name, got, tc.cost)
		}
	}
}
