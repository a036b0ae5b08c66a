// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Bounds of reviews in a report.
const (
	// MaxReviews is the number of reviews.
	MaxReviews = 16
	// MaxReviewSummary bounds a summary, in bytes.
	MaxReviewSummary = 1024
)

// Outcomes of a review, in the API's own words.
const (
	// ReviewAligned: the reviewer objects to nothing.
	ReviewAligned = "Aligned"
	// ReviewMinorDrift: it has given directives, or still finds what some of them were about.
	ReviewMinorDrift = "MinorDrift"
	// ReviewMajorDivergence: the assessor finds that the tasks that are still to come do not lead to what the request asks.
	ReviewMajorDivergence = "MajorDivergence"
	// ReviewSkipped: its model has not answered, or not in a form that can be used. The work continues without the review.
	ReviewSkipped = "Skipped"
)

// Reviewers are the names of Tidewaiter's own reviewers.
func Reviewers() []string {
	return []string{SourceCodeStyle, SourceDesign, SourceKnowledge, SourceAssessor}
}

// customReviewer begins the names of reviewers that policies define. No other source has a slash.
const customReviewer = "custom/"

// CustomReviewer is the source of the directives of a reviewer that a policy defines, such as custom/licenses.
func CustomReviewer(name string) string { return customReviewer + name }

// CustomName is the name in its policy of a reviewer that a policy defines or has defined. The result is false for other sources.
func CustomName(source string) (name string, is bool) {
	name, is = strings.CutPrefix(source, customReviewer)
	return name, is && policy.IsReviewerName(name)
}

// ReviewOutcomes are all outcomes of a review.
func ReviewOutcomes() []string {
	return []string{ReviewAligned, ReviewMinorDrift, ReviewMajorDivergence, ReviewSkipped}
}

// FindingReasons are the reasons why a finding of a reviewer does not count: core/review says what each means.
func FindingReasons() []string {
	return []string{"NotInTree", "QuoteNotThere", "DesignOutdated", "Unusable", "Known", "Repeated", "TooMany", "NotShown"}
}

// ReviewStatus is what a reviewer said after a task.
type ReviewStatus struct {
	// Reviewer is its name, and Task that of the task after which it looked.
	Reviewer string `json:"reviewer"`
	Task     string `json:"task,omitempty" redact:"key"`
	// Outcome is one of the outcomes of a review.
	Outcome string `json:"outcome"`
	// Directives is how many it gave.
	Directives int `json:"directives,omitempty"`
	// Summary for users or, of a skipped review, the reason.
	Summary string `json:"summary,omitempty"`
	// Time of the review.
	Time time.Time `json:"time"`
}
