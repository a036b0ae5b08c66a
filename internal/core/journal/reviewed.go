// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// maxFound bounds the directives of reviewers that are not over. Escalated ones count, and the oldest is forgotten first. With those of users, of whom
// none may be forgotten, they have room in the book (protocol.MaxDirectives).
const maxFound = 32

// Reviewed is what a reviewer said between two tasks, or why it has not looked.
type Reviewed struct {
	// Reviewer is its name, and Task that of the task after which it looked.
	Reviewer string `json:"reviewer"`
	Task     string `json:"task"`
	// Over is how many tasks were over.
	Over int `json:"over"`
	// Tree that it saw.
	Tree string `json:"tree"`
	// Outcome is one of the protocol's, and Summary its words or, if it was skipped, the reason.
	Outcome string `json:"outcome"`
	Summary string `json:"summary,omitempty"`
	// Directives that it gave.
	Directives []protocol.Directive `json:"directives,omitempty"`
	// Discarded are the reasons why other findings do not count, one for each.
	Discarded []string `json:"discarded,omitempty"`
}

// reviewed takes a review. Its directives join those that are not over.
func (s *State) reviewed(r Record) error {
	v := r.Reviewed
	if _, known := review.Find(v.Reviewer); !known || v.Outcome == "" {
		return fmt.Errorf("a review of %q with outcome %q", v.Reviewer, v.Outcome)
	}
	if v.Outcome == protocol.ReviewSkipped {
		s.Reviews = s.Reviews.Skipped(v.Reviewer, v.Over)
	} else {
		s.Reviews = s.Reviews.Looked(v.Reviewer, v.Over, v.Tree, len(v.Directives) > 0)
	}
	s.Found = slices.Concat(s.Found, v.Directives)
	s.Found = s.Found[max(len(s.Found)-maxFound, 0):]
	s.Reviewed = append(slices.Clone(s.Reviewed), protocol.ReviewStatus{
		Reviewer: v.Reviewer, Task: v.Task, Outcome: v.Outcome, Directives: len(v.Directives), Summary: plain.Line(v.Summary, protocol.MaxReviewSummary), Time: r.Time,
	})
	s.Reviewed = s.Reviewed[max(len(s.Reviewed)-protocol.MaxReviews, 0):]
	return nil
}

// directed takes new states of directives. A directive of a reviewer that is over is not given any more.
func (s *State) directed(d Directed) {
	s.Directives = s.Directives.With(d.Entries)
	for _, e := range d.Entries {
		if !review.Is(e.Source) {
			continue
		}
		if e.State == protocol.DirectiveAddressed && e.Given { // the same entry comes once more when the directive is not given any more
			s.Reviews = s.Reviews.Heeded(e.Source)
		}
		if e.State == protocol.DirectiveAddressed || e.State == protocol.DirectiveDropped {
			s.Found = slices.DeleteFunc(slices.Clone(s.Found), func(f protocol.Directive) bool { return f.ID == e.ID })
		}
	}
}

// happens makes reviews more urgent, under the policy of the newest orders.
func (s *State) happens(e review.Event) {
	if s.Orders != nil {
		s.Reviews = s.Reviews.Happened(e, s.Orders.Policy)
	}
}

// LastOver is the name of the task that was done or aborted last; empty if there is none.
func (s State) LastOver() string {
	name, last := "", int64(0)
	for known, t := range s.Tasks {
		if t.Over() && (t.Work.Checkpoint > last || t.Work.Checkpoint == last && known < name) {
			name, last = known, t.Work.Checkpoint
		}
	}
	return name
}

// Breakpoint is where reviewers can look, while no task is at work. After the work is done, the agent polishes it, and they look no more before a user
// has added a task and it is over.
func (s State) Breakpoint() (b review.Breakpoint, is bool) {
	last := s.LastOver()
	if s.Orders == nil || last == "" || s.Working() != "" {
		return b, false
	}
	for _, t := range s.Added {
		if t.Polishes() && (!s.Tasks[t.Name].Over() || protocol.Added(last)) {
			return b, false
		}
	}
	of, _, _ := strings.Cut(last, "/")
	b = review.Breakpoint{Over: s.TasksDone(), Milestone: !protocol.Added(last)}
	for _, t := range s.Orders.Tasks {
		if name, _, _ := strings.Cut(t.Name, "/"); name == of && !s.Tasks[t.Name].Over() {
			b.Milestone = false
		}
	}
	return b, true
}
