// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

const (
	// FailsHeader is a header or a trailer of the gateway's answer if the model's answer makes the task fail. It says why, escaped as in the
	// query of a URL.
	FailsHeader = "Tidewaiter-Fails"
	// MaxFails bounds what it says, in bytes: the header of an answer has to have room for it.
	MaxFails = 2 << 10
)
