// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

const (
	// AllowancePath is the gateway's path that says how much a Feature has used of its budgets for models, and how much is left. The watchdog of the
	// Feature's pod asks, with the pod's token; the answer is an Allowance.
	AllowancePath = "/v1/allowance"
	// ParamWanted is the query parameter with the amount that a refused call needs, copied from the refusal's WantedHeader.
	ParamWanted = "wanted"
	// WantedHeader is a header of a refusal for budget: it says how much the call needs.
	WantedHeader = "Tidewaiter-Wanted"
	// DialectsHeader is a header of a refusal of a dialect that the policy's backend does not speak. It lists the dialects that the backend
	// speaks, separated by commas. An agent that speaks every dialect continues in one of them.
	DialectsHeader = "Tidewaiter-Dialects"
	// RefusalReserved is the reason of a refusal when calls in progress have reserved what is left of the budget. Conditions do not use it.
	RefusalReserved = "BudgetReserved"
)

// Allowance is what a Feature has used of models, and whether it may use more.
type Allowance struct {
	Usage Usage `json:"usage"`
	// Exceeded names the budget that is too small for the call, and says what to do. It is empty if every budget is large enough.
	Exceeded string `json:"exceeded,omitempty"`
	// Reserved says that calls in progress have reserved what the call needs: the agent may make it when they end.
	Reserved bool `json:"reserved,omitempty"`
	// Warning names a budget of which most is used; empty if there is none.
	Warning string `json:"warning,omitempty"`
	// SupervisorCost says that plans and reviews have more than their share of what the Feature has used; empty if they do not.
	SupervisorCost string `json:"supervisorCost,omitempty"`
}

// Usage of models by a Feature, over all attempts.
type Usage struct {
	// InputTokens, of which the provider had CachedInputTokens in its cache.
	InputTokens       int64 `json:"inputTokens"`
	CachedInputTokens int64 `json:"cachedInputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	// Cost in the gateway's currency, as a decimal number.
	Cost string `json:"cost"`
	// Calls is the number of calls that ended.
	Calls int64 `json:"calls"`
}
