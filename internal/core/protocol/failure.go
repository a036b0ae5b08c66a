// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Classes of failed calls of models: who is to blame.
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

// Failure says what the calls of models came to that an agent made last: all of them failed.
type Failure struct {
	// Class says who is to blame.
	Class string `json:"class"`
	// Cause is the reason of the gateway, of the watchdog, or the provider's status, in one word.
	Cause string `json:"cause"`
	// Status of the answer; 0 where there was none.
	Status int `json:"status,omitempty"`
	// Calls that failed since the last good answer.
	Calls int `json:"calls"`
}
