// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import "github.com/tidewaiter/tidewaiter/internal/host/objects"

// RefUpdate moves one ref by compare-and-swap.
type RefUpdate struct {
	// Name in full, such as refs/tidewaiter/chain.
	Name string
	// Old is the value the ref must have; zero: it must not exist.
	Old objects.ID
	// New value; zero deletes the ref.
	New objects.ID
}
