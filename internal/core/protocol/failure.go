// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Classes of failed model calls: who caused the failure.
const (
	FailureProvider       = "Provider"
	FailureInfrastructure = "Infrastructure"
	FailurePolicy         = "Policy"
	FailureBudget         = "Budget"
	FailureAgent          = "Agent"
)

// FailureClasses are all of them.
func FailureClasses() []string {
	return []string{FailureProvider, FailureInfrastructure, FailurePolicy, FailureBudget, FailureAgent}
}

// MaxCause bounds Failure.Cause, in bytes.
const MaxCause = 64

// Failure describes the agent's latest model calls, all of which failed.
type Failure struct {
	// Class says who caused it.
	Class string `json:"class"`
	// Cause is the gateway's or the watchdog's reason, or the provider's status, in one word.
	Cause string `json:"cause"`
	// Status is the HTTP status of the answer; 0 if there was none.
	Status int `json:"status,omitempty"`
	// Calls is the number of calls that failed since the last good answer.
	Calls int `json:"calls"`
}
