// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

const (
	// bytesPerToken is the rule of thumb of providers for English text and code
	// (https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them).
	bytesPerToken = 4
	// unknownWindow is what a model is taken to read at most whose window is not configured: what most of them read
	// (https://docs.claude.com/en/docs/build-with-claude/context-windows).
	unknownWindow = 200_000
	// expectedOutput is what an answer is taken to have, in tokens: a thought and a call of a tool are shorter. One that is
	// longer is charged when it has ended.
	expectedOutput = 1024
)

// Reservation is what a call may use that is about to be made.
type Reservation struct {
	// ID of the call.
	ID string
	// FeatureUID and Namespace are who calls.
	FeatureUID, Namespace string
	// Wanted is what it may use, as far as is known.
	Wanted Amount
	// Until is when the call has ended, whatever became of it: from then on nothing is reserved for it.
	Until time.Time
}

// Expect what a call uses, by the size of its request in bytes. window is the most tokens that the model reads; 0 where that is not
// known. What a provider has cached costs less, which nobody knows before the call.
func Expect(request, window int64, price Price) Amount {
	t := expected(request, window)
	return Amount{Input: t.Input, Output: t.Output, Cost: price.Cost(t)}
}

func expected(request, window int64) Tokens {
	if window <= 0 {
		window = unknownWindow
	}
	return Tokens{Input: min(request/bytesPerToken, window), Output: expectedOutput}
}

// Charge is what a call counts as whose provider has not counted all of its tokens: the answer was cut off, or the agent hung
// up, or the provider counts none. It is what was counted, and at least what the request and the words of the answer come to.
func Charge(counted Tokens, request, window, answer int64) Tokens {
	t := counted
	if counted.Sent() == 0 {
		t.Input = expected(request, window).Input
	}
	t.Output = max(counted.Output, answer/bytesPerToken)
	return t
}
