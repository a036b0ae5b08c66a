// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

const (
	// FailsHeader is in an answer of the gateway, or behind it as a trailer, when the task cannot be done because of what the model
	// has answered. It says why, escaped as in the query of a URL.
	FailsHeader = "Tidewaiter-Fails"
	// MaxFails bounds what it says, in bytes: the header of an answer has to have room for it.
	MaxFails = 2 << 10
)
