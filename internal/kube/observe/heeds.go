// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// Heeds are how many of their last directives agents have addressed, for the reviewers that run under a policy, by the statuses of all Features of a project. The directives of the Feature that
// started last are the newest ones. Those that the agent of a Feature that is over received and left open count as Dropped. It is never nil.
func Heeds(project []v1alpha1.Feature, effective policy.Effective) []review.Heed {
	var reviewed []*v1alpha1.Feature
	for i := range project {
		if f := &project[i]; f.Status.StartTime != nil && f.Status.Run != nil && len(f.Status.Run.Directives) > 0 {
			reviewed = append(reviewed, f)
		}
	}
	slices.SortFunc(reviewed, func(a, b *v1alpha1.Feature) int {
		return cmp.Or(b.Status.StartTime.Time.Compare(a.Status.StartTime.Time), cmp.Compare(a.Name, b.Name))
	})
	list := review.Measure(review.All(effective), func(yield func(protocol.DirectiveStatus) bool) {
		for _, f := range reviewed {
			for _, d := range slices.Backward(f.Status.Run.Directives) {
				state := d.State
				if state == protocol.DirectiveActive && f.Status.CompletionTime != nil { // no agent addresses it any more
					state = protocol.DirectiveDropped
				}
				if !yield(protocol.DirectiveStatus{Source: d.Source, State: state, Unread: d.Unread}) {
					return
				}
			}
		}
	})
	return append([]review.Heed{}, list...)
}
