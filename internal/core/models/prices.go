// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// Prices of a million tokens, as decimal numbers in the gateway's currency.
type Prices struct {
	Input       string `json:"input,omitempty"`
	CachedInput string `json:"cachedInput,omitempty"`
	Output      string `json:"output,omitempty"`
}

func (p Prices) validate() error {
	for _, x := range []struct{ name, price string }{{"input", p.Input}, {"cachedInput", p.CachedInput}, {"output", p.Output}} {
		if _, err := ledger.ParseDecimal(x.price); x.price != "" && err != nil {
			return fmt.Errorf(`%s: %q is no price of a million tokens such as "3.00"`, x.name, x.price)
		}
	}
	return nil
}

// Price in the ledger's units. What is no price is 0.
func (p Prices) Price() ledger.Price {
	price := func(text string) int64 {
		n, err := ledger.ParseDecimal(text)
		if err != nil {
			return 0
		}
		return n
	}
	return ledger.Price{Input: price(p.Input), Cached: price(p.CachedInput), Output: price(p.Output)}
}
