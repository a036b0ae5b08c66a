// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// ReasonHeader has, in one word, the reason of an answer that the gateway itself gives, not a provider.
const ReasonHeader = "Tidewaiter-Reason"
