// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// TestCostly: the share of the cost counts, without prices that of the tokens, and none below the least amount.
func TestCostly(t *testing.T) {
	for name, tc := range map[string]struct {
		all, own ledger.Amount
		percent  int
		want     string
	}{
		"at the limit":        {ledger.Amount{Input: 200_000, Cost: 1000}, ledger.Amount{Input: 150_000, Cost: 100}, 10, ""},
		"above it":            {ledger.Amount{Input: 200_000, Cost: 1000}, ledger.Amount{Cost: 149}, 10, "have 14 % of the cost of all model calls, more than reviewers.costAlertPercent (10): "},
		"without prices":      {ledger.Amount{Input: 150_000, Output: 50_000}, ledger.Amount{Input: 20_000, Output: 2000}, 10, "have 11 % of the tokens of all model calls"},
		"few tokens":          {ledger.Amount{Input: 199_998, Output: 1, Cost: 1000}, ledger.Amount{Cost: 1000}, 10, ""},
		"nothing of its own":  {ledger.Amount{Input: 900_000, Cost: 1000}, ledger.Amount{}, 1, ""},
		"as much as can be":   {ledger.Amount{Input: math.MaxInt64, Output: math.MaxInt64, Cost: math.MaxInt64}, ledger.Amount{Cost: math.MaxInt64}, 99, "have 100 % of the cost"},
		"free and very large": {ledger.Amount{Input: math.MaxInt64, Output: math.MaxInt64}, ledger.Amount{Input: math.MaxInt64}, 100, ""},
	} {
		got := ledger.Costly(tc.all, tc.own, tc.percent)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) || len(got) > 512 {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
