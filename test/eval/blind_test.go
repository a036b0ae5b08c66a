// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"slices"
	"testing"
)

// blind are runs of scenarios that were written blind, after those that are held back had been looked into.
func blind() []Run { return each(slices.Concat(blindHealthy(), blindSick())) }

// TestBlind plays the scenarios that were written blind under each configuration.
func TestBlind(t *testing.T) {
	set{name: "scenarios written blind", runs: blind(), marks: blinds, record: "testdata/blind.txt"}.compare(t)
}
