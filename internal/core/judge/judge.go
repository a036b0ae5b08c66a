// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Judge checks a captured tree against its base by every rule. It is a pure function of the input and does not depend on the sequence of
// its lists. The verdict is Invalid if and only if a violation has severity Error or more. If the context ends first, Judge returns only
// the context's error.
func Judge(ctx context.Context, in Input) (Judgement, error) {
	rules := Rules()
	v := newView(ctx, in, rules)
	j := Judgement{Verdict: protocol.Valid, Lines: v.lines()}
	for _, rule := range rules {
		if v.stopped() {
			break
		}
		for _, b := range rule.breaches(v) {
			j.Violations = append(j.Violations, rule.violation(b))
		}
	}
	slices.SortFunc(j.Violations, compareViolations)
	if len(j.Violations) > 0 {
		j.Severity = j.Violations[0].Severity
		if j.Severity.Blocks() {
			j.Verdict = protocol.Invalid
		}
	}
	if err := ctx.Err(); err != nil {
		return Judgement{}, fmt.Errorf("check %d changes: %w", len(in.Changes), err)
	}
	return j, nil
}

func (r *Rule) violation(b breach) protocol.Violation {
	suggestion := b.suggestion
	if suggestion == "" {
		suggestion = r.Suggestion
	}
	return protocol.Violation{
		Rule:       cmp.Or(b.rule, r.ID),
		Path:       b.path,
		Severity:   b.severity.OrError(),
		Message:    plain.CutRunes(b.message, maxMessage),
		Suggestion: plain.CutRunes(suggestion, maxMessage),
	}
}

// Told are the violations that the watchdog reports to the agent, worst first. Violations of severity Info are only for the log.
func (j Judgement) Told() []protocol.Violation {
	i := slices.IndexFunc(j.Violations, func(v protocol.Violation) bool { return v.Severity.Compare(policy.Info) <= 0 })
	if i < 0 {
		return j.Violations
	}
	return j.Violations[:i]
}

// compareViolations orders them worst first, then by path, rule and message: the order is total up to equal violations.
func compareViolations(a, b protocol.Violation) int {
	return cmp.Or(
		b.Severity.Compare(a.Severity),
		strings.Compare(a.Path, b.Path),
		strings.Compare(a.Rule, b.Rule),
		strings.Compare(a.Message, b.Message),
	)
}

// Summary says in one line of at most 1 KiB what is wrong and what to do: the worst violation with rule and path, and
// how many more there are.
func Summary(j Judgement) string {
	if len(j.Violations) == 0 {
		return "No rule is broken."
	}
	worst := j.Violations[0]
	if worst.Path != "" {
		worst.Path = Escape(worst.Path)
	}
	text := textOf(worst)
	switch more := len(j.Violations) - 1; more {
	case 0:
	case 1:
		text += " There is 1 more violation."
	default:
		text += fmt.Sprintf(" There are %d more violations.", more)
	}
	return plain.CutBytes(text, maxSummary)
}

// SummaryOf is Summary of one violation whose path is escaped already.
func SummaryOf(v protocol.Violation) string { return plain.CutBytes(textOf(v), maxSummary) }

// textOf a violation says what is wrong and what to do. The path is escaped.
func textOf(v protocol.Violation) string {
	text := fmt.Sprintf("Rule %s is broken by %s: %s.", v.Rule, v.Path, v.Message)
	if v.Path == "" {
		text = fmt.Sprintf("Rule %s: %s.", v.Rule, v.Message)
	}
	if v.Suggestion != "" {
		text += fmt.Sprintf(" To fix it: %s.", v.Suggestion)
	}
	return text
}
