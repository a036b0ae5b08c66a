// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"slices"
	"strconv"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Answered is a directive of a reviewer that an agent has answered.
type Answered struct {
	protocol.Directive

	// Said is what the agent said.
	Said string
}

// Bounds of what is shown of an answered directive, in bytes: its text, and the answer.
const maxAsked, maxAnswer = 140, 80

// Shown are the answered directives that a question has room for, the oldest first. The others wait for the next look.
func Shown(all []Answered) []Answered { return plain.CutList(all, MaxChecks) }

// StillThere decides which of the shown directives a reviewer still finds: those whose quote stands in the tree. Text is as in Keep.
func StillThere(a Answer, shown []Answered, text func(path string) (content string, is bool)) (ids []string, discarded []Discarded) {
	for _, s := range a.StillThere {
		_, _, _, reason := stands(s.Path, s.Quote, 1, text)
		switch {
		case !slices.ContainsFunc(shown, func(have Answered) bool { return have.ID == s.ID }):
			reason = NotShown
		case slices.Contains(ids, s.ID):
			reason = Repeated
		}
		if reason != "" {
			discarded = append(discarded, discard(s.Path, s.ID, reason))
			continue
		}
		ids = append(ids, s.ID)
	}
	return ids, discarded
}

// answered are directives with what an agent said of each.
func (d data) answered(shown []Answered) string {
	l := list{budget: maxAnswered, left: "(others are left out)"}
	for _, a := range Shown(shown) {
		l.add("- " + d.name(a.ID) + ": " + d.line(a.Description, maxAsked) + " Answer: " + d.line(strconv.Quote(plain.CutBytes(a.Said, maxAnswer)), maxAnswer))
	}
	return l.text(false)
}
