// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Event makes reviews more urgent.
type Event string

// Events, and their urgency in hundredths: the sources of Tidewaiter's requirements have 0.3, 1.0, 0.2 and 0.5.
const (
	GateFailed  Event = "GateFailed"
	TaskAborted Event = "TaskAborted"
	Replanned   Event = "Replanned"
	// Drifted: the assessor has found a MinorDrift. Its own reviews do not become more urgent by it.
	Drifted Event = "Drifted"
)

var urgency = map[Event]int64{GateFailed: 30, TaskAborted: 100, Replanned: 20, Drifted: 50}

const (
	// maxDoublings of a reviewer's interval.
	maxDoublings = 2
	// maxUrgency is where urgency stops to grow, in hundredths: the largest threshold is below.
	maxUrgency = 100_000
	// minInterval and maxInterval bound the interval of an assessor, in tasks.
	minInterval, maxInterval = 3, 10
)

// MaxReplans is how many plans the assessor can have made before a user has decided about the work.
const MaxReplans = 3

// Look is how far one reviewer is. The zero Look is that of one that has not looked.
type Look struct {
	// Asked is how many tasks were over at the last breakpoint at which it was due, and Looked how many when it looked last. After a skipped review,
	// only Asked changes.
	Asked  int `json:"asked,omitempty"`
	Looked int `json:"looked,omitempty"`
	// Tree that it saw last; empty before.
	Tree string `json:"tree,omitempty"`
	// Urgency in hundredths. Called: it looks at the next breakpoint whatever its urgency is, because an event calls it or its last review was skipped.
	Urgency int64 `json:"urgency,omitempty"`
	Called  bool  `json:"called,omitempty"`
	// Quiet is how often its interval has doubled, because it found nothing new.
	Quiet int `json:"quiet,omitempty"`
	// Every is the interval that the verdicts of an assessor have led to, in tasks; 0 before the first one, and for other reviewers.
	Every int `json:"every,omitempty"`
	// Said is what its last review said that a model has answered, and After the task after which that was.
	Said  string `json:"said,omitempty"`
	After string `json:"after,omitempty"`
}

// interval of a reviewer, in finished tasks between two looks; 0 if tasks do not count.
func (l Look) interval(r Reviewer, rule policy.Reviewer) int {
	switch {
	case rule.EveryTasks == 0:
		return 0
	case r.Assesses:
		return within(cmp.Or(l.Every, rule.EveryTasks))
	}
	return rule.EveryTasks << l.Quiet
}

// within the bounds of an assessor's interval.
func within(every int) int { return min(max(every, minInterval), maxInterval) }

// History has a Look for each reviewer that has one, by name. A History never changes: its methods return another one.
type History map[string]Look

// Breakpoint is a point between two tasks, at which reviewers can look.
type Breakpoint struct {
	// Over is how many tasks are over: done, or aborted.
	Over int
	// Milestone: the last one of them completes its milestone.
	Milestone bool
}

// Due are the reviewers that look at a breakpoint, in their order. Each is due once at a breakpoint, and none after the assessor. Unheeded names the reviewers
// that look only when a milestone is complete.
func (h History) Due(p policy.Effective, unheeded []string, b Breakpoint) (due []Reviewer) {
	for _, r := range All(p) {
		rule, look := r.Rule(p), h[r.Name]
		every := look.interval(r, rule)
		switch {
		case b.Over <= look.Asked, b.Over <= h[assessor.Name].Asked:
		case slices.Contains(unheeded, r.Name):
			if b.Milestone {
				due = append(due, r)
			}
		case look.Called, p.Reviewers.UrgencyThreshold > 0 && look.Urgency >= p.Reviewers.UrgencyThreshold, rule.OnMilestone && b.Milestone, every > 0 && b.Over-look.Looked >= every:
			due = append(due, r)
		}
	}
	return due
}

// Happened counts an event for every reviewer that a policy lets run.
func (h History) Happened(e Event, p policy.Effective) History {
	for _, r := range All(p) {
		if e == Drifted && r.Assesses {
			continue
		}
		look := h[r.Name]
		look.Urgency = min(look.Urgency+urgency[e], maxUrgency)
		look.Called = look.Called || slices.Contains(r.Calls, e)
		h = h.with(r.Name, look)
	}
	return h
}

// Skipped: a reviewer was due when this number of tasks was over, and has not looked. Its urgency stays, and it is due at the next breakpoint: without
// that, nobody would look at a milestone before the next one is complete.
func (h History) Skipped(name string, over int) History {
	look := h[name]
	look.Asked, look.Called = over, true
	return h.with(name, look)
}

// Passed: a reviewer was due when this number of tasks was over, and nothing that it sees had changed. It is due at each breakpoint at which it would be
// otherwise, until something has.
func (h History) Passed(name string, over int) History {
	look := h[name]
	look.Asked = over
	return h.with(name, look)
}

// Looked: a reviewer has looked at a tree when this number of tasks was over. Its interval doubles if it has found nothing new.
func (h History) Looked(name string, over int, tree string, found bool) History {
	look := Look{Asked: over, Looked: over, Tree: tree, Quiet: min(h[name].Quiet+1, maxDoublings), Said: h[name].Said, After: h[name].After}
	if found {
		look.Quiet = h[name].Quiet
	}
	return h.with(name, look)
}

// Assessed: an assessor has looked at a tree when this number of tasks was over, and the outcome is that of its verdict. If it is Aligned, its interval
// grows by 1 task. A MinorDrift makes it 2 tasks shorter, and a MajorDivergence as short as it can be.
func (h History) Assessed(name string, over int, tree, outcome string, p policy.Effective) History {
	look := Look{Asked: over, Looked: over, Tree: tree, Every: minInterval, Said: h[name].Said, After: h[name].After}
	before := within(cmp.Or(h[name].Every, assessor.Rule(p).EveryTasks))
	switch outcome {
	case protocol.ReviewAligned:
		look.Every = within(before + 1)
	case protocol.ReviewMinorDrift:
		look.Every = within(before - 2)
	}
	return h.with(name, look)
}

// Summed: a reviewer has summed up its review after a task. Its next question has that.
func (h History) Summed(name, summary, task string) History {
	look := h[name]
	look.Said, look.After = summary, task
	return h.with(name, look)
}

// Back: only this number of tasks is over, because others begin again. No reviewer waits until more are over than before.
func (h History) Back(over int) History {
	for name, look := range h {
		look.Asked, look.Looked = min(look.Asked, over), min(look.Looked, over)
		h = h.with(name, look)
	}
	return h
}

// Heeded: the agent has addressed a finding of a reviewer, whose interval is the one of the policy again.
func (h History) Heeded(name string) History {
	look, has := h[name]
	if !has {
		return h
	}
	look.Quiet = 0
	return h.with(name, look)
}

func (h History) with(name string, look Look) History {
	next := maps.Clone(h)
	if next == nil {
		next = History{}
	}
	next[name] = look
	return next
}
