// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import "time"

// Steering tells an agent that calls no model what is wrong with its work, and one thing to do.
type Steering struct {
	Type string `json:"type"`
	// Step is its number: a line with a number that came before is the same message.
	Step      int64     `json:"step"`
	Anomaly   string    `json:"anomaly"`
	Timestamp time.Time `json:"timestamp"`
	Message   string    `json:"message"`
}

// Steered reports a step of steering.
func Steered(step int64, anomaly, message string, at time.Time) Steering {
	return Steering{Type: "steering", Step: step, Anomaly: anomaly, Timestamp: at.UTC(), Message: message}
}
