// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
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
	// Passed: the watchdog has not asked its model, because nothing that the reviewer sees had changed. Then Outcome is empty.
	Passed  bool   `json:"passed,omitempty"`
	Summary string `json:"summary,omitempty"`
	// Directives that it gave.
	Directives []protocol.Directive `json:"directives,omitempty"`
	// Discarded are the findings that do not count.
	Discarded []review.Discarded `json:"discarded,omitempty"`
	// Asked is the question that a model got for the reviewer; nil if no model got one, and in records of earlier versions.
	Asked *review.Asked `json:"asked,omitempty"`
	// Checked are the answered directives of the reviewer that it was shown, and StillThere the ones that it still finds, by their ids.
	Checked    []string `json:"checked,omitempty"`
	StillThere []string `json:"stillThere,omitempty"`
	// Diverged is the reason of a MajorDivergence; empty for other outcomes.
	Diverged string `json:"diverged,omitempty"`
	// Documents that it wrote, and Refused the causes why others that it proposed do not count, one for each.
	Documents []Written `json:"documents,omitempty"`
	Refused   []string  `json:"refused,omitempty"`
	// Established are documents that have proved themselves, with their new status.
	Established []Written `json:"established,omitempty"`
}

// Written is a document of the project's knowledge that a reviewer has written. It takes the place of an earlier one with the same path.
type Written struct {
	// Path in the repository, and the Text of the whole file.
	Path string `json:"path"`
	Text string `json:"text"`
	// Unconfirmed: agents get it once a user has merged it, and not before.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}

// confirm notes whether agents get a written document.
func (s *State) confirm(d Written) {
	i, is := slices.BinarySearch(s.Unconfirmed, d.Path)
	switch {
	case d.Unconfirmed && !is:
		s.Unconfirmed = slices.Insert(slices.Clone(s.Unconfirmed), i, d.Path)
	case !d.Unconfirmed && is:
		s.Unconfirmed = slices.Delete(slices.Clone(s.Unconfirmed), i, i+1)
	}
}

// Diverged is a MajorDivergence of the assessor that no other plan and no user has ended.
type Diverged struct {
	// Request for another plan, by its id.
	Request string
	// Reason of the verdict.
	Reason string
	// Last: the assessor has had as many plans made as it can, and a user decides.
	Last bool `json:",omitempty"`
}

// reviewed takes a review. Its directives join those that are not over.
func (s *State) reviewed(r Record) error {
	v := r.Reviewed
	assesses := review.Assesses(v.Reviewer)
	if !review.Is(v.Reviewer) || v.Outcome == "" != v.Passed || (v.Diverged != "") != (v.Outcome == protocol.ReviewMajorDivergence) || v.Diverged != "" && !assesses {
		return fmt.Errorf("a review of %q with outcome %q", v.Reviewer, v.Outcome)
	}
	if v.Passed {
		s.Reviews = s.Reviews.Passed(v.Reviewer, v.Over)
		return nil
	}
	s.unproved(objects(v.Directives))
	for _, d := range slices.Concat(v.Established, v.Documents) { // a document that has proved itself can be deprecated by the same review
		if _, _, err := knowledge.Locate(d.Path); err != nil || d.Text == "" { // the reader of documents may become stricter: it leaves them out then
			return fmt.Errorf("a review of %q with the document %q", v.Reviewer, d.Path)
		}
		s.Written = with(s.Written, d.Path, d.Text)
		s.confirm(d)
		s.unproved(func(path string) bool { return path == d.Path })
	}
	again := s.checked(*v)
	switch {
	case v.Outcome == protocol.ReviewSkipped:
		s.Reviews = s.Reviews.Skipped(v.Reviewer, v.Over)
	case assesses:
		s.assessed(*v)
	default:
		s.Reviews = s.Reviews.Looked(v.Reviewer, v.Over, v.Tree, len(v.Directives)+len(v.Documents) > 0 || again)
	}
	if v.Asked != nil && v.Outcome != protocol.ReviewSkipped {
		s.Reviews = s.Reviews.Summed(v.Reviewer, plain.Line(v.Summary, protocol.MaxReviewSummary), v.Task)
	}
	if len(v.Documents) > 0 { // what it looks for is there
		s.Reviews = s.Reviews.Heeded(v.Reviewer)
	}
	s.Found = slices.Concat(s.Found, v.Directives)
	s.Found = s.Found[max(len(s.Found)-maxFound, 0):]
	s.Reviewed = append(slices.Clone(s.Reviewed), protocol.ReviewStatus{
		Reviewer: v.Reviewer, Task: v.Task, Outcome: v.Outcome, Directives: len(v.Directives), Summary: plain.Line(v.Summary, protocol.MaxReviewSummary), Time: r.Time,
	})
	s.Reviewed = s.Reviewed[max(len(s.Reviewed)-protocol.MaxReviews, 0):]
	return nil
}

// assessed takes a verdict of the assessor.
func (s *State) assessed(v Reviewed) {
	var p policy.Effective
	if s.Orders != nil {
		p = s.Orders.Policy
	}
	s.Reviews = s.Reviews.Assessed(v.Reviewer, v.Over, v.Tree, v.Outcome, p)
	switch v.Outcome {
	case protocol.ReviewMinorDrift:
		s.happens(review.Drifted)
	case protocol.ReviewMajorDivergence:
		s.Divergences++
		s.Diverged = &Diverged{
			Request: fmt.Sprintf("%s%d", protocol.AssessorRequests, s.Divergences), Reason: v.Diverged,
			Last: s.Divergences-s.Decided > review.MaxReplans,
		}
	}
}

// checked ends the wait of the answered directives that a reviewer has checked. Those that it still finds are given once more, if they were not before; open
// says whether one is.
func (s *State) checked(v Reviewed) (open bool) {
	for _, id := range v.Checked {
		i := at(s.Answered, id)
		if i < 0 || s.Answered[i].Source != v.Reviewer {
			continue
		}
		d := s.Answered[i]
		s.Answered = without(s.Answered, id)
		if !slices.Contains(v.StillThere, id) {
			continue
		}
		d, e, is := s.Directives.Again(d, s.TasksDone())
		if !is {
			continue
		}
		s.Directives = s.Directives.With([]directives.Entry{e})
		s.Found = append(without(s.Found, id), d)
		open = open || e.State == protocol.DirectivePending
	}
	return open
}

// at is the place of a directive in a list; -1 if it is not there.
func at(list []protocol.Directive, id string) int {
	return slices.IndexFunc(list, func(d protocol.Directive) bool { return d.ID == id })
}

// without is a list without a directive; the old one stays as it is.
func without(list []protocol.Directive, id string) []protocol.Directive {
	return slices.DeleteFunc(slices.Clone(list), func(d protocol.Directive) bool { return d.ID == id })
}

// directed takes new states of directives. A directive of a reviewer that is over is not given any more.
func (s *State) directed(d Directed) {
	before := s.Directives
	s.Directives = s.Directives.With(d.Entries)
	for _, e := range d.Entries {
		if !review.Is(e.Source) {
			continue
		}
		s.answered(before.Find(e.ID), s.Directives.Find(e.ID))
		if e.State == protocol.DirectiveAddressed && e.Given { // the same entry comes once more when the directive is not given any more
			s.Reviews = s.Reviews.Heeded(e.Source)
		}
		if e.State == protocol.DirectiveAddressed || e.State == protocol.DirectiveDropped {
			s.Found = without(s.Found, e.ID)
		}
	}
}

// answered keeps a directive of a reviewer that an agent has just answered: its reviewer checks the answer when it looks next.
func (s *State) answered(before, now directives.Entry) {
	i := at(s.Found, now.ID)
	if review.Assesses(now.Source) { // it looks at the whole again, and at no single directive
		return
	}
	if i < 0 || before.State == now.State || !now.Checked() {
		return
	}
	s.Answered = append(without(s.Answered, now.ID), s.Found[i])
	s.Answered = s.Answered[max(len(s.Answered)-maxFound, 0):]
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

// Breakpoint is where reviewers can look, while no task is at work. They do not look at a task for a Critical directive: what they find there would give
// another such task. After the work is done, the agent polishes it, and they look no more before a user has added a task and it is over.
func (s State) Breakpoint() (b review.Breakpoint, is bool) {
	last := s.LastOver()
	if s.Orders == nil || last == "" || protocol.Directs(last) || s.Working() != "" {
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
