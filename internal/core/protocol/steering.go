// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

const (
	// SteeringPath of the gateway takes one step of the steering of an agent: the watchdog of the Feature's pod posts a SteeringStep, in gzip,
	// with the pod's token. What the ledger has already stays as it is.
	SteeringPath = "/v1/steering"
	// SteeringListPath of the gateway's LedgerPort lists them. Its parameters: feature (a UID), and after and limit for a list, or step (a
	// Sequence) for one with what surgery took out and put in.
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

// Channels by which an agent is told something. Empty says that it was not told.
const (
	// ChannelRequest is its next request to a model, ChannelTools the result of its next call of a tool of the watchdog, and ChannelInput a line
	// on its standard input.
	ChannelRequest = "Request"
	ChannelTools   = "Tools"
	ChannelInput   = "Input"
)

// SteeringStep is one thing that was done about an anomaly, or its end. An agent chose some of what it says: tools, what they answered, and
// what was taken out of its conversation.
type SteeringStep struct {
	// Sequence counts the steps of the Feature, from 1.
	Sequence int64 `json:"sequence"`
	// Time at which it was decided.
	Time    time.Time `json:"time"`
	Attempt int64     `json:"attempt"`
	Task    string    `json:"task,omitempty"`
	// Thread of the conversation, and Turn of the run, as Conversation counts them; 0 where there was no request.
	Thread int   `json:"thread"`
	Turn   int64 `json:"turn"`
	// Request is the SHA-256 of the request in which it was decided, as it was sent on: the RequestDigest of a Turn. Empty where there was none.
	Request string `json:"request,omitempty"`
	// Call is the Sequence of that Turn. The ledger says so, where it has the call.
	Call int64 `json:"call,omitempty"`
	// Anomaly is the condition that it sets, Detector has found it, and Evidence says what was seen.
	Anomaly  string `json:"anomaly"`
	Detector string `json:"detector"`
	Evidence string `json:"evidence"`
	// Rung of the ladder; the highest that was tried where it is Over: the anomaly has ended.
	Rung string `json:"rung"`
	Over bool   `json:"over,omitempty"`
	// Message is what the agent is told, and Channel how.
	Message string `json:"message,omitempty"`
	Channel string `json:"channel,omitempty"`
	// Before is what surgery took out of the conversation, and After what it put in its place; only where one step is asked for.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Missing says what Before and After lack, and why; empty where they are whole.
	Missing string `json:"missing,omitempty"`
}

// SteeringSteps are those of a Feature, in order.
type SteeringSteps struct {
	Steps []SteeringStep `json:"steps"`
}
