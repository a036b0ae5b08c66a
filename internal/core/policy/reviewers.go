// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxReviewInstructions of a team to a reviewer, in characters.
const MaxReviewInstructions = 4000

const (
	// builtinCodeStyleEvery, builtinKnowledgeEvery, builtinAssessorEvery, builtinUrgencyThreshold in hundredths and builtinMaxDirectives have the values of the requirements of the supervisor loop.
	builtinCodeStyleEvery   = 5
	builtinKnowledgeEvery   = 3
	builtinAssessorEvery    = 5
	builtinUrgencyThreshold = 100
	builtinMaxDirectives    = 3
	// builtinPolishTasks is as many as the most Cleanup directives that are open at a time.
	builtinPolishTasks = 10
	// builtinCostAlertPercent is a tenth: reviews are to cost little beside the work.
	builtinCostAlertPercent = 10
	// maxUrgencyThreshold in hundredths. It is less than any urgency at which core/review stops to count.
	maxUrgencyThreshold = 99_999
)

// ReviewerRule are the values of one reviewer that a source sets.
type ReviewerRule struct {
	Enabled      *bool
	EveryTasks   *int
	OnMilestone  *bool
	Instructions string
}

// ReviewerRules are the values of Reviewers that a source sets. UrgencyThreshold is in hundredths.
type ReviewerRules struct {
	CodeStyle, Design, Knowledge, Assessor ReviewerRule
	Custom                                 []CustomReviewer
	UrgencyThreshold                       *int64
	MaxDirectives                          *int
	PolishTasks                            *int
	CostAlertPercent                       *int
}

// Reviewer says when a reviewer looks at the work.
type Reviewer struct {
	// Enabled is nil if no policy says whether it runs: then it runs where a policy names a model for RoleSupervisor.
	Enabled *bool `json:"enabled,omitempty"`
	// EveryTasks is the number of finished tasks after which it runs; 0 for never by that.
	EveryTasks int `json:"everyTasks,omitempty"`
	// OnMilestone: it runs when a milestone is complete.
	OnMilestone bool `json:"onMilestone,omitempty"`
	// Instructions of the team; empty for none.
	Instructions string `json:"instructions,omitempty"`
}

// Reviewers of the work. Each looks at it between two tasks, and gives directives or writes down what the next agents should know.
type Reviewers struct {
	CodeStyle Reviewer `json:"codeStyle,omitzero"`
	Design    Reviewer `json:"design,omitzero"`
	// Knowledge gives no directives. It writes down what the work has taught.
	Knowledge Reviewer `json:"knowledge,omitzero"`
	// Assessor looks after the others. Its EveryTasks is its first interval: its verdicts make it shorter or longer.
	Assessor Reviewer `json:"assessor,omitzero"`
	// Custom are the reviewers that policies define, by name.
	Custom []CustomReviewer `json:"custom,omitempty"`
	// UrgencyThreshold is the urgency, in hundredths, at which a reviewer runs whatever else is due.
	UrgencyThreshold int64 `json:"urgencyThreshold,omitempty"`
	// MaxDirectives that a reviewer may give at a time.
	MaxDirectives int `json:"maxDirectives,omitempty"`
	// PolishTasks is the most tasks after the last one in which the agent addresses directives that are still open; 0 for none.
	PolishTasks int `json:"polishTasks,omitempty"`
	// CostAlertPercent is the share of what a Feature has used above which plans and reviews are worth a warning, in percent; 0 in policies of earlier versions.
	CostAlertPercent int `json:"costAlertPercent,omitempty"`
}

// Reviews says whether a reviewer runs. A policy without an urgency threshold is one of a version that has no reviewers.
func (e Effective) Reviews(r Reviewer) bool {
	if e.Reviewers.UrgencyThreshold == 0 {
		return false
	}
	if r.Enabled != nil {
		return *r.Enabled
	}
	return slices.ContainsFunc(e.Models, func(m ModelRef) bool { return m.Role == RoleSupervisor })
}

func reviewerRows() []Row {
	return slices.Concat(
		reviewer("codeStyle", "the reviewer of code style", func(r *Rules) *ReviewerRule { return &r.Reviewers.CodeStyle }, func(e *Effective) *Reviewer { return &e.Reviewers.CodeStyle }, builtinCodeStyleEvery),
		reviewer("design", "the reviewer of design", func(r *Rules) *ReviewerRule { return &r.Reviewers.Design }, func(e *Effective) *Reviewer { return &e.Reviewers.Design }, 0),
		written(reviewer("knowledge", "the reviewer of knowledge", func(r *Rules) *ReviewerRule { return &r.Reviewers.Knowledge }, func(e *Effective) *Reviewer { return &e.Reviewers.Knowledge }, builtinKnowledgeEvery)),
		assessed(reviewer("assessor", "the assessor", func(r *Rules) *ReviewerRule { return &r.Reviewers.Assessor }, func(e *Effective) *Reviewer { return &e.Reviewers.Assessor }, builtinAssessorEvery)),
		[]Row{
			customReviewersRow(),
			urgencyRow(),
			count("reviewers.maxDirectives", "How many directives a reviewer can give at a time. Tidewaiter discards the less important ones.",
				func(x *Rules) **int { return &x.Reviewers.MaxDirectives }, func(x *Effective) *int { return &x.Reviewers.MaxDirectives }, builtinMaxDirectives, smaller, from(1, 12)),
			count("reviewers.polishTasks", "How many tasks can follow the last task of the plan, in which the agent addresses directives of reviewers that are still open. 0 adds none.",
				func(x *Rules) **int { return &x.Reviewers.PolishTasks }, func(x *Effective) *int { return &x.Reviewers.PolishTasks }, builtinPolishTasks, smaller, from(0, 100)),
			count("reviewers.costAlertPercent", "Share of the cost of all model calls of a Feature, in percent, above which the condition SupervisorCostInBounds warns about plans and reviews. Without prices, it is the share of tokens. There is no warning before the Feature has used 200,000 tokens.",
				func(x *Rules) **int { return &x.Reviewers.CostAlertPercent }, func(x *Effective) *int { return &x.Reviewers.CostAlertPercent }, builtinCostAlertPercent, smaller, from(1, 100)),
		})
}

// reviewer has the rows of one reviewer. More reviews are stricter than fewer.
func reviewer(name, who string, rules func(*Rules) *ReviewerRule, effective func(*Effective) *Reviewer, every int) []Row {
	at := "reviewers." + name
	return []Row{
		enabledRow(at+".enabled", "Whether "+who+" runs.", func(r *Rules) **bool { return &rules(r).Enabled }, func(e *Effective) **bool { return &effective(e).Enabled }),
		everyRow(at+".everyTasks", "After how many finished tasks since its last review "+who+" runs. 0 does not count tasks.",
			func(r *Rules) **int { return &rules(r).EveryTasks }, func(e *Effective) *int { return &effective(e).EveryTasks }, every),
		flag(at+".onMilestone", "Whether "+who+" runs when a milestone is complete.",
			func(r *Rules) **bool { return &rules(r).OnMilestone }, func(e *Effective) *bool { return &effective(e).OnMilestone }, true, true),
		reviewInstructionsRow(at+".instructions", "What a team adds to the instructions of "+who+".",
			func(r *Rules) *string { return &rules(r).Instructions }, func(e *Effective) *string { return &effective(e).Instructions }),
	}
}

// written are the rows of the reviewer of knowledge, which runs only where agents get what it writes.
func written(rows []Row) []Row {
	i := slices.IndexFunc(rows, func(r Row) bool { return strings.HasSuffix(r.Path, ".enabled") })
	rows[i].Purpose = "Whether the reviewer of knowledge runs. It runs only where knowledge.inject is true."
	return rows
}

// assessed are the rows of the assessor, whose verdicts decide its interval.
func assessed(rows []Row) []Row {
	i := slices.IndexFunc(rows, func(r Row) bool { return strings.HasSuffix(r.Path, ".everyTasks") })
	rows[i].Purpose = "After how many finished tasks the assessor runs for the first time, at least 3 and at most 10. Then its verdicts decide. 0 does not count tasks."
	return rows
}

// enabledRow makes a row of a flag that depends on something else if no source sets it.
func enabledRow(path, purpose string, rules func(*Rules) **bool, effective func(*Effective) **bool) Row {
	return rowOf(Row{
		Path: path, Purpose: purpose, Allowed: "true, false", Builtin: "true where a policy names a model for the role supervisor, otherwise false", Merging: "true",
		SetFlag: func(r *Rules, on bool) { *rules(r) = &on },
	}, value[*bool]{
		name: path,
		of:   func(r *Rules) (*bool, bool) { set := *rules(r); return set, set != nil },
		stricter: func(a, b *bool) *bool {
			if *a {
				return a
			}
			return b
		},
		equal: func(a, b *bool) bool { return *a == *b },
	}, func(r *Rules) any { return rules(r) }, effective)
}

// everyRow makes a row of a number of tasks, of which 0 is the mildest.
func everyRow(path, purpose string, rules func(*Rules) **int, effective func(*Effective) *int, builtin int) Row {
	row := count(path, purpose, rules, effective, builtin, smaller, from(0, maxCount))
	row.Merging = "the smaller one that is not 0"
	return rowOf(row, value[int]{
		name: path,
		of: func(r *Rules) (int, bool) {
			if n := *rules(r); n != nil {
				return *n, true
			}
			return 0, false
		},
		stricter: func(a, b int) int {
			if min(a, b) == 0 {
				return max(a, b)
			}
			return min(a, b)
		},
		equal: func(a, b int) bool { return a == b },
	}, row.rules, effective)
}

// reviewInstructionsRow makes a row of a text. No text is stricter than another: which one counts only must not depend on the order of policies.
func reviewInstructionsRow(path, purpose string, rules func(*Rules) *string, effective func(*Effective) *string) Row {
	return rowOf(Row{
		Path: path, Purpose: purpose, Allowed: fmt.Sprintf("printable text of at most %d characters", MaxReviewInstructions), Builtin: "none", Merging: "the text that comes first in alphabetical order",
		SetWord: func(r *Rules, text string) { *rules(r) = text },
		check:   func(r *Rules) error { return checkReviewInstructions(path, *rules(r)) },
	}, value[string]{
		name:     path,
		of:       func(r *Rules) (string, bool) { text := *rules(r); return text, text != "" },
		stricter: func(a, b string) string { return min(a, b) },
		equal:    func(a, b string) bool { return a == b },
	}, func(r *Rules) any { return rules(r) }, effective)
}

// checkReviewInstructions says what is wrong with a text for a reviewer.
func checkReviewInstructions(path, text string) error {
	unprintable := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) }
	if n := utf8.RuneCountInString(text); n > MaxReviewInstructions {
		return fmt.Errorf("%s: it has %d characters, shorten it to at most %d", path, n, MaxReviewInstructions)
	}
	if i := strings.IndexFunc(text, unprintable); i >= 0 {
		return fmt.Errorf("%s: the character at byte %d is not printable, remove it", path, i)
	}
	return nil
}

// urgencyRow makes a row of an urgency, in hundredths.
func urgencyRow() Row {
	return number(Row{
		Path: "reviewers.urgencyThreshold", Purpose: "The urgency at which a reviewer runs before its next turn. A failed gate adds 0.3 to the urgency of each reviewer, an aborted task 1, a new plan 0.2 and a MinorDrift of the assessor 0.5. A review sets the urgency of its reviewer to 0.",
		Builtin: hundredths(builtinUrgencyThreshold), SetHundredths: func(r *Rules, n int64) { r.Reviewers.UrgencyThreshold = &n },
	}, func(r *Rules) **int64 { return &r.Reviewers.UrgencyThreshold }, func(e *Effective) *int64 { return &e.Reviewers.UrgencyThreshold },
		builtinUrgencyThreshold, smaller, from[int64](1, maxUrgencyThreshold), hundredths)
}

// hundredths as a decimal number.
func hundredths(n int64) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }
