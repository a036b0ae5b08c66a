// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"math/bits"
)

// perTokens is the number of tokens that prices are given for: providers list them by the million.
const perTokens = 1_000_000

// Rates are the prices of a million tokens of each kind, in millionths of a currency.
type Rates struct {
	Input, Output, Cached, Writes, LongWrites int64
}

// Price of a model's calls.
type Price struct {
	Rates

	// Uses has the price of one use of each tool that the provider runs, and Call is that of one call, in millionths of a currency.
	Uses Uses
	Call int64
	// Long are the rates of calls with long requests. If several apply, the one with the largest Above counts.
	Long []LongRates
}

// LongRates are for all tokens of a call whose request has more tokens than Above.
type LongRates struct {
	Rates

	Above int64
}

// rates of a call whose request has the given tokens.
func (p Price) rates(sent int64) Rates {
	rates, above := p.Rates, int64(-1)
	for _, l := range p.Long {
		if sent > l.Above && l.Above > above {
			rates, above = l.Rates, l.Above
		}
	}
	return rates
}

// Cost of a call in millionths of the currency, rounded up. A cost that an int64 cannot hold is the largest int64, so that
// a budget refuses it. Negative numbers count as 0.
func (p Price) Cost(t Tokens) int64 {
	r := p.rates(t.Sent())
	tokens := total([]item{{t.Input, r.Input}, {t.Output, r.Output}, {t.Cached, r.Cached}, {t.Writes, r.Writes}, {t.LongWrites, r.LongWrites}}, perTokens)
	calls := []item{{1, p.Call}}
	for i, price := range p.Uses.each() {
		calls = append(calls, item{t.Uses.each()[i], price})
	}
	return add(tokens, total(calls, 1))
}

// item of a bill.
type item struct{ number, price int64 }

// total of items whose prices are for the given number of pieces, rounded up.
func total(items []item, pieces uint64) int64 {
	var high, low uint64
	for _, x := range items {
		// Four products of 63 bits each fit into 128 bits; more may not.
		h, l := bits.Mul64(uint64(max(x.number, 0)), uint64(max(x.price, 0)))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		if high, carry = bits.Add64(high, h, carry); carry > 0 {
			return math.MaxInt64
		}
	}
	low, carry := bits.Add64(low, pieces-1, 0)
	if high, carry = bits.Add64(high, 0, carry); carry > 0 || high >= pieces { // the quotient does not fit
		return math.MaxInt64
	}
	sum, _ := bits.Div64(high, low, pieces)
	return int64(min(sum, math.MaxInt64))
}

// add two numbers that are not negative. A sum that does not fit is the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
