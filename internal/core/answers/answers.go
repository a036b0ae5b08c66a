// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers checks what a model answers at the end of its turns against the rules of Output templates, corrects what
// can be corrected, and formats it. It decides only by values, and its cost is linear in the length of an answer.
package answers

import (
	"fmt"
	"slices"
	"strings"
)

// MaxChecked of an answer, in bytes: some 60,000 tokens. The final answers of agents have a few thousand.
const MaxChecked = 256 << 10

// Type of a violation.
type Type string

// Types of violations.
const (
	// MissingRequiredSection: a heading that the answer must have is not there.
	MissingRequiredSection Type = "MissingRequiredSection"
	// IncorrectFormat: the answer is empty, or does not match a schema, a pattern or a list of phrases.
	IncorrectFormat Type = "IncorrectFormat"
	// SkippedValidation: the answer cannot be checked, so it counts as a violation.
	SkippedValidation Type = "SkippedValidation"
)

// Severity of a violation.
type Severity string

// Severities.
const (
	// Minor violations are corrected.
	Minor Severity = "Minor"
	// Major violations cannot be.
	Major Severity = "Major"
)

// Violation of a rule.
type Violation struct {
	Type     Type
	Severity Severity
	// Message says what is wrong and what to do, for the model and for users.
	Message string
}

// Checks of one Output template. The zero value accepts every answer.
type Checks struct {
	// Sections that the answer must have a heading for.
	Sections []string `json:"sections,omitempty"`
	// Patterns that must match somewhere in the answer, in the syntax of RE2.
	Patterns []string `json:"patterns,omitempty"`
	// Phrases that the answer must not have, whatever their case.
	Phrases []string `json:"phrases,omitempty"`
	// Schema is a JSON schema that the answer must match; empty for none.
	Schema string `json:"schema,omitempty"`
	// Correct says what is corrected.
	Correct Corrections `json:"correct,omitzero"`
}

// Corrections of an answer.
type Corrections struct {
	// TrimSpace removes white space around it.
	TrimSpace bool `json:"trimSpace,omitempty"`
	// AddSections appends required sections that it does not have, without content.
	AddSections bool `json:"addSections,omitempty"`
	// StripFence removes a Markdown fence around JSON.
	StripFence bool `json:"stripFence,omitempty"`
}

// Rules for the final answers of a task. The zero value has no rules.
type Rules struct {
	// Checks of all templates, in their order. Nil where answers are not checked.
	Checks []Checks `json:"checks,omitempty"`
	// Formats are put around the answer, one after the other.
	Formats []string `json:"formats,omitempty"`
	// Retries of an answer that breaks a rule.
	Retries int `json:"retries,omitempty"`
	// Fail the task when they are spent.
	Fail bool `json:"fail,omitempty"`
	// Audit records what breaks a rule, and neither corrects nor rejects it. Answers are formatted all the same.
	Audit bool `json:"audit,omitempty"`
}

// Any says whether there is anything to do with an answer.
func (r Rules) Any() bool { return len(r.Checks) > 0 || len(r.Formats) > 0 }

// Holds says whether the rules may change or reject an answer, so that the gateway must check all of it before it passes any of it on.
func (r Rules) Holds() bool { return len(r.Formats) > 0 || len(r.Checks) > 0 && !r.Audit }

// mostRules is the size of all texts and checks together, in bytes: they are kept for each task.
const mostRules = 512 << 10

// Validate says that the templates have more text than is kept for a task.
func (r Rules) Validate() error {
	total := 0
	for _, f := range r.Formats {
		total += len(f)
	}
	for _, c := range r.Checks {
		total += len(c.Schema)
		for _, text := range slices.Concat(c.Sections, c.Patterns, c.Phrases) {
			total += len(text)
		}
	}
	if total > mostRules {
		return fmt.Errorf("the Output templates have %d bytes together, and the limit is %d: shorten or delete some", total, mostRules)
	}
	return nil
}

// Verdict on an answer.
type Verdict struct {
	// Text is what the agent gets: corrected and formatted.
	Text string
	// Violations that the answer had as it came.
	Violations []Violation
	// Rejected: at least one of them is Major, and the rules are enforced.
	Rejected bool
}

// Judge an answer. Cut says that more was answered than text holds.
func (r Rules) Judge(text string, cut bool) Verdict {
	v := r.judge(text, cut)
	if r.Audit {
		v.Text, v.Rejected = text, false
		if !cut {
			v.Text = r.format(text)
		}
	}
	return v
}

func (r Rules) judge(text string, cut bool) Verdict {
	if len(r.Checks) == 0 {
		return Verdict{Text: r.format(text)}
	}
	found, known := r.check(text, cut)
	if !known {
		return Verdict{Text: text, Violations: found, Rejected: true}
	}
	corrected := text
	for _, c := range r.Checks {
		corrected = c.correct(corrected)
	}
	left, known := found, true
	if corrected != text {
		left, known = r.check(corrected, false)
	}
	v := Verdict{Violations: found, Rejected: len(left) > 0 || !known}
	for i := range found {
		if !slices.ContainsFunc(left, found[i].same) {
			v.Violations[i].Severity = Minor
		}
	}
	for _, l := range left { // what a correction for one template does to another
		if !slices.ContainsFunc(found, l.same) {
			v.Violations = append(v.Violations, l)
		}
	}
	if v.Text = corrected; !v.Rejected {
		v.Text = r.format(corrected)
	}
	return v
}

func (v Violation) same(o Violation) bool { return v.Type == o.Type && v.Message == o.Message }

// check finds what is wrong with a text; known is false where that cannot be told.
func (r Rules) check(text string, cut bool) (found []Violation, known bool) {
	most := r.mostBytes()
	switch {
	case strings.TrimSpace(text) == "" && !cut:
		return []Violation{{IncorrectFormat, Major, "The answer is empty: write one."}}, true
	case cut && len(text) <= most:
		return []Violation{{SkippedValidation, Major, "The gateway cannot check a part of the answer: give one answer, of only text."}}, false
	case len(text) > most:
		return []Violation{{SkippedValidation, Major, fmt.Sprintf("The answer is too long for a check: give one of at most %d bytes.", most)}}, false
	}
	for _, c := range r.Checks {
		for _, rule := range rules {
			for _, v := range rule(c, text) {
				if len(found) < mostViolations && !slices.ContainsFunc(found, v.same) {
					found = append(found, v)
				}
			}
		}
	}
	return found, true
}

// mostViolations of one answer that are named.
const mostViolations = 64

// rules are what a template can ask for; a new one is a file and an entry here.
var rules = []func(Checks, string) []Violation{sections, schema, patterns, phrases}

// Objection is the text for a model about its rejected answer.
func Objection(violations []Violation) string {
	var b strings.Builder
	b.WriteString("[SUPERVISOR] Your answer was not accepted:\n")
	for _, v := range violations {
		if v.Severity == Major {
			b.WriteString("- " + v.Message + "\n")
		}
	}
	b.WriteString("Fix this and give the whole answer again. People read that answer: do not mention this message in it.")
	return b.String()
}

// Summary is the text for users about a rejected answer: its first major violation, and how many more there are.
func Summary(violations []Violation) string {
	first, more := "", -1
	for _, v := range violations {
		if v.Severity != Major {
			continue
		}
		if more++; first == "" {
			first = fmt.Sprintf("%s: %s", v.Type, v.Message)
		}
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}
