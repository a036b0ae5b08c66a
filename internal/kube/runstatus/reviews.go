// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// validateReviews names the first field that no watchdog of ours would send.
func validateReviews(list []protocol.ReviewStatus) error {
	if len(list) > protocol.MaxReviews {
		return fmt.Errorf("status.reviews has %d entries, more than %d", len(list), protocol.MaxReviews)
	}
	for i, r := range list {
		field := fmt.Sprintf("status.reviews[%d]", i)
		switch {
		case !review.Is(r.Reviewer):
			return fmt.Errorf("%s.reviewer %q is not a reviewer", field, Clean(r.Reviewer, maxName))
		case r.Directives < 0 || r.Directives > review.MaxFindings:
			return fmt.Errorf("%s.directives is not a number from 0 to %d", field, review.MaxFindings)
		case r.Time.IsZero() || r.Time.Year() > 9999:
			return fmt.Errorf("%s.time is missing or no time", field)
		}
		if err := oneOf(field+".outcome", r.Outcome, protocol.ReviewOutcomes()...); err != nil {
			return err
		}
	}
	return nil
}

// applyReviews replaces the newest reviews. A watchdog of an earlier version has none, and one that has only begun to prepare does not know them:
// what was said before stays.
func applyReviews(run *v1alpha1.RunStatus, list []protocol.ReviewStatus) {
	if len(list) == 0 {
		return
	}
	run.Reviews = nil
	for _, r := range list {
		run.Reviews = append(run.Reviews, v1alpha1.ReviewStatus{
			Reviewer: r.Reviewer, Task: Clean(r.Task, maxName), Outcome: r.Outcome, Directives: int32(r.Directives), //nolint:gosec // validated
			Summary: Clean(r.Summary, maxMessage), ReviewTime: apiTime(r.Time),
		})
	}
}

// boundReviews cuts what applyReviews sets to what the API takes.
func boundReviews(run *v1alpha1.RunStatus) {
	run.Reviews = run.Reviews[max(0, len(run.Reviews)-protocol.MaxReviews):]
	for i := range run.Reviews {
		r := &run.Reviews[i]
		r.Task, r.Summary = plain.CutRunes(r.Task, maxName), plain.CutRunes(r.Summary, maxMessage)
	}
}

// NewReviews are the reviews of a run that it did not have before.
func NewReviews(before, after v1alpha1.RunStatus) []v1alpha1.ReviewStatus {
	return slices.DeleteFunc(slices.Clone(after.Reviews), func(r v1alpha1.ReviewStatus) bool {
		return slices.ContainsFunc(before.Reviews, func(b v1alpha1.ReviewStatus) bool {
			return b.Reviewer == r.Reviewer && b.Task == r.Task && b.ReviewTime.Equal(r.ReviewTime)
		})
	})
}

// ReviewMessage says in words what a reviewer said, for an Event.
func ReviewMessage(r v1alpha1.ReviewStatus) string {
	title, said := review.Title(r.Reviewer), r.Summary
	switch {
	case r.Outcome == protocol.ReviewSkipped:
		said = fmt.Sprintf("%s review was skipped: %s", title, said)
	case !strings.HasPrefix(said, title+" review: "):
		said = fmt.Sprintf("%s review: %s", title, said)
	}
	if r.Task == "" {
		return said
	}
	return fmt.Sprintf("After task %s: %s", r.Task, said)
}

// NewEscalated are the directives of reviewers that were not Escalated before, or for another reason.
func NewEscalated(before, after v1alpha1.RunStatus) []v1alpha1.DirectiveStatus {
	return slices.DeleteFunc(slices.Clone(after.Directives), func(d v1alpha1.DirectiveStatus) bool {
		return d.State != protocol.DirectiveEscalated || !review.Is(d.Source) || slices.ContainsFunc(before.Directives, func(b v1alpha1.DirectiveStatus) bool {
			return b.ID == d.ID && b.State == d.State && b.Message == d.Message
		})
	})
}

// EscalatedMessage says in words which directive a user has to decide about, for an Event.
func EscalatedMessage(d v1alpha1.DirectiveStatus) string {
	title := review.Title(d.Source)
	text := plain.CutRunes(strings.TrimRight(d.Description, ". "), maxTold)
	if text == "" {
		return fmt.Sprintf("%s directive %s is Escalated: %s", title, d.ID, d.Message)
	}
	return fmt.Sprintf("%s directive %s (%s) is Escalated: %s", title, d.ID, text, d.Message)
}

// maxTold bounds the description of a directive in an Event, in characters. An Event has 1,024, and the reason needs the others.
const maxTold = 250
