// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"math/bits"
)

// perTokens is the number of tokens that prices are given for: providers list them by the million.
const perTokens = 1_000_000

// Price of a million tokens of each kind, in millionths of a currency.
type Price struct {
	Input, Output, Cached int64
}

// Cost of tokens in millionths of the currency, rounded up. A cost that an int64 cannot hold is the largest int64, so that
// a budget refuses it. Negative numbers count as none.
func (p Price) Cost(t Tokens) int64 {
	var high, low uint64
	for _, part := range [...]struct{ tokens, price int64 }{{t.Input, p.Input}, {t.Output, p.Output}, {t.Cached, p.Cached}} {
		// Three products of 63 bits each take less than 128 bits.
		h, l := bits.Mul64(uint64(max(part.tokens, 0)), uint64(max(part.price, 0)))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, carry)
	}
	low, carry := bits.Add64(low, perTokens-1, 0)
	high += carry
	if high >= perTokens { // the quotient does not fit
		return math.MaxInt64
	}
	cost, _ := bits.Div64(high, low, perTokens)
	return int64(min(cost, math.MaxInt64))
}

// add two numbers that are not negative. A sum that does not fit is the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
