// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// ReasonHeader carries, in one word, the reason of an answer that the gateway gives itself.
const ReasonHeader = "Tidewaiter-Reason"
