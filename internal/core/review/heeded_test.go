// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// gave are directives of a source that end in a state.
func gave(n int, source, state string) (list [][2]string) {
	return slices.Repeat([][2]string{{source, state}}, n)
}

// unread is the state of a directive that was dropped before an agent received it.
const unread = "unread"

// measure directives, the newest first.
func measure(newest ...[][2]string) []review.Heed {
	return review.Measure(review.All(licensed()), func(yield func(protocol.DirectiveStatus) bool) {
		for _, d := range slices.Concat(newest...) {
			s := protocol.DirectiveStatus{Source: d[0], State: d[1]}
			if d[1] == unread {
				s.State, s.Unread = protocol.DirectiveDropped, true
			}
			if !yield(s) {
				return
			}
		}
	})
}

// TestMeasure: the last 20 directives of a reviewer that are over say whether agents heed it.
func TestMeasure(t *testing.T) {
	done, failed, dropped := protocol.DirectiveAddressed, protocol.DirectiveEscalated, protocol.DirectiveDropped
	for name, c := range map[string]struct {
		newest [][][2]string
		want   []review.Heed
		heeded bool
	}{
		"nothing":             {nil, nil, false},
		"19":                  {[][][2]string{gave(19, style, failed)}, nil, false},
		"19 and open ones":    {[][][2]string{gave(5, style, protocol.DirectiveActive), gave(19, style, failed), gave(5, style, protocol.DirectivePending)}, nil, false},
		"of users":            {[][][2]string{gave(30, protocol.SourcePerson, done)}, nil, false},
		"fewer than 30 %":     {[][][2]string{gave(5, style, done), gave(10, style, failed), gave(5, style, dropped)}, []review.Heed{{Reviewer: style, Addressed: 5, Of: 20}}, false},
		"30 %":                {[][][2]string{gave(6, style, done), gave(14, style, dropped)}, []review.Heed{{Reviewer: style, Addressed: 6, Of: 20}}, true},
		"older ones":          {[][][2]string{gave(20, style, done), gave(50, style, dropped)}, []review.Heed{{Reviewer: style, Addressed: 20, Of: 20}}, true},
		"a custom one":        {[][][2]string{gave(20, licenses, done)}, []review.Heed{{Reviewer: licenses, Addressed: 20, Of: 20}}, true},
		"one that is gone":    {[][][2]string{gave(20, "custom/gone", done)}, nil, false},
		"dropped unread":      {[][][2]string{gave(15, style, unread), gave(6, style, done), gave(14, style, failed)}, []review.Heed{{Reviewer: style, Addressed: 6, Of: 20}}, true},
		"19 and unread ones":  {[][][2]string{gave(40, style, unread), gave(19, style, failed)}, nil, false},
		"two, in their order": {[][][2]string{gave(20, design, done), gave(20, style, done)}, []review.Heed{{Reviewer: style, Addressed: 20, Of: 20}, {Reviewer: design, Addressed: 20, Of: 20}}, true},
	} {
		got := measure(c.newest...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, h := range got {
			if h.Heeded() != c.heeded {
				t.Errorf("%s: heeded %v", name, h.Heeded())
			}
		}
	}
}

// TestHeedWords: users read the figure, and what follows from it.
func TestHeedWords(t *testing.T) {
	for h, want := range map[review.Heed]string{
		{Reviewer: style, Addressed: 15, Of: 20}: "Agents have addressed 15 of the last 20 directives of reviewer CodeStyle in this project (75 %).",
		{Reviewer: style, Addressed: 5, Of: 20}:  "Agents have addressed 5 of the last 20 directives of reviewer CodeStyle in this project (25 %). Below 30 %, it looks only when a milestone is complete: tell it in the policy what matters to your team, or turn it off.",
	} {
		if got := h.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRConvUnheededReviewers look when a milestone is complete, and at no other time, whatever has happened.
func TestRConvUnheededReviewers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, h := rules(), review.History{}
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			h = h.Happened(rapid.SampledFrom([]review.Event{review.GateFailed, review.TaskAborted, review.Replanned}).Draw(t, "event"), p)
		}
		if rapid.Bool().Draw(t, "skipped") {
			h = h.Skipped(style, 1)
		}
		p.Reviewers.CodeStyle.OnMilestone = rapid.Bool().Draw(t, "milestones in the policy")
		b := review.Breakpoint{Over: rapid.IntRange(2, 50).Draw(t, "over"), Milestone: rapid.Bool().Draw(t, "milestone")}
		looks := slices.ContainsFunc(h.Due(p, []string{style}, b), func(r review.Reviewer) bool { return r.Name == style })
		if looks != b.Milestone {
			t.Fatalf("looks: %v, at %+v", looks, b)
		}
	})
}
