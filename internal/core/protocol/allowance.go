// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

const (
	// AllowancePath of the gateway says what a Feature has used of models, and what is left of its budgets. The watchdog of the
	// Feature's pod asks, with the pod's token; the answer is an Allowance.
	AllowancePath = "/v1/allowance"
	// ParamWanted of such a question is what a call wants that was refused, as the refusal's WantedHeader had it.
	ParamWanted = "wanted"
	// WantedHeader is in refusals of calls that a budget leaves too little for now.
	WantedHeader = "Tidewaiter-Wanted"
	// DialectsHeader is in refusals of calls in a dialect that the backend of the policy does not speak: those that it speaks, with commas between. An agent that
	// speaks every dialect goes on in one of them.
	DialectsHeader = "Tidewaiter-Dialects"
	// RefusalReserved is the reason of a refused call which only calls under way leave too little for. It is no reason of a condition.
	RefusalReserved = "BudgetReserved"
)

// Allowance is what a Feature has used of models, and whether it may use more.
type Allowance struct {
	Usage Usage `json:"usage"`
	// Exceeded names the budget that leaves too little for the call, and what to do; empty where none does.
	Exceeded string `json:"exceeded,omitempty"`
	// Reserved says that only calls under way leave too little for it: it may be made when they have ended.
	Reserved bool `json:"reserved,omitempty"`
	// Warning names a budget of which most is used; empty where there is none.
	Warning string `json:"warning,omitempty"`
}

// Usage of models by a Feature, over all attempts.
type Usage struct {
	// InputTokens, of which the provider had CachedInputTokens in its cache.
	InputTokens       int64 `json:"inputTokens"`
	CachedInputTokens int64 `json:"cachedInputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	// Cost in the gateway's currency, as a decimal number.
	Cost string `json:"cost"`
	// Calls that have ended.
	Calls int64 `json:"calls"`
}
