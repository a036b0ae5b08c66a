// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// customReviewer is the value of the label reviewer for every reviewer that a policy defines: teams choose their names, and there can be any number of them.
const customReviewer = "custom"

// Reviewer is the value of the label reviewer for the source of a directive or a review. The result is false for other sources.
func Reviewer(source string) (label string, is bool) {
	if slices.Contains(protocol.Reviewers(), source) {
		return source, true
	}
	_, is = protocol.CustomName(source)
	return customReviewer, is
}
