// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOver(t *testing.T) {
	feature := Budget{Scope: Feature, Key: "uid", MaxTokens: 100}
	cost := Budget{Scope: Project, Key: "shop", MaxCost: 2_500_000}
	for name, tc := range map[string]struct {
		budget                 Budget
		used, reserved, wanted Amount
		want                   string // "" where the call may be made
	}{
		"no limit":                  {Budget{Scope: Global}, Amount{1 << 60, 1 << 60}, Amount{}, Amount{1 << 62, 1 << 62}, ""},
		"nothing used":              {feature, Amount{}, Amount{}, Amount{Tokens: 100}, ""},
		"exactly what is left":      {feature, Amount{Tokens: 50}, Amount{Tokens: 30}, Amount{Tokens: 20}, ""},
		"another resource":          {feature, Amount{Cost: 1000}, Amount{Cost: 1000}, Amount{Tokens: 1, Cost: 1000}, ""},
		"an unknown size, one left": {feature, Amount{Tokens: 99}, Amount{}, Amount{}, ""},
		"one too many": {
			feature, Amount{Tokens: 50}, Amount{Tokens: 30}, Amount{Tokens: 21},
			"the budget of the Feature leaves 20 tokens: the limit is 100 tokens, 50 tokens is used and 30 tokens is reserved for calls that have not ended; raise the limit, or wait for these calls",
		},
		"nothing left, an unknown size": {
			feature, Amount{Tokens: 60}, Amount{Tokens: 40}, Amount{},
			"the budget of the Feature leaves 0 tokens: the limit is 100 tokens, 60 tokens is used and 40 tokens is reserved for calls that have not ended; raise the limit, or wait for these calls",
		},
		"over by a call that used more": {
			feature, Amount{Tokens: 120}, Amount{}, Amount{Tokens: 1},
			"the budget of the Feature leaves 0 tokens: the limit is 100 tokens, 120 tokens is used and 0 tokens is reserved for calls that have not ended; raise the limit, or wait for these calls",
		},
		"money": {
			cost, Amount{Cost: 2_400_000}, Amount{Cost: 50_000}, Amount{Cost: 50_001},
			"the budget of the project \"shop\" leaves a cost of 0.050000: the limit is a cost of 2.500000, a cost of 2.400000 is used and a cost of 0.050000 is reserved for calls that have not ended; raise the limit, or wait for these calls",
		},
		"more than fits": {
			Budget{Scope: Global, MaxTokens: math.MaxInt64}, Amount{Tokens: math.MaxInt64 - 1}, Amount{Tokens: 2}, Amount{Tokens: math.MaxInt64},
			"the global budget leaves 0 tokens: the limit is 9223372036854775807 tokens, 9223372036854775806 tokens is used and 2 tokens is reserved for calls that have not ended; raise the limit, or wait for these calls",
		},
	} {
		got := ""
		if err := Over(tc.budget, tc.used, tc.reserved, tc.wanted); err != nil {
			got = err.Error()
			if over, is := errors.AsType[*OverBudgetError](err); !is || over.Scope != tc.budget.Scope || over.Key != tc.budget.Key {
				t.Errorf("%s: %#v", name, err)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOverHolds: calls that may be made, each using what it wanted, never use more than the limit.
func TestOverHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{Scope: Global, MaxTokens: rapid.Int64Range(1, 1000).Draw(t, "limit"), MaxCost: rapid.Int64Range(0, 1000).Draw(t, "cost")}
		var used, reserved Amount
		for range rapid.IntRange(1, 50).Draw(t, "calls") {
			wanted := Amount{Tokens: rapid.Int64Range(0, 200).Draw(t, "tokens"), Cost: rapid.Int64Range(0, 200).Draw(t, "cost")}
			if Over(b, used, reserved, wanted) != nil {
				continue
			}
			if rapid.Bool().Draw(t, "ends") {
				used = used.Plus(wanted)
			} else {
				reserved = reserved.Plus(wanted)
			}
			if all := used.Plus(reserved); all.Tokens > b.MaxTokens || b.MaxCost > 0 && all.Cost > b.MaxCost {
				t.Fatalf("%+v of %+v", all, b)
			}
		}
	})
}

func TestCost(t *testing.T) {
	sonnet := Price{Input: 3_000_000, Output: 15_000_000, Cached: 300_000}
	for name, tc := range map[string]struct {
		price  Price
		tokens Tokens
		want   int64
	}{
		"nothing":             {sonnet, Tokens{}, 0},
		"a million of each":   {sonnet, Tokens{1_000_000, 1_000_000, 1_000_000}, 18_300_000},
		"a thousand":          {sonnet, Tokens{Input: 1000, Output: 100, Cached: 10}, 3000 + 1500 + 3},
		"rounded up":          {sonnet, Tokens{Cached: 1}, 1},
		"rounded up once":     {Price{Input: 1, Output: 1, Cached: 1}, Tokens{1, 1, 1}, 1},
		"just not rounded":    {Price{Input: 1}, Tokens{Input: 1_000_000}, 1},
		"one above":           {Price{Input: 1}, Tokens{Input: 1_000_001}, 2},
		"more than fits":      {Price{math.MaxInt64, math.MaxInt64, math.MaxInt64}, Tokens{math.MaxInt64, math.MaxInt64, math.MaxInt64}, math.MaxInt64},
		"just what fits":      {Price{Input: 1_000_000}, Tokens{Input: math.MaxInt64}, math.MaxInt64},
		"negative is nothing": {Price{Input: -5, Output: 1_000_000}, Tokens{Input: 7, Output: -7}, 0},
	} {
		if got := tc.price.Cost(tc.tokens); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestCostIsExact: the same as with numbers of any size.
func TestCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, math.MaxInt64)
		p := Price{n.Draw(t, "input"), n.Draw(t, "output"), n.Draw(t, "cached")}
		k := Tokens{n.Draw(t, "inputs"), n.Draw(t, "outputs"), n.Draw(t, "cacheds")}
		sum := big.NewInt(perTokens - 1)
		for _, part := range [][2]int64{{p.Input, k.Input}, {p.Output, k.Output}, {p.Cached, k.Cached}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		sum.Div(sum, big.NewInt(perTokens))
		want := int64(math.MaxInt64)
		if sum.IsInt64() {
			want = sum.Int64()
		}
		if got := p.Cost(k); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestTotal(t *testing.T) {
	for tokens, want := range map[Tokens]int64{
		{1, 2, 3}:                         6,
		{-1, 2, -3}:                       2,
		{math.MaxInt64, 1, 1}:             math.MaxInt64,
		{1, math.MaxInt64, math.MaxInt64}: math.MaxInt64,
	} {
		if got := tokens.Total(); got != want {
			t.Errorf("%+v: %d, want %d", tokens, got, want)
		}
	}
}
