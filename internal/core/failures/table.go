// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failures says who caused a failed model call, and whether such calls caused the end of an agent.
package failures

import (
	"strconv"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Reasons that the watchdog gives, in addition to the gateway's.
const (
	// GatewayUnreachable: the watchdog cannot reach the gateway.
	GatewayUnreachable = "GatewayUnreachable"
	// AnswerBroken: the gateway's answer broke off on its way to the watchdog.
	AnswerBroken = "AnswerBroken"
	// AnswerCutOff: the answer ended before it was whole. The gateway says so as well.
	AnswerCutOff = "AnswerCutOff"
	// AnswerFailed: the provider ended its answer with an error.
	AnswerFailed = "AnswerFailed"
	// RequestTooLarge: the request has more than dialect.MaxBody bytes. This and what follows the gateway says as well.
	RequestTooLarge = "RequestTooLarge"
	// InvalidRequest: the request cannot be read.
	InvalidRequest = "InvalidRequest"
	// CallerStalls: the request does not come, or its answer is not read.
	CallerStalls = "CallerStalls"
	// BackendAvoided: the gateway makes no calls to a backend that fails.
	BackendAvoided = "BackendAvoided"
	// MemoryShare: the Feature's calls in progress hold all memory that it may use for them.
	MemoryShare = "MemoryShare"
	// MemoryFull: calls of all Features hold the gateway's memory for them.
	MemoryFull = "MemoryFull"
	// StatusPrefix begins the reason of an error that is the provider's own; the status follows.
	StatusPrefix = "Status"
)

// firstError is the first status that is one.
const firstError = 400

// Row says who is to blame for one kind of answer.
type Row struct {
	// Reason of the gateway or of the watchdog; empty in a row for answers of providers.
	Reason string
	// First and Last status of the provider's own errors that the row is for; both are zero in a row with a Reason.
	First, Last int
	// Class is one of protocol.FailureClasses.
	Class string
	// Meaning says what happened, and Fix what a user can do about it.
	Meaning, Fix string
}

const (
	fixWait    = "Wait: the next attempt tries again. If it lasts, see the provider's status page, or add a fallback to the backend."
	fixGateway = "See the gateway's pods and log in tidewaiter-system."
	fixAgent   = "See the agent's log: its client sends what the gateway or the provider cannot answer."
)

// Rows are the table. The first row that is for an answer counts.
func Rows() []Row {
	return []Row{
		{Reason: "ModelNotAvailable", Class: protocol.FailurePolicy, Meaning: "No backend in force has the policy's model or speaks the dialect, or a cost budget needs prices that the model does not have.",
			Fix: "Add the backend or the model to the ConfigMap tidewaiter-backends, or correct models of the SupervisorPolicy."},
		{Reason: "KeyNotAccepted", Class: protocol.FailurePolicy, Meaning: "The backend has no key, does not accept it, or the gateway may not read it.",
			Fix: "Set the backend's entry of the Secret tidewaiter-model-keys, or the Secret that models[].secretKeyRef of the policy names."},
		{Reason: "ServerToolNotAllowed", Class: protocol.FailurePolicy, Meaning: "The request asks for a tool that the provider runs, and the policy does not allow it.",
			Fix: "List the tool in egress.providerTools of a SupervisorPolicy, or switch it off in the agent."},
		{Reason: "ProviderStateNotAllowed", Class: protocol.FailurePolicy, Meaning: "The request refers to state that the provider would keep, and the policy does not allow it.",
			Fix: "Allow it by models[].providerState in a SupervisorPolicy, or switch it off in the agent."},
		{Reason: "BackendRedirects", Class: protocol.FailurePolicy, Meaning: "The backend answers with a redirection, which the gateway does not follow.",
			Fix: "Set baseURL of the backend to the address that it redirects to."},
		{Reason: protocol.ReasonSuspendedByPolicy, Class: protocol.FailurePolicy, Meaning: "A SupervisorPolicy that applies to the Feature suspends it.",
			Fix: "Nothing: the Feature continues by itself once spec.suspend of the policy is false."},
		{Reason: "BudgetExceeded", Class: protocol.FailureBudget, Meaning: "A budget leaves too little for the call. The watchdog holds the call and freezes the agent.",
			Fix: "Raise the budget that the condition WithinBudget names."},
		{Reason: protocol.RefusalReserved, Class: protocol.FailureBudget, Meaning: "Calls under way have reserved the rest of a budget. The watchdog holds the call.",
			Fix: "Nothing: the call continues when others have ended."},
		{Reason: "BackendUnreachable", Class: protocol.FailureProvider, Meaning: "The gateway cannot connect to the backend, or the backend gives no usable answer.", Fix: fixWait},
		{Reason: "BackendSilent", Class: protocol.FailureProvider, Meaning: "The backend says nothing for longer than the policy's timeoutProfile allows.", Fix: fixWait},
		{Reason: BackendAvoided, Class: protocol.FailureProvider, Meaning: "The backend failed several times in a row, and the gateway does not call it for a while.", Fix: fixWait},
		{Reason: "BackendEncodes", Class: protocol.FailureProvider, Meaning: "The backend answers in an encoding that the gateway did not request.", Fix: "Switch compression off in the server that the backend's baseURL names."},
		{Reason: AnswerCutOff, Class: protocol.FailureProvider, Meaning: "The backend's answer broke off.", Fix: fixWait},
		{Reason: AnswerFailed, Class: protocol.FailureProvider, Meaning: "The provider ended a stream with an error, for example because of an overload.", Fix: fixWait},
		{Reason: GatewayUnreachable, Class: protocol.FailureInfrastructure, Meaning: "The watchdog cannot reach the gateway.", Fix: fixGateway},
		{Reason: AnswerBroken, Class: protocol.FailureInfrastructure, Meaning: "The connection to the gateway broke in the middle of an answer.", Fix: fixGateway},
		{Reason: "Unavailable", Class: protocol.FailureInfrastructure, Meaning: "The gateway has no configuration yet, or cannot find out whose pod is calling.", Fix: fixGateway},
		{Reason: "Unauthenticated", Class: protocol.FailureInfrastructure, Meaning: "The gateway does not accept the pod's token.", Fix: fixGateway},
		{Reason: "LedgerUnavailable", Class: protocol.FailureInfrastructure, Meaning: "The gateway cannot write to the ledger.", Fix: "See the gateway's log and the volume or the database of the ledger."},
		{Reason: "BackendFull", Class: protocol.FailureInfrastructure, Meaning: "The Features together make as many calls as the backend takes at once.",
			Fix: "Wait: the next attempt tries again. If it lasts, raise concurrency of the backend in the ConfigMap tidewaiter-backends, or add a fallback to it."},
		{Reason: "GatewayFull", Class: protocol.FailureInfrastructure, Meaning: "The Features together make as many calls as the gateway takes at once.",
			Fix: "Run more replicas of the gateway."},
		{Reason: MemoryFull, Class: protocol.FailureInfrastructure, Meaning: "The calls of all Features use up the gateway's memory for calls.",
			Fix: "Wait: the next attempt tries again. If it lasts, raise the memory limit of the gateway's container."},
		{Reason: "TooManyCalls", Class: protocol.FailureAgent, Meaning: "The agent makes more calls at once than one Feature may.", Fix: fixAgent},
		{Reason: "CallRateExceeded", Class: protocol.FailureAgent, Meaning: "The agent makes more calls in a minute than its policy allows, and does not wait as long as the answer says.",
			Fix: "See the agent's log for what it repeats. If the work needs these calls, raise budget.callsPerMinute of a SupervisorPolicy."},
		{Reason: CallerStalls, Class: protocol.FailureAgent, Meaning: "The agent does not send its request, or does not read the answer.", Fix: fixAgent},
		{Reason: MemoryShare, Class: protocol.FailureAgent, Meaning: "The agent's requests and answers under way take more memory than one Feature may have.", Fix: fixAgent},
		{Reason: RequestTooLarge, Class: protocol.FailureAgent, Meaning: "The request is larger than any provider takes.", Fix: fixAgent},
		{Reason: InvalidRequest, Class: protocol.FailureAgent, Meaning: "The request is not valid in its dialect.", Fix: fixAgent},
		{Reason: "UnknownEndpoint", Class: protocol.FailureAgent, Meaning: "The path is not one of the dialect's.", Fix: fixAgent},
		{Reason: "CallerGone", Class: protocol.FailureAgent, Meaning: "The agent gave up the call.", Fix: fixAgent},
		{Reason: "AnswerRejected", Class: protocol.FailureAgent, Meaning: "The answer breaks the rules of Output templates.", Fix: "See the Output templates of the project; the message says which rule."},

		{First: 402, Last: 402, Class: protocol.FailureProvider, Meaning: "The account at the provider has no credit.", Fix: "Add credit to the account at the provider."},
		{First: 401, Last: 403, Class: protocol.FailurePolicy, Meaning: "The provider does not allow the key to do this.",
			Fix: "Use a key with the right to use the model, or another model in the policy."},
		{First: 404, Last: 404, Class: protocol.FailurePolicy, Meaning: "The provider does not know the model.",
			Fix: "Correct the name of the model in the ConfigMap tidewaiter-backends, or its baseURL."},
		{First: 408, Last: 408, Class: protocol.FailureProvider, Meaning: "The provider gave up the call.", Fix: fixWait},
		{First: 425, Last: 425, Class: protocol.FailureProvider, Meaning: "The provider asks to try again.", Fix: fixWait},
		{First: 429, Last: 429, Class: protocol.FailureProvider, Meaning: "The account has reached its limit at the provider.",
			Fix: "Wait, raise the limit at the provider, or set concurrency of the backend."},
		{First: firstError, Last: 499, Class: protocol.FailureAgent, Meaning: "The provider refuses the request as it is.", Fix: fixAgent},
		{First: 500, Last: 599, Class: protocol.FailureProvider, Meaning: "The provider fails.", Fix: fixWait},
	}
}

// Answer is what came of one call.
type Answer struct {
	// Status of the answer; below 400 for a good and complete one.
	Status int
	// Reason of an answer that the gateway or the watchdog gave; empty for the provider's own.
	Reason string
}

// Good reports whether the model has answered.
func (a Answer) Good() bool { return a.Reason == "" && a.Status < firstError }

// name of what happened, in one word.
func (a Answer) name() string {
	if a.Reason == "" {
		return StatusPrefix + strconv.Itoa(a.Status)
	}
	return a.Reason
}

// Of finds who caused a failed answer. A reason that is not in the table counts as the agent's, so that unexpected errors give no further attempts.
func Of(a Answer) Row {
	for _, r := range Rows() {
		if r.Reason != "" && r.Reason == a.Reason || a.Reason == "" && r.First <= a.Status && a.Status <= r.Last && r.Reason == "" {
			return r
		}
	}
	return Row{Reason: a.Reason, Class: protocol.FailureAgent, Meaning: "The call failed.", Fix: fixAgent}
}
