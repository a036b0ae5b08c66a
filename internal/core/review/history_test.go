// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// rules are those of the built-in policy, with a model for reviewers.
func rules() policy.Effective {
	return policy.Effective{
		Models: []policy.ModelRef{{Role: policy.RoleSupervisor}},
		Reviewers: policy.Reviewers{
			CodeStyle: policy.Reviewer{EveryTasks: 5, OnMilestone: true}, Design: policy.Reviewer{OnMilestone: true}, Assessor: policy.Reviewer{Enabled: new(false)}, UrgencyThreshold: 100, MaxDirectives: 3,
		},
	}
}

// assessed are the rules with the assessor.
func assessed() policy.Effective {
	p := rules()
	p.Reviewers.Assessor = policy.Reviewer{EveryTasks: 5, OnMilestone: true}
	return p
}

// writing are the rules with the assessor and the reviewer of knowledge, where reviewers write documents.
func writing() policy.Effective {
	p := assessed()
	p.Reviewers.Knowledge = policy.Reviewer{EveryTasks: 3, OnMilestone: true}
	p.Knowledge.Inject = true
	return p
}

// names of the reviewers that are due.
func names(h review.History, p policy.Effective, b review.Breakpoint) (list []string) {
	for _, r := range h.Due(p, nil, b) {
		list = append(list, r.Name)
	}
	return list
}

const style, design, knower, assessor = protocol.SourceCodeStyle, protocol.SourceDesign, protocol.SourceKnowledge, protocol.SourceAssessor

func TestRTrigReviewersRunWhenTheirTriggersSaySo(t *testing.T) {
	never := func(p *policy.Effective) { p.Reviewers.CodeStyle = policy.Reviewer{} }
	no, yes := false, true
	for name, tc := range map[string]struct {
		policy  func(*policy.Effective)
		history func(review.History, policy.Effective) review.History
		at      review.Breakpoint
		want    []string
	}{
		"before the first task":      {at: review.Breakpoint{}},
		"after 4 tasks":              {at: review.Breakpoint{Over: 4}},
		"after 5 tasks":              {at: review.Breakpoint{Over: 5}, want: []string{style}},
		"a milestone":                {at: review.Breakpoint{Over: 1, Milestone: true}, want: []string{style, design}},
		"no trigger of the policy":   {policy: never, at: review.Breakpoint{Over: 50, Milestone: true}, want: []string{design}},
		"without a model for it":     {policy: func(p *policy.Effective) { p.Models = nil }, at: review.Breakpoint{Over: 5, Milestone: true}},
		"one that the policy wants":  {policy: func(p *policy.Effective) { p.Models, p.Reviewers.Design.Enabled = nil, &yes }, at: review.Breakpoint{Over: 5, Milestone: true}, want: []string{design}},
		"one that it does not want":  {policy: func(p *policy.Effective) { p.Reviewers.Design.Enabled = &no }, at: review.Breakpoint{Over: 5, Milestone: true}, want: []string{style}},
		"without a threshold":        {policy: func(p *policy.Effective) { p.Reviewers.UrgencyThreshold = 0 }, at: review.Breakpoint{Over: 1}},
		"4 tasks after a look":       {history: looked(5, true), at: review.Breakpoint{Over: 9}},
		"5 tasks after a look":       {history: looked(5, true), at: review.Breakpoint{Over: 10}, want: []string{style}},
		"5 after one without result": {history: looked(5, false), at: review.Breakpoint{Over: 10}},
		"10 of these":                {history: looked(5, false), at: review.Breakpoint{Over: 15}, want: []string{style}},
		"the same breakpoint":        {history: looked(5, true), at: review.Breakpoint{Over: 5, Milestone: true}, want: []string{design}},
		"another plan": {
			history: func(h review.History, p policy.Effective) review.History { return h.Happened(review.Replanned, p) },
			at:      review.Breakpoint{Over: 1}, want: []string{design},
		},
		"an aborted task": {
			policy:  func(p *policy.Effective) { p.Reviewers.UrgencyThreshold = 1000 },
			history: func(h review.History, p policy.Effective) review.History { return h.Happened(review.TaskAborted, p) },
			at:      review.Breakpoint{Over: 1}, want: []string{design},
		},
	} {
		p, h := rules(), review.History(nil)
		if tc.policy != nil {
			tc.policy(&p)
		}
		if tc.history != nil {
			h = tc.history(h, p)
		}
		if got := names(h, p, tc.at); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v are due, want %v", name, got, tc.want)
		}
	}
}

// looked is a history in which the style reviewer has looked.
func looked(over int, found bool) func(review.History, policy.Effective) review.History {
	return func(h review.History, _ policy.Effective) review.History { return h.Looked(style, over, "tree", found) }
}

func TestRUrgEventsPullAReviewForward(t *testing.T) {
	p := rules()
	for name, tc := range map[string]struct {
		events []review.Event
		want   []string
	}{
		"nothing":                         {},
		"3 failed gates":                  {[]review.Event{review.GateFailed, review.GateFailed, review.GateFailed}, nil},
		"4 failed gates":                  {[]review.Event{review.GateFailed, review.GateFailed, review.GateFailed, review.GateFailed}, []string{style, design}},
		"an aborted task":                 {[]review.Event{review.TaskAborted}, []string{style, design}},
		"another plan, which design sees": {[]review.Event{review.Replanned}, []string{design}},
		"3 failed gates and another plan": {[]review.Event{review.GateFailed, review.GateFailed, review.Replanned, review.GateFailed}, []string{style, design}},
	} {
		h := review.History{}
		for _, e := range tc.events {
			h = h.Happened(e, p)
		}
		if got := names(h, p, review.Breakpoint{Over: 1}); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v are due, want %v", name, got, tc.want)
		}
	}
}

// TestRUrgASkippedReviewKeepsItsUrgency: it is asked for at the next breakpoint, and not again at the same one. One that has looked is not urgent any more.
func TestRUrgASkippedReviewKeepsItsUrgency(t *testing.T) {
	p := rules()
	h := review.History{}.Happened(review.TaskAborted, p)
	skipped := h.Skipped(style, 1).Skipped(design, 1)
	if got := names(skipped, p, review.Breakpoint{Over: 1, Milestone: true}); got != nil {
		t.Errorf("%v are asked twice at one breakpoint", got)
	}
	if got := names(skipped, p, review.Breakpoint{Over: 2}); !slices.Equal(got, []string{style, design}) || skipped[design].Urgency != 100 || !skipped[design].Called {
		t.Errorf("after a skipped review, %v are due: %+v", got, skipped)
	}
	seen := skipped.Looked(style, 2, "tree", true)
	if got := names(seen, p, review.Breakpoint{Over: 3}); !slices.Equal(got, []string{design}) || seen[style].Urgency != 0 || seen[style].Tree != "tree" {
		t.Errorf("after a look, %v are due: %+v", got, seen)
	}
	if skipped[style].Urgency != 100 || h[style].Asked != 0 {
		t.Error("a history has changed")
	}
}

// TestRUrgUrgencyIsBounded: it stays a number.
func TestRUrgUrgencyIsBounded(t *testing.T) {
	p, h := rules(), review.History{}
	for range 2000 {
		h = h.Happened(review.TaskAborted, p)
	}
	if got := h[style].Urgency; got != 100_000 {
		t.Errorf("urgency %d", got)
	}
}

// TestRConvIntervals: whatever a reviewer finds, the tasks between two looks are between its interval and four times its interval, it is asked once at a
// breakpoint, and after an addressed finding its interval is that of the policy.
func TestRConvIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rules()
		base := rapid.IntRange(1, 7).Draw(t, "interval")
		p.Reviewers.CodeStyle.EveryTasks = base
		h, last, heeded := review.History{}, 0, false
		for over := 1; over <= 100; over++ {
			b := review.Breakpoint{Over: over}
			due := names(h, p, b)
			if gap := over - last; (len(due) == 1) != (gap >= base<<h[style].Quiet) || gap > 4*base || heeded && gap >= base && len(due) == 0 {
				t.Fatalf("%v are due %d tasks after the last look: %+v", due, gap, h)
			}
			if len(due) == 0 {
				continue
			}
			if over-last < base {
				t.Fatalf("a look %d tasks after the last one", over-last)
			}
			quiet := h[style].Quiet
			h, last, heeded = h.Looked(style, over, "tree", rapid.Bool().Draw(t, "found")), over, false
			if h[style].Quiet < quiet {
				t.Fatal("an interval became shorter without an addressed finding")
			}
			if names(h, p, b) != nil {
				t.Fatal("asked twice at one breakpoint")
			}
			if rapid.Bool().Draw(t, "heeded") {
				h, heeded = h.Heeded(style), true
			}
		}
	})
	if h := (review.History{}).Heeded(style); len(h) != 0 {
		t.Errorf("a reviewer that has not looked is in %+v", h)
	}
}

// TestASkippedReviewOfAMilestone is asked for after the next task, and not when the next milestone is complete.
func TestASkippedReviewOfAMilestone(t *testing.T) {
	p := rules()
	h := review.History{}.Skipped(design, 1)
	if got := names(h, p, review.Breakpoint{Over: 2}); !slices.Equal(got, []string{design}) {
		t.Errorf("%v are due", got)
	}
	if got := names(h.Looked(design, 2, "tree", true), p, review.Breakpoint{Over: 3}); got != nil {
		t.Errorf("after a look, %v are due", got)
	}
}

// TestBreakpoints: whatever happens, a reviewer is asked once at a breakpoint, and a skipped one is due at the next.
func TestBreakpoints(t *testing.T) {
	events := rapid.SampledFrom([]review.Event{review.GateFailed, review.TaskAborted, review.Replanned})
	rapid.Check(t, func(t *rapid.T) {
		p, h := rules(), review.History{}
		skipped := map[string]bool{}
		for over := 1; over <= 30; over++ {
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				h = h.Happened(events.Draw(t, "event"), p)
			}
			b := review.Breakpoint{Over: over, Milestone: rapid.Bool().Draw(t, "milestone")}
			due := names(h, p, b)
			for name := range skipped {
				if !slices.Contains(due, name) {
					t.Fatalf("%s was skipped, and is not due: %+v", name, h[name])
				}
			}
			clear(skipped)
			for _, name := range due {
				if rapid.Bool().Draw(t, "skipped") {
					skipped[name] = true
					h = h.Skipped(name, over)
				} else {
					h = h.Looked(name, over, "tree", rapid.Bool().Draw(t, "found"))
				}
				if slices.Contains(names(h, p, b), name) {
					t.Fatalf("%s is asked twice at one breakpoint", name)
				}
			}
		}
	})
}

func TestFind(t *testing.T) {
	for _, r := range review.All(assessed()) {
		if got, is := review.Find(r.Name, rules()); !is || got.Title != r.Title || review.Title(r.Name) != r.Title || !review.Is(r.Name) || r.Rule(assessed()).OnMilestone != true {
			t.Errorf("%s is not found", r.Name)
		}
	}
	if _, is := review.Find(protocol.SourcePerson, rules()); is || review.Is(protocol.SourceFeature) {
		t.Error("a user or a Feature is a reviewer")
	}
}
