// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

// rulesPage is docs/reference/rules.md: every rule of the judge with the samples that prove it.
func rulesPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`# Rules

Every checkpoint is judged by these rules, every path, every time. A violation has a rule, a path, a severity, a message
and a suggestion. The verdict is ` + "`Invalid`" + ` when a violation has severity Error or Critical: then nothing of the
tree is delivered. Under ` + "`enforcement: Audit`" + ` the verdict is the same and only reported.

`)
	fmt.Fprintf(&b, "Of %s\na path breaks the first that applies; all others hold wherever a path stands.\n\n", enumerate(judge.PlacementRules()))
	b.WriteString("| rule | reason | severity |\n|---|---|---|\n")
	rules := judge.Rules()
	for _, rule := range rules {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", rule.ID, rule.ID, rule.Reason, rule.Severity)
	}
	for _, rule := range rules {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", rule.ID, rule.Doc)
		fmt.Fprintf(&b, "* Reason: `%s`\n* Severity: %s\n* To fix it: %s\n", rule.Reason, rule.Severity, rule.Suggestion)
		fmt.Fprintf(&b, "* Rejected, for example: %s\n", sampleNames(rule.Reject))
		fmt.Fprintf(&b, "* Accepted, for example: %s\n", sampleNames(rule.Accept))
	}
	return []byte(b.String()), nil
}

// enumerate lists the ids of rules as prose.
func enumerate(rules []judge.Rule) string {
	ids := make([]string, len(rules))
	for i, rule := range rules {
		ids[i] = rule.ID
	}
	last := len(ids) - 1
	return strings.Join(ids[:last], ", ") + " and " + ids[last]
}

// sampleNames lists what samples show.
func sampleNames(samples []judge.Sample) string {
	names := make([]string, len(samples))
	for i, sample := range samples {
		names[i] = sample.Name
	}
	return strings.Join(names, "; ")
}
