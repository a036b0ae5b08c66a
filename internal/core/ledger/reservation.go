// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// Reservation is what a call may use that is about to be made.
type Reservation struct {
	// ID of the call.
	ID string
	// FeatureUID and Namespace are who calls.
	FeatureUID, Namespace string
	// Tokens and Cost that it may use, as far as is known.
	Tokens, Cost int64
	// Until is when the call has ended, whatever became of it: from then on nothing is reserved for it.
	Until time.Time
}
