// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// unit of the currency in the ledger's numbers.
const unit = 1_000_000

// decimal has as many digits as millionths of a currency have, and as many before the point as an int64 has room for.
var decimal = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,6})?$`)

// Decimal is a cost in units of the currency, with two digits after the point, and more if they are not zero.
func Decimal(cost int64) string {
	text := fmt.Sprintf("%d.%06d", cost/unit, cost%unit)
	const always = 4 // digits that may be left out
	for range always {
		text = strings.TrimSuffix(text, "0")
	}
	return text
}

// ParseDecimal reads a cost that a user has written, such as 12.50.
func ParseDecimal(text string) (int64, error) {
	if !decimal.MatchString(text) {
		return 0, fmt.Errorf("%q is not an amount of money: give a decimal number such as 12.50, with at most 6 digits after the point", text)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	return strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
}
