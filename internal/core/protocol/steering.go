// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

const (
	// SteeringPath of the gateway takes one step of the steering of an agent: the watchdog of the Feature's pod posts a SteeringStep, in gzip,
	// with the pod's token. Steps that the ledger already has stay unchanged.
	SteeringPath = "/v1/steering"
	// SteeringListPath is the path of the gateway's LedgerPort that lists them. Its parameters: feature (a UID), and after and limit for a
	// list. With step (a Sequence) it returns one step with the texts of surgery.
	SteeringListPath = "/v1/steering-list"
	// MaxSteps of one answer.
	MaxSteps = 500
)

// Bounds of a SteeringStep, in bytes.
const (
	MaxSteeringEvidence = 1 << 10
	MaxSteeringMessage  = 4 << 10
	MaxSteeringBefore   = 256 << 10
	MaxSteeringAfter    = 16 << 10
	// MaxSteering bounds its JSON, in which characters may be written as several.
	MaxSteering = 2 << 20
)

// Channels by which a message reaches an agent. Empty says that it did not reach it.
const (
	// ChannelRequest is the agent's next request to a model, ChannelTools the result of its next call to a watchdog's tool, and ChannelInput a line
	// on its standard input.
	ChannelRequest = "Request"
	ChannelTools   = "Tools"
	ChannelInput   = "Input"
)

// SteeringStep is one action against an anomaly, or the anomaly's end. Some of its texts come from the agent: tools, their results, and
// what surgery removed from its conversation.
type SteeringStep struct {
	// Sequence is the number of the step within the Feature, from 1.
	Sequence int64 `json:"sequence"`
	// Time of the decision.
	Time    time.Time `json:"time"`
	Attempt int64     `json:"attempt"`
	Task    string    `json:"task,omitempty"`
	// Thread of the conversation, and Turn of the run, as Conversation counts them; 0 if there was no request.
	Thread int   `json:"thread"`
	Turn   int64 `json:"turn"`
	// Request is the SHA-256 of the request at which steering decided, as sent to the gateway: the RequestDigest of a Turn. Empty if there was none.
	Request string `json:"request,omitempty"`
	// Call is the Sequence of that Turn. The ledger fills it in if it has the call.
	Call int64 `json:"call,omitempty"`
	// Anomaly is the type of the condition, Detector the detector that found it, and Evidence what the detector saw.
	Anomaly  string `json:"anomaly"`
	Detector string `json:"detector"`
	Evidence string `json:"evidence"`
	// Rung of the ladder. With Over, the anomaly has ended, and Rung is the highest that steering tried.
	Rung string `json:"rung"`
	Over bool   `json:"over,omitempty"`
	// Message is the text for the agent, and Channel how it reaches the agent.
	Message string `json:"message,omitempty"`
	Channel string `json:"channel,omitempty"`
	// Before is what surgery removed from the conversation, and After its replacement; only if the caller asks for one step.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Missing says what Before and After lack, and why; empty if they are complete.
	Missing string `json:"missing,omitempty"`
}

// SteeringSteps are the steering steps of one Feature, sorted by Sequence.
type SteeringSteps struct {
	Steps []SteeringStep `json:"steps"`
}
