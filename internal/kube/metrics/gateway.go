// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var (
	backendLabel = Label{"backend", "its name in backends.yaml; empty for a refused call"}
	modelLabel   = Label{"model", "its name in backends.yaml"}
	roleLabel    = Label{"role", strings.Join([]string{policy.RolePrimary, policy.RoleSummarizer, policy.RoleSupervisor}, ", ") + " (what Tidewaiter itself asks: plans and reviews)"}
	listLabel    = Label{"list", "egress.git, egress.agent"}
	placeLabel   = Label{"place", "Task (after a task), Delivery (before the delivery)"}
	ways         = "sent, received"
	handedResult = "Recorded, PartlyRecorded (without room for all), Known (handed in again), Refused"
)

// Metrics of the gateway.
var (
	Connections = Definition{
		Name: "tidewaiter_egress_connections_total", Kind: Counter, Help: "Requested connections, by the list of the policy that decides.",
		Labels: []Label{listLabel, {"reason", "Connected, or why not, as docs/tasks/allow-hosts.md lists it"}},
	}
	ConnectionBytes = Definition{
		Name: "tidewaiter_egress_bytes_total", Kind: Counter, Help: "Bytes that went through tunnels.", Labels: []Label{listLabel, {"direction", ways}},
	}
	ConnectionSeconds = Definition{
		Name: "tidewaiter_egress_connection_seconds", Kind: Histogram, Help: "How long tunnels were open, in seconds.", Buckets: prometheus.ExponentialBuckets(0.05, 4, 8),
	}
	ModelCalls = Definition{
		Name: "tidewaiter_model_calls_total", Kind: Counter, Help: "Model calls.",
		Labels: []Label{backendLabel, {"reason", "how the call ended, as in the ledger"}, {"status", "HTTP status of the answer"}},
	}
	ModelBytes = Definition{
		Name: "tidewaiter_model_bytes_total", Kind: Counter, Help: "Bytes of model calls, to and from backends.", Labels: []Label{backendLabel, {"direction", ways}},
	}
	ModelTokens = Definition{
		Name: "tidewaiter_model_tokens_total", Kind: Counter, Help: "Tokens of model calls. If the backend has not counted them, the gateway estimates them.",
		Labels: []Label{backendLabel, modelLabel, {"kind", "input, cached (input from the provider's cache), cacheWrite (input that the provider put there), cacheWriteHour (for an hour), output"}},
	}
	ModelCost = Definition{
		Name: "tidewaiter_model_cost_total", Kind: Counter, Help: "Cost of model calls, in the currency of the configured prices.", Labels: []Label{backendLabel, modelLabel},
	}
	RoleTokens = Definition{
		Name: "tidewaiter_role_tokens_total", Kind: Counter, Help: "Tokens of model calls by project and role, input and output together.", Labels: []Label{namespaceLabel, roleLabel},
	}
	RoleCost = Definition{
		Name: "tidewaiter_role_cost_total", Kind: Counter, Help: "Cost of model calls by project and role, in the currency of the configured prices.", Labels: []Label{namespaceLabel, roleLabel},
	}
	ModelEstimated = Definition{
		Name: "tidewaiter_model_calls_estimated_total", Kind: Counter, Help: "Model calls whose tokens the backend has not counted in full, so that the gateway charged an estimate.",
		Labels: []Label{backendLabel, modelLabel},
	}
	ModelUnpriced = Definition{
		Name: "tidewaiter_model_price_missing", Kind: Gauge, Help: "1 for each model of the configuration in use that has no prices, so that its calls count as free.",
		Labels: []Label{backendLabel, modelLabel},
	}
	AnswersChecked = Definition{
		Name: "tidewaiter_answers_checked_total", Kind: Counter, Help: "Answers that Output templates apply to.",
		Labels: []Label{backendLabel, modelLabel, {"outcome", "Accepted, Changed (corrected or formatted), Retried (the gateway asked again), Rejected, Reported (breaks a rule under an auditing policy, and passes as it came)"}},
	}
	ChangesRecorded = Definition{
		Name: "tidewaiter_checkpoint_changes_total", Kind: Counter, Help: "Diffs and file events that watchdogs handed in for the ledger.", Labels: []Label{{"result", handedResult}},
	}
	SteeringRecorded = Definition{
		Name: "tidewaiter_steering_records_total", Kind: Counter, Help: "Records about agents in trouble, and what watchdogs did, that watchdogs handed in for the ledger.",
		Labels: []Label{{"result", handedResult}},
	}
	SteeringSteps = Definition{
		Name: "tidewaiter_steering_steps_total", Kind: Counter, Help: "Steps that watchdogs took about agents in trouble. The gateway counts a step once, when it records it.",
		Labels: []Label{
			{"anomaly", strings.Join(v1alpha1.AnomalyConditions(), ", ") + ", Other"},
			{"rung", "a step of anomalies.ladder, or Over for the end of an anomaly"},
		},
	}
	HistoryRecorded = Definition{
		Name: "tidewaiter_history_records_total", Kind: Counter, Help: "Entries of histories of Features that watchdogs handed in for the ledger.",
		Labels: []Label{{"result", handedResult}},
	}
	GatesRun = Definition{
		Name: "tidewaiter_gates_total", Kind: Counter, Help: "Gates that ran. The gateway counts a run once, when it records it.",
		Labels: []Label{namespaceLabel, placeLabel, {"state", strings.Join(protocol.GateStates(), ", ") + " (exit code 126 or 127), Other"}},
	}
	GateSeconds = Definition{
		Name: "tidewaiter_gate_seconds", Kind: Histogram, Help: "How long gates ran, in seconds.",
		Buckets: []float64{0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}, Labels: []Label{placeLabel},
	}
	Corrections = Definition{
		Name: "tidewaiter_task_corrections_total", Kind: Counter, Help: "Number of times that an agent was started again to correct its work, or got a task for that.",
		Labels: []Label{namespaceLabel, {"cause", strings.Join(protocol.HistoryCauses(), ", ") + ", Other"}},
	}
	PlansMade = Definition{
		Name: "tidewaiter_plans_total", Kind: Counter, Help: "Attempts to let a model divide the work of a Feature.",
		Labels: []Label{namespaceLabel, {"outcome", "Proposed, Approved (by a user), Unavailable (the model did not answer, or its plan could not be used)"}},
	}
	Reviews = Definition{
		Name: "tidewaiter_reviews_total", Kind: Counter, Help: "Reviews of the work between two tasks. The gateway counts a review once, when it records it.",
		Labels: []Label{namespaceLabel, reviewerLabel, {"outcome", strings.Join(protocol.ReviewOutcomes(), ", ") + " (no answer that can be used), Other"}},
	}
	ReviewFindings = Definition{
		Name: "tidewaiter_review_findings_total", Kind: Counter, Help: "Findings of reviewers, by what came of them. The gateway counts them once, when it records the review.",
		Labels: []Label{namespaceLabel, reviewerLabel, {"result", "Kept (it is a directive), or the reason why it does not count: " + strings.Join(protocol.FindingReasons(), ", ") + ", Other"}},
	}
	LedgerDropped = Definition{
		Name: "tidewaiter_ledger_dropped_total", Kind: Counter, Help: "What the ledger dropped because it was nearly full, from the Features that had the most in it.",
		Labels: []Label{namespaceLabel, {"what", "answers of calls, or calls with all but what they count in budgets"}},
	}
	FirstByteSeconds = Definition{
		Name: "tidewaiter_model_first_byte_seconds", Kind: Histogram, Help: "Time until an answer of a backend began, retries included, in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2, 12), Labels: []Label{backendLabel},
	}
	BackendReady = Definition{
		Name: "tidewaiter_backend_ready", Kind: Gauge, Help: "1 for each backend of the configuration in use, 0 if its key is missing.", Labels: []Label{backendLabel},
	}
	BackendAvoided = Definition{
		Name: "tidewaiter_backend_avoided", Kind: Gauge,
		Help:   "1 while the circuit breaker of a backend is open because the backend failed several times in a row, 0 when it is closed again.",
		Labels: []Label{backendLabel},
	}
	BackendsBroken = Definition{
		Name: "tidewaiter_backends_broken", Kind: Gauge, Help: "1 while the configuration of backends is invalid and the last valid one is in use, otherwise 0.",
	}
)

// Gateway lists every metric of the gateway that is Tidewaiter's own.
func Gateway() []Definition {
	return []Definition{
		Connections, ConnectionBytes, ConnectionSeconds, ModelCalls, ModelBytes, ModelTokens, ModelCost, RoleTokens, RoleCost, ModelEstimated, AnswersChecked, ChangesRecorded, SteeringRecorded, SteeringSteps, HistoryRecorded, GatesRun, GateSeconds, Corrections, PlansMade, Reviews, ReviewFindings, LedgerDropped,
		FirstByteSeconds, BackendReady, BackendAvoided, BackendsBroken, ModelUnpriced,
	}
}
