// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

const (
	// bytesPerToken is the rule of thumb of providers for English text and code
	// (https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them).
	bytesPerToken = 4
	// unknownWindow is what a model is taken to read at most whose window is not configured: what most of them read
	// (https://docs.claude.com/en/docs/build-with-claude/context-windows).
	unknownWindow = 200_000
	// unknownOutput is what an answer is taken to have at most where neither its request nor the configuration of its model says: what coding agents
	// ask for (https://docs.claude.com/en/docs/claude-code/settings, CLAUDE_CODE_MAX_OUTPUT_TOKENS).
	unknownOutput = 32_000
)

// LeastOutput is the smallest limit of an answer in tokens: most thoughts with a tool call are shorter. The gateway refuses a call with less.
const LeastOutput = 1024

// Reservation is what a new call may use at most.
type Reservation struct {
	// ID of the call.
	ID string
	// FeatureUID and Namespace are who calls.
	FeatureUID, Namespace string
	// Wanted is what it may use, as far as known.
	Wanted Amount
	// Until is when the call has ended, whatever became of it: from then on nothing is reserved for it.
	Until time.Time
}

// Expect what a call uses at most, by the size of its request in bytes and by the tokens that its answer may have. The context window of
// the model is 0 if it is unknown. Cached tokens cost less, but their number is unknown before the call.
func Expect(request, window, output int64) Tokens {
	if window <= 0 {
		window = unknownWindow
	}
	return Tokens{Input: min(request/bytesPerToken, window), Output: output}
}

// Wanted is what a call with these tokens takes from budgets.
func (p Price) Wanted(t Tokens) Amount {
	return Amount{Input: t.Sent(), Output: t.Output, Cost: p.Cost(t)}
}

// Dearest is the price for reservations. Before the call it is unknown how much of its request the provider writes into its cache, which
// costs more than a read.
func (p Price) Dearest() Price {
	p.Rates = p.Rates.dearest()
	p.Long = slices.Clone(p.Long)
	for i := range p.Long {
		p.Long[i].Rates = p.Long[i].Rates.dearest()
	}
	return p
}

func (r Rates) dearest() Rates {
	r.Input = max(r.Input, r.Writes, r.LongWrites)
	return r
}

// Output is how many tokens an answer may have: the request's limit, and at most the model's limit; each is 0 if it is unknown.
func Output(asked, most int64) int64 {
	switch {
	case asked <= 0 && most <= 0:
		return unknownOutput
	case asked <= 0:
		return most
	case most <= 0:
		return asked
	}
	return min(asked, most)
}

// Fits is the most output of a call for which the budget has room if the calls in progress end without using anything. It is at most what
// the call wants, and 0 if there is no room at all.
func (e *OverBudgetError) Fits(t Tokens, price Price) (output int64) {
	left := e.Limit - e.Used
	if left <= 0 {
		return 0
	}
	switch e.Resource {
	case InputTokens:
		return 0
	case OutputTokens:
		return min(t.Output, left)
	case Cost:
	}
	most := t.Output
	for output < most {
		t.Output = output + (most-output+1)/2
		if price.Cost(t) <= left {
			output = t.Output
		} else {
			most = t.Output - 1
		}
	}
	return output
}

// outputPerSecond is how many tokens a model writes in a second, about as many as the fast ones of the providers do.
const outputPerSecond = 100

// Abandoned is the charge for a call that the agent gave up before its answer began, because the provider works on it anyway. It is the
// request, and what a model writes in the time that the provider had, up to most. For a stream that has sent nothing, most is 0.
func Abandoned(request, window, most int64, had time.Duration) Tokens {
	return Expect(request, window, min(most, int64(had.Seconds()*outputPerSecond)))
}

// Charge is the charge for a call whose provider has not counted all of its tokens. The answer was cut off, or the agent hung up, or the
// provider counts none. It is what the provider counted, and at least the estimate for the request and the text of the answer.
func Charge(counted Tokens, request, window, answer int64) Tokens {
	t := counted
	if counted.Sent() == 0 {
		t.Input = Expect(request, window, 0).Input
	}
	t.Output = max(counted.Output, answer/bytesPerToken)
	return t
}
