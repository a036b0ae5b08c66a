// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/tidewaiter/tidewaiter/internal/core/policy"

// Rule is one requirement for changes. It carries its own proof: inputs that it rejects and accepts.
type Rule struct {
	// ID names the rule in violations and policies; kebab-case, never changed once released.
	ID string
	// Reason names a violation in conditions and columns; CamelCase.
	Reason string
	// Doc says what the rule demands and why.
	Doc string
	// Severity says where the severity of a violation comes from.
	Severity string
	// Suggestion says how to fix a violation that has no suggestion of its own.
	Suggestion string
	// check finds what breaks the rule. A placement rule has none.
	check func(*view) []breach
	// placement makes this a placement rule: one about where an agent may write.
	placement *placement
	// Reject and Accept are inputs that do and do not break this rule, whatever they do to others.
	Reject, Accept []Sample
}

// Sample is an input with a short description. It sets only the values that matter: tests add limits that nothing reaches, and trees that
// match the changes.
type Sample struct {
	Name  string
	Input Input
}

// breach is a violation before its rule's name and suggestion are known. Path is empty where it is the whole tree.
type breach struct {
	path       string
	severity   policy.Severity
	message    string
	suggestion string
	// rule is the name to report instead of the rule's own: a check's.
	rule string
}

// Rules are all rules. Their order is that of the reference page. The order of the placement rules among them is their precedence: a path
// breaks the first one that closes it. Violations are ordered by severity and path.
func Rules() []Rule {
	return []Rule{
		usablePatterns(),
		wellFormed(),
		forbiddenAreas(),
		protectedPaths(),
		projectKnowledge(),
		pathRules(),
		contracts(),
		allowedAreas(),
		plannedFiles(),
		gitDirectory(),
		symlinks(),
		strayLinks(),
		specialFiles(),
		unreadable(),
		hardlinks(),
		executables(),
		names(),
		confusables(),
		unportableNames(),
		fileSize(),
		workspaceSize(),
		changedFiles(),
		changedLines(),
		readableContent(),
		binaries(),
		hiddenCharacters(),
		secretFiles(),
		notJudged(),
		userChecks(),
	}
}

// breaches finds what breaks the rule.
func (r *Rule) breaches(v *view) []breach {
	if r.placement != nil {
		return v.placedBy(r)
	}
	return r.check(v)
}

// Reason of the rule with this id; empty if there is none.
func Reason(id string) string {
	for _, rule := range Rules() {
		if rule.ID == id {
			return rule.Reason
		}
	}
	return ""
}
