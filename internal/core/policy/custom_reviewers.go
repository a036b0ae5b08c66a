// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// MaxCustomReviewers is how many reviewers policies can define together: each one can ask a model between two tasks.
	MaxCustomReviewers = 8
	// maxReviewerName bounds the name of one, in bytes.
	maxReviewerName = 40
)

// Priorities of the directives of a custom reviewer.
const (
	ReviewNormal = "Normal"
	ReviewLow    = "Low"
)

// CustomReviewer is a reviewer that a policy defines.
type CustomReviewer struct {
	Name string `json:"name"`
	// Instructions say what it looks for.
	Instructions string `json:"instructions"`
	// EveryTasks and OnMilestone are as in Reviewer.
	EveryTasks  int  `json:"everyTasks,omitempty"`
	OnMilestone bool `json:"onMilestone,omitempty"`
	// Paths are patterns of the files that it sees; empty for all files.
	Paths []string `json:"paths,omitempty"`
	// Priority is the most urgent one of its directives: ReviewNormal or ReviewLow.
	Priority string `json:"priority"`
}

var reviewerName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// IsReviewerName says whether a name has the form of the name of a custom reviewer.
func IsReviewerName(name string) bool {
	return len(name) <= maxReviewerName && reviewerName.MatchString(name)
}

// takenNames are names that would be mistaken for the reviewers of Tidewaiter.
func takenNames() []string {
	return []string{"assessor", "code-style", "codestyle", "design", "knowledge"}
}

func customReviewersRow() Row {
	const path = "reviewers.custom"
	return Row{
		Path: path, Purpose: "Reviewers that a team defines. Each has instructions, its triggers, the paths that it sees, and the most urgent priority of its directives.",
		Allowed: fmt.Sprintf("at most %d, with names such as `licenses`", MaxCustomReviewers), Builtin: "none",
		Merging: "for each name, the reviewer whose instructions come first in alphabetical order",
		check:   func(r *Rules) error { return checkCustomReviewers(path, r.Reviewers.Custom) },
		merge:   func(m *merger, e *Effective) { e.Reviewers.Custom = m.customReviewers(path) },
		rules:   func(r *Rules) any { return &r.Reviewers.Custom }, effective: func(e *Effective) any { return &e.Reviewers.Custom },
		cut: func(e *Effective) (now, builtin any) {
			var none []CustomReviewer
			now, e.Reviewers.Custom = e.Reviewers.Custom, nil
			return now, none
		},
	}
}

func checkCustomReviewers(path string, list []CustomReviewer) error {
	var errs []error
	for _, r := range list {
		at := fmt.Sprintf("%s[%s]", path, r.Name)
		switch {
		case !IsReviewerName(r.Name):
			errs = append(errs, fmt.Errorf("%s.name: it must begin with a letter and have only lower case letters, digits and dashes, at most %d characters, for example licenses", at, maxReviewerName))
		case slices.Contains(takenNames(), r.Name):
			errs = append(errs, fmt.Errorf("%s.name: it is the name of a reviewer of Tidewaiter, choose another", at))
		}
		if strings.TrimSpace(r.Instructions) == "" {
			errs = append(errs, fmt.Errorf("%s.instructions: say what the reviewer looks for", at))
		}
		if r.EveryTasks < 0 || r.EveryTasks > maxCount {
			errs = append(errs, fmt.Errorf("%s.everyTasks: %d must be from 0 to %d", at, r.EveryTasks, maxCount))
		}
		errs = append(errs, checkReviewInstructions(at+".instructions", r.Instructions), oneOf(at+".priority", r.Priority, ReviewNormal, ReviewLow))
	}
	return errors.Join(errs...)
}

// customReviewers decides each one by its name. If sources define too many, those of the source that comes first run.
func (m *merger) customReviewers(path string) []CustomReviewer {
	var names []string
	for _, l := range m.levels {
		for _, member := range l {
			for _, r := range slices.SortedFunc(slices.Values(member.rules.Reviewers.Custom), compareReviewers) {
				if !slices.Contains(names, r.Name) {
					names = append(names, r.Name)
				}
			}
		}
	}
	if len(names) > MaxCustomReviewers {
		m.conflicts = append(m.conflicts, fmt.Sprintf("%s: policies define %d reviewers together, and at most %d run: remove %s",
			path, len(names), MaxCustomReviewers, strings.Join(names[MaxCustomReviewers:], ", ")))
		names = names[:MaxCustomReviewers]
	}
	var all []CustomReviewer
	for _, name := range set(names) {
		all = append(all, decide(m, value[CustomReviewer]{
			name: path + "." + name,
			of: func(r *Rules) (CustomReviewer, bool) {
				i := slices.IndexFunc(r.Reviewers.Custom, func(c CustomReviewer) bool { return c.Name == name })
				if i < 0 {
					return CustomReviewer{}, false
				}
				c := r.Reviewers.Custom[i]
				c.Paths = set(c.Paths)
				return c, true
			},
			stricter: func(a, b CustomReviewer) CustomReviewer {
				if compareReviewers(a, b) <= 0 {
					return a
				}
				return b
			},
			equal: func(a, b CustomReviewer) bool { return compareReviewers(a, b) == 0 },
		}))
	}
	return all
}

// compareReviewers by name, by instructions, and then by everything else.
func compareReviewers(a, b CustomReviewer) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Instructions, b.Instructions), bytes.Compare(text(a), text(b)))
}
