// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// Prices of a million tokens, as decimal numbers in the gateway's currency.
type Prices struct {
	Input       string `json:"input,omitempty"`
	CachedInput string `json:"cachedInput,omitempty"`
	Output      string `json:"output,omitempty"`
}

// decimal has as many digits as millionths of a currency have, and no price of a million tokens has more before the point.
var decimal = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,6})?$`)

func (p Prices) validate() error {
	for _, x := range []struct{ name, price string }{{"input", p.Input}, {"cachedInput", p.CachedInput}, {"output", p.Output}} {
		if x.price != "" && !decimal.MatchString(x.price) {
			return fmt.Errorf(`%s: %q is no price of a million tokens such as "3.00"`, x.name, x.price)
		}
	}
	return nil
}

// Price in the ledger's units.
func (p Prices) Price() ledger.Price {
	return ledger.Price{Input: millionths(p.Input), Cached: millionths(p.CachedInput), Output: millionths(p.Output)}
}

// millionths of a price that was validated; what is none is 0.
func millionths(price string) int64 {
	whole, fraction, _ := strings.Cut(price, ".")
	n, err := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	if err != nil || !decimal.MatchString(price) {
		return 0
	}
	return n
}
