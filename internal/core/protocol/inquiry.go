// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// Inquiries are questions of users about a Feature's record. They reach a watchdog independently of its orders, and are neither journaled
// nor repeated: the caller waits for the answer, or asks again.
const (
	// InquiryHeader of an answer to a poll for orders carries an Inquiry as JSON, whatever the status of the answer is.
	InquiryHeader = "Tidewaiter-Inquiry"
	// AskedQuery is the query parameter of a poll that names the last Inquiry that the watchdog received: intake does not send it again.
	AskedQuery = "asked"
	// AnswersPath, followed by the id of an Inquiry, takes POST of the answer as a stream: an AnswerHead as a line of JSON,
	// and then the content. Only the replica that waits for the answer accepts it. Any other answers 421 before it reads the body, and the
	// watchdog sends the request again on a new connection.
	AnswersPath = "/v1/answers/"
	// AnswerErrorTrailer says why an answer ends before it is complete.
	AnswerErrorTrailer = "Tidewaiter-Answer-Error"
	// EnvInquiry holds the Inquiry, as JSON, in a pod that answers it and ends.
	EnvInquiry = "TIDEWAITER_INQUIRY"
	// MaxInquiryHeader bounds an Inquiry in bytes of JSON.
	MaxInquiryHeader = 1 << 10
)

const (
	// MaxAnswerBytes bounds an answer. The answer says if it is cut.
	MaxAnswerBytes = 32 << 20
	// MaxAnswerMessage bounds the message of an answer without content.
	MaxAnswerMessage = 4 << 10
	// InquiryTime bounds an inquiry from the request to the end of the answer. kube-apiserver ends proxied requests after 60 seconds
	// (--request-timeout), and intake must say why before that.
	InquiryTime = 50 * time.Second
)

// AnswerHead begins an answer. Code is the HTTP status of the answer to the caller. If it is not 200, Message says why and nothing follows.
type AnswerHead struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// Kinds of inquiries.
const (
	// InquiryDiff asks what a checkpoint changed.
	InquiryDiff = "diff"
	// InquiryLog asks for the journal, or for the file events of every checkpoint.
	InquiryLog = "log"
	// InquiryGates asks for the results of gates, or with a task and a gate for the newest one with its output.
	InquiryGates = "gates"
	// InquiryVerify asks whether the record is whole.
	InquiryVerify = "verify"
)

// Inquiry is one question about the record of a Feature.
type Inquiry struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// To is the checkpoint whose diff is wanted; 0 is the newest. From is the checkpoint to compare with; 0 is the one before To.
	To   int64 `json:"to,omitempty"`
	From int64 `json:"from,omitempty"`
	// Base compares To with the base instead of From.
	Base bool `json:"base,omitempty"`
	// Patch asks for what `git apply` takes instead of what a terminal can show.
	Patch bool `json:"patch,omitempty"`
	// Files asks for the file events instead of the journal.
	Files bool `json:"files,omitempty"`
	// Task and Gate are the names of those whose results are wanted; empty for all.
	Task string `json:"task,omitempty"`
	Gate string `json:"gate,omitempty"`
	// Commit that the chain must hold, as a Checkpoint object names it.
	Commit string `json:"commit,omitempty"`
	// JSON asks for a verification as JSON.
	JSON bool `json:"json,omitempty"`
}
