// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"math/big"
)

// LeastShared is how many tokens all calls of a Feature must have used before shares of them mean something: before, one plan is most of what was used.
const LeastShared = 200_000

// Costly tells users which share of what a Feature has used is that of Tidewaiter's own calls, in percent; empty while the share is at most percent, or
// if the Feature has used fewer tokens than LeastShared. The share is one of the cost or, if no call has cost anything, of the tokens.
func Costly(all, own Amount, percent int) string {
	if add(all.Input, all.Output) < LeastShared {
		return ""
	}
	of, whole, part := "cost", all.Cost, own.Cost
	if whole <= 0 {
		of, whole, part = "tokens", add(all.Input, all.Output), add(own.Input, own.Output)
	}
	hundredfold := new(big.Int).Mul(big.NewInt(part), big.NewInt(100))
	if hundredfold.Cmp(new(big.Int).Mul(big.NewInt(int64(percent)), big.NewInt(whole))) <= 0 {
		return ""
	}
	share := new(big.Int).Div(hundredfold, big.NewInt(whole))
	return fmt.Sprintf("Plans and reviews (the role supervisor) have %d %% of the %s of all model calls, more than reviewers.costAlertPercent (%d): "+
		"let reviewers look less often, name a cheaper model for the role supervisor, or raise reviewers.costAlertPercent", share, of, percent)
}
