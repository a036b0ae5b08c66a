// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOver(t *testing.T) {
	feature := Budget{Scope: Feature, Key: "uid", Limit: Amount{Input: 100}, Origins: map[Resource]string{InputTokens: "the Feature"}}
	cost := Budget{Scope: Project, Key: "shop", Limit: Amount{Cost: 2_500_000}, Origins: map[Resource]string{Cost: "overrides of shop/limits"}}
	for name, tc := range map[string]struct {
		budget                 Budget
		used, reserved, wanted Amount
		want                   string // "" where the call may be made
		passes                 bool
	}{
		"no limit":                  {Budget{Scope: Global}, Amount{1 << 60, 1 << 60, 1 << 60}, Amount{}, Amount{1 << 62, 1 << 62, 1 << 62}, "", false},
		"nothing used":              {feature, Amount{}, Amount{}, Amount{Input: 100}, "", false},
		"exactly what is left":      {feature, Amount{Input: 50}, Amount{Input: 30}, Amount{Input: 20}, "", false},
		"another resource":          {feature, Amount{Cost: 1000, Output: 1000}, Amount{Cost: 1000}, Amount{Input: 1, Cost: 1000}, "", false},
		"an unknown size, one left": {feature, Amount{Input: 99}, Amount{}, Amount{}, "", false},
		"one too many for now": {
			feature, Amount{Input: 50}, Amount{Input: 30}, Amount{Input: 21},
			"the budget of the Feature has 50 of 100 input tokens left, and the next call may take 21; calls under way may take the rest: try again when they have ended",
			true,
		},
		"one too many": {
			feature, Amount{Input: 80}, Amount{}, Amount{Input: 21},
			"the budget of the Feature has 20 of 100 input tokens left, and the next call may take 21; raise spec.budget.maxInputTokens of the Feature",
			false,
		},
		"all is reserved, an unknown size": {
			feature, Amount{Input: 60}, Amount{Input: 40}, Amount{},
			"the budget of the Feature has 40 of 100 input tokens left, and the next call may take 0; calls under way may take the rest: try again when they have ended",
			true,
		},
		"over by a call that used more": {
			feature, Amount{Input: 120}, Amount{}, Amount{Input: 1},
			"the budget of the Feature has 0 of 100 input tokens left, and the next call may take 1; raise spec.budget.maxInputTokens of the Feature",
			false,
		},
		"money": {
			cost, Amount{Cost: 2_450_000}, Amount{Cost: 50_000}, Amount{Cost: 50_001},
			`this month's budget of the project "shop" has 0.05 of 2.50 left, and the next call may cost 0.050001; raise budget.project.maxCost of the SupervisorPolicy (overrides of shop/limits)`,
			false,
		},
		"what has to be raised comes before what has to be waited for": {
			Budget{Scope: Global, Limit: Amount{Input: 100, Output: 10}}, Amount{Input: 50, Output: 10}, Amount{Input: 50}, Amount{Input: 1, Output: 1},
			"this month's global budget has 0 of 10 output tokens left, and the next call may take 1; raise budget.global.maxOutputTokens",
			false,
		},
		"more than fits": {
			Budget{Scope: Global, Limit: Amount{Input: math.MaxInt64}}, Amount{Input: math.MaxInt64 - 1}, Amount{Input: 2}, Amount{Input: math.MaxInt64},
			"this month's global budget has 1 of 9223372036854775807 input tokens left, and the next call may take 9223372036854775807; raise budget.global.maxInputTokens",
			false,
		},
	} {
		got := ""
		if err := Over(tc.budget, tc.used, tc.reserved, tc.wanted); err != nil {
			got = err.Error()
			if over, is := errors.AsType[*OverBudgetError](err); !is || over.Scope != tc.budget.Scope || over.Key != tc.budget.Key || over.Passes() != tc.passes {
				t.Errorf("%s: %#v", name, err)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOverHolds: calls that may be made, each using what it wanted, never use more than the limit. One that passes may be made
// once nothing is reserved.
func TestOverHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string, from, to int64) Amount {
			n := rapid.Int64Range(from, to)
			return Amount{n.Draw(t, name+" input"), n.Draw(t, name+" output"), n.Draw(t, name+" cost")}
		}
		b := Budget{Scope: Global, Limit: amount("limit", 0, 1000)}
		var used, reserved Amount
		for range rapid.IntRange(1, 50).Draw(t, "calls") {
			wanted := amount("wanted", 0, 200)
			if err := Over(b, used, reserved, wanted); err != nil {
				over, _ := errors.AsType[*OverBudgetError](err)
				if over.Passes() != (Over(b, used, Amount{}, wanted) == nil) {
					t.Fatalf("passes %v: %v", over.Passes(), err)
				}
				continue
			}
			if rapid.Bool().Draw(t, "ends") {
				used = used.Plus(wanted)
			} else {
				reserved = reserved.Plus(wanted)
			}
			for _, r := range Resources() {
				if limit := b.Limit.Of(r); limit > 0 && used.Plus(reserved).Of(r) > limit {
					t.Fatalf("%+v and %+v of %+v", used, reserved, b)
				}
			}
		}
	})
}

func TestNearly(t *testing.T) {
	b := Budget{Scope: Feature, Key: "uid", Limit: Amount{Input: 1000, Cost: 10_000_000}}
	for name, tc := range map[string]struct {
		used Amount
		want string
	}{
		"little":                  {Amount{Input: 799, Output: 1 << 60, Cost: 7_999_999}, ""},
		"just so much":            {Amount{Input: 800}, "the budget of the Feature has 200 of 1000 input tokens left"},
		"the larger share counts": {Amount{Input: 900, Cost: 9_100_000}, "the budget of the Feature has 0.90 of 10.00 left"},
		"more than all":           {Amount{Input: math.MaxInt64}, "the budget of the Feature has 0 of 1000 input tokens left"},
	} {
		if got := Nearly(b, tc.used, 80); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestPeriod(t *testing.T) {
	at := time.Date(2026, 3, 1, 0, 30, 0, 0, time.FixedZone("east", 3600))
	for scope, want := range map[Scope]string{Feature: "", Project: "2026-02", Global: "2026-02"} {
		if got := scope.Period(at); got != want {
			t.Errorf("%s: %q, want %q", scope, got, want)
		}
	}
}

func TestExpect(t *testing.T) {
	price := Price{Rates: Rates{Input: 3_000_000, Output: 15_000_000}}
	for name, tc := range map[string]struct {
		request, window, output int64
		want                    Amount
	}{
		"text":                       {40_000, 200_000, 1024, Amount{Input: 10_000, Output: 1024, Cost: 30_000 + 15_360}},
		"no more than a model reads": {40_000_000, 200_000, 1024, Amount{Input: 200_000, Output: 1024, Cost: 600_000 + 15_360}},
		"an unknown window":          {4_000_000, 0, 1024, Amount{Input: 200_000, Output: 1024, Cost: 600_000 + 15_360}},
	} {
		if got := price.Wanted(Expect(tc.request, tc.window, tc.output)); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	if got := (Price{}).Wanted(Expect(400, 0, 1)); got.Cost != 0 {
		t.Errorf("without a price: %+v", got)
	}
}

func TestOutput(t *testing.T) {
	for _, tc := range [][3]int64{{0, 0, 32_000}, {500, 0, 500}, {0, 8000, 8000}, {500, 8000, 500}, {64_000, 8000, 8000}} {
		if got := Output(tc[0], tc[1]); got != tc[2] {
			t.Errorf("asked for %d of a model that gives %d: %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}

// TestFits: what fits is within the budget, and one token more is not.
func TestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := func(name string) int64 { return rapid.Int64Range(0, 80_000_000).Draw(t, name) }
		price := Price{Rates: Rates{Input: rate("input"), Output: rate("output")}, Call: rapid.Int64Range(0, 1000).Draw(t, "call")}
		if above := rapid.Int64Range(0, 400_000).Draw(t, "above"); above > 200_000 {
			price.Long = []LongRates{{Above: above, Rates: Rates{Input: rate("long input"), Output: rate("long output")}}}
		}
		tokens := Tokens{Input: rapid.Int64Range(0, 500_000).Draw(t, "tokens"), Output: rapid.Int64Range(1, 128_000).Draw(t, "most")}
		b := Budget{Limit: Amount{
			Input: rapid.Int64Range(0, 1_000_000).Draw(t, "limit of input"), Output: rapid.Int64Range(0, 200_000).Draw(t, "limit of output"), Cost: rapid.Int64Range(0, 20_000_000).Draw(t, "limit of cost"),
		}}
		used := Amount{Input: rate("used input") / 100, Output: rate("used output") / 1000, Cost: rate("used cost") / 8}
		var over *OverBudgetError
		if !errors.As(Over(b, used, Amount{}, price.Wanted(tokens)), &over) {
			return
		}
		within := func(output int64) bool {
			tokens.Output = output
			wanted := price.Wanted(tokens)
			return wanted.Of(over.Resource) <= over.Limit-over.Used && over.Used < over.Limit
		}
		most, fits := tokens.Output, over.Fits(tokens, price)
		if fits < 0 || fits >= most {
			t.Fatalf("%d of %d fit, and %v", fits, most, over)
		}
		if fits > 0 && !within(fits) || within(fits+1) {
			t.Fatalf("%d fit, and %v", fits, over)
		}
	})
}

// TestCharge: what the provider has not counted is not free.
func TestCharge(t *testing.T) {
	for name, tc := range map[string]struct {
		counted Tokens
		answer  int64
		want    Tokens
	}{
		"nothing is counted":          {Tokens{}, 4000, Tokens{Input: 10_000, Output: 1000}},
		"the request is":              {Tokens{Input: 7, Cached: 9000}, 400, Tokens{Input: 7, Cached: 9000, Output: 100}},
		"a part of the answer is":     {Tokens{Input: 9000, Output: 20}, 4000, Tokens{Input: 9000, Output: 1000}},
		"more than the words come to": {Tokens{Input: 9000, Output: 2000}, 400, Tokens{Input: 9000, Output: 2000}},
	} {
		if got := Charge(tc.counted, 40_000, 0, tc.answer); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestDecimal(t *testing.T) {
	for cost, want := range map[int64]string{0: "0.00", 1: "0.000001", 500_000: "0.50", 12_500_000: "12.50", 10_000_000: "10.00", 12_340_000: "12.34", 12_345_000: "12.345", 999_999_999_999_999: "999999999.999999"} {
		if got := Decimal(cost); got != want {
			t.Errorf("%d: %s, want %s", cost, got, want)
		}
		if got, err := ParseDecimal(want); err != nil || got != cost {
			t.Errorf("%s: %d, %v, want %d", want, got, err, cost)
		}
	}
	for _, text := range []string{"", "-1", "1.", ".5", "1,5", "1e3", "0.0000001", "1234567890", "12 EUR", "NaN"} {
		if n, err := ParseDecimal(text); err == nil {
			t.Errorf("%q: %d", text, n)
		}
	}
}

func TestCost(t *testing.T) {
	sonnet := Price{Rates: Rates{Input: 3_000_000, Output: 15_000_000, Cached: 300_000, Writes: 3_750_000, LongWrites: 6_000_000}, Uses: Uses{Searches: 10_000, Fetches: 7, Executions: 50_000, FileSearches: 2500, Images: 40_000}, Call: 5, Long: []LongRates{
		{Above: 400_000, Rates: Rates{Input: 9_000_000}},
		{Above: 200_000, Rates: Rates{Input: 6_000_000, Output: 22_500_000, Cached: 600_000}},
	}}
	one := func(r Rates) Price { return Price{Rates: r} }
	const most = math.MaxInt64
	for name, tc := range map[string]struct {
		price  Price
		tokens Tokens
		want   int64
	}{
		"nothing but the call":     {sonnet, Tokens{}, 5},
		"a thousand":               {sonnet, Tokens{Input: 1000, Output: 100, Cached: 10}, 3000 + 1500 + 3 + 5},
		"writes":                   {sonnet, Tokens{Writes: 1000, LongWrites: 1000}, 3750 + 6000 + 5},
		"searches":                 {sonnet, Tokens{Uses: Uses{Searches: 3}}, 30_000 + 5},
		"other tools":              {sonnet, Tokens{Uses: Uses{Fetches: 1, Executions: 2, FileSearches: 3, Images: 4, Connectors: 5}}, 7 + 100_000 + 7500 + 160_000 + 5},
		"just not long":            {sonnet, Tokens{Input: 50_000, Cached: 150_000, Output: 1_000_000}, 150_000 + 45_000 + 15_000_000 + 5},
		"long":                     {sonnet, Tokens{Input: 50_001, Cached: 150_000, Output: 1_000_000}, 300_006 + 90_000 + 22_500_000 + 5},
		"long by what was written": {sonnet, Tokens{Writes: 200_001, Output: 1_000_000}, 22_500_000 + 5},
		"longer":                   {sonnet, Tokens{Input: 1_000_000, Output: 1_000_000}, 9_000_000 + 5},
		"rounded up":               {one(Rates{Cached: 300_000}), Tokens{Cached: 1}, 1},
		"rounded up once":          {one(Rates{Input: 1, Output: 1, Cached: 1}), Tokens{Input: 1, Output: 1, Cached: 1}, 1},
		"just not rounded":         {one(Rates{Input: 1}), Tokens{Input: 1_000_000}, 1},
		"one above":                {one(Rates{Input: 1}), Tokens{Input: 1_000_001}, 2},
		"more than fits":           {one(Rates{most, most, most, most, most}), Tokens{most, most, most, most, most, Uses{Searches: most}}, most},
		"just what fits":           {one(Rates{Input: 1_000_000}), Tokens{Input: most}, most},
		"negative is nothing":      {one(Rates{Input: -5, Output: 1_000_000}), Tokens{Input: 7, Output: -7}, 0},
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
		rates := func(name string) Rates {
			return Rates{n.Draw(t, name+" input"), n.Draw(t, name+" output"), n.Draw(t, name+" cached"), n.Draw(t, name+" writes"), n.Draw(t, name+" long writes")}
		}
		uses := func(name string) Uses {
			return Uses{
				Searches: n.Draw(t, name+" searches"), Fetches: n.Draw(t, name+" fetches"), Executions: n.Draw(t, name+" executions"),
				FileSearches: n.Draw(t, name+" file searches"), Images: n.Draw(t, name+" images"), Connectors: n.Draw(t, name+" connectors"),
			}
		}
		p := Price{Rates: rates("short"), Uses: uses("price"), Call: n.Draw(t, "call"), Long: []LongRates{{rates("long"), n.Draw(t, "above")}}}
		k := Tokens{n.Draw(t, "inputs"), n.Draw(t, "outputs"), n.Draw(t, "cacheds"), n.Draw(t, "writtens"), n.Draw(t, "long writtens"), uses("number")}
		r, sent := p.Rates, new(big.Int)
		for _, x := range []int64{k.Input, k.Cached, k.Writes, k.LongWrites} {
			sent.Add(sent, big.NewInt(x))
		}
		if sent.Cmp(big.NewInt(p.Long[0].Above)) > 0 && (sent.IsInt64() || p.Long[0].Above < math.MaxInt64) {
			r = p.Long[0].Rates
		}
		sum := big.NewInt(perTokens - 1)
		for _, part := range [][2]int64{{r.Input, k.Input}, {r.Output, k.Output}, {r.Cached, k.Cached}, {r.Writes, k.Writes}, {r.LongWrites, k.LongWrites}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		sum.Div(sum, big.NewInt(perTokens))
		for _, x := range [][2]int64{
			{p.Uses.Searches, k.Searches}, {p.Uses.Fetches, k.Fetches}, {p.Uses.Executions, k.Executions},
			{p.Uses.FileSearches, k.FileSearches}, {p.Uses.Images, k.Images}, {p.Uses.Connectors, k.Connectors},
		} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(x[0]), big.NewInt(x[1])))
		}
		sum.Add(sum, big.NewInt(p.Call))
		want := int64(math.MaxInt64)
		if sum.IsInt64() {
			want = sum.Int64()
		}
		if got := p.Cost(k); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestAmountOfTokens(t *testing.T) {
	for tokens, want := range map[Tokens]Amount{
		{Input: 1, Output: 2, Cached: 3, Writes: 4, LongWrites: 5, Uses: Uses{Searches: 6}}: {Input: 13, Output: 2, Cost: 9},
		{Input: -1, Output: 2, Cached: -3, Writes: -4}:                                      {Output: 2, Cost: 9},
		{Input: math.MaxInt64, Output: 1, Cached: 1}:                                        {Input: math.MaxInt64, Output: 1, Cost: 9},
		{Input: 1, Output: math.MaxInt64, LongWrites: math.MaxInt64}:                        {Input: math.MaxInt64, Output: math.MaxInt64, Cost: 9},
	} {
		if got := tokens.Amount(9); got != want {
			t.Errorf("%+v: %+v, want %+v", tokens, got, want)
		}
	}
}

// TestJoinDetails: each detail is told once, and all of them are bounded.
func TestJoinDetails(t *testing.T) {
	for _, c := range []struct{ have, more, want string }{
		{"", "", ""}, {"a", "", "a"}, {"", "a", "a"}, {"a", "b", "a; b"}, {"a; b", "b", "a; b"}, {"a; b", "b; c; a", "a; b; c"},
	} {
		if got := JoinDetails(c.have, c.more); got != c.want {
			t.Errorf("%q and %q: %q, want %q", c.have, c.more, got, c.want)
		}
	}
	text := ""
	for n := range 10_000 {
		text = JoinDetails(text, fmt.Sprint("member", n, strings.Repeat("x", n)))
	}
	if len(text) > MaxDetail || !strings.HasSuffix(text, "…") || !strings.HasPrefix(text, "member0; member1x; ") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestFolds: calls that failed and cost nothing are folded, by what the agent has no choice of.
func TestFolds(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC)
	first := Interaction{ID: "one", At: at, FeatureUID: "uid", Attempt: 1, Task: "form", Backend: "main", Reason: "Answered", Status: 400}
	same := first
	same.ID, same.At, same.ModelAsked, same.RequestDigest, same.Detail = "two", at.Add(59*time.Second), "any", "other", "more"
	if !first.Folds() || !same.Folds() || first.FoldID() != same.FoldID() {
		t.Error("calls of a minute are not folded")
	}
	for what, change := range map[string]func(i *Interaction){
		"minute": func(i *Interaction) { i.At = at.Add(time.Minute) }, "Feature": func(i *Interaction) { i.FeatureUID = "other" },
		"attempt": func(i *Interaction) { i.Attempt = 2 }, "task": func(i *Interaction) { i.Task = "other" },
		"backend": func(i *Interaction) { i.Backend = "other" }, "reason": func(i *Interaction) { i.Reason = "other" },
		"status": func(i *Interaction) { i.Status = 429 },
	} {
		other := first
		change(&other)
		if other.FoldID() == first.FoldID() {
			t.Errorf("another %s is folded into the same record", what)
		}
	}
	for what, change := range map[string]func(i *Interaction){
		"answered": func(i *Interaction) { i.Status = 200 }, "cost": func(i *Interaction) { i.Cost = 1 },
		"tokens": func(i *Interaction) { i.Tokens.Cached = 1 },
	} {
		other := first
		change(&other)
		if other.Folds() {
			t.Errorf("a call is folded: %s", what)
		}
	}
}

// TestDearest: a call whose whole request is written into the provider's cache, for whatever time, costs no more than what is reserved for it.
func TestDearest(t *testing.T) {
	price := Price{Rates: Rates{Input: 4, Output: 20, Cached: 1, Writes: 5, LongWrites: 8}, Long: []LongRates{{Rates{Input: 8, Output: 30, Cached: 2, Writes: 10}, 200_000_000}}}
	for _, sent := range []int64{100_000_000, 300_000_000} {
		reserved := price.Dearest().Wanted(Tokens{Input: sent, Output: 1_000_000}).Cost
		for name, used := range map[string]Tokens{
			"read": {Input: sent, Output: 1_000_000}, "written": {Writes: sent, Output: 1_000_000}, "written for an hour": {LongWrites: sent, Output: 1_000_000}, "cached": {Cached: sent, Output: 1_000_000},
		} {
			if cost := price.Cost(used); cost > reserved {
				t.Errorf("%d tokens, %s: %d, and %d were reserved", sent, name, cost, reserved)
			}
		}
	}
	if price.Input != 4 || price.Long[0].Input != 8 {
		t.Errorf("the price has changed: %+v", price)
	}
}
