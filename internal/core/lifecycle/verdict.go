// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

// verdicts of checkpoints, in the API's own names.
const (
	verdictValid   = "Valid"
	verdictInvalid = "Invalid"
)
