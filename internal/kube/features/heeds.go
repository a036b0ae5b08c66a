// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// heeds and apiHeeds are how many directives of reviewers agents have addressed, in the words of the core and of the API.
func heeds(list []v1alpha1.ReviewerHeed) (all []review.Heed) {
	for _, r := range list {
		all = append(all, review.Heed{Reviewer: r.Reviewer, Addressed: int(r.Addressed), Of: int(r.Directives)})
	}
	return all
}

func apiHeeds(all []review.Heed) (list []v1alpha1.ReviewerHeed) {
	for _, h := range all {
		list = append(list, v1alpha1.ReviewerHeed{
			Reviewer: h.Reviewer, Addressed: int32(h.Addressed), Directives: int32(h.Of), //nolint:gosec // at most 20
		})
	}
	return list
}
