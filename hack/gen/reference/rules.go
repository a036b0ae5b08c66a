// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

// rulesPage is docs/reference/rules.md: every rule with the samples that prove it.
func rulesPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`# Rules

The watchdog checks every path of every checkpoint by these rules, every time. A violation has a rule, a path, a severity, a message
and a suggestion. If a violation has severity Error or Critical, the verdict is ` + "`Invalid`" + `, and the watchdog delivers nothing of the
tree. Under ` + "`enforcement: Audit`" + ` the verdict is the same, and the watchdog only reports it.

`)
	fmt.Fprintf(&b, "The following rules say where an agent can write. A path breaks only the first of them that applies: %s.\nAll other rules apply to every path.\n\n", enumerate(judge.PlacementRules()))
	b.WriteString("| Rule | Reason | Severity |\n|---|---|---|\n")
	rules := judge.Rules()
	for _, rule := range rules {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", rule.ID, rule.ID, rule.Reason, rule.Severity)
	}
	for _, rule := range rules {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", rule.ID, rule.Doc)
		fmt.Fprintf(&b, "* Reason: `%s`\n* Severity: %s\n* To fix it: %s\n", rule.Reason, rule.Severity, rule.Suggestion)
		fmt.Fprintf(&b, "* Rejected, for example:\n%s", sampleNames(rule.Reject))
		fmt.Fprintf(&b, "* Accepted, for example:\n%s", sampleNames(rule.Accept))
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

// sampleNames lists what samples show, below an item of a list.
func sampleNames(samples []judge.Sample) string {
	var names strings.Builder
	for _, sample := range samples {
		fmt.Fprintf(&names, "  * %s\n", sample.Name)
	}
	return names.String()
}
