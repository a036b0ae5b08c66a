// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review decides when reviewers look at the work of an agent, what they see, and what counts of what they say. Reviewers are models
// that look between two tasks, give directives and write down what the next agents should know. The assessor gives a verdict on the whole. They are silent by construction: a finding counts only if its quote stands in the tree, and
// none counts twice.
package review

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Reviewer is one that looks at the work. To add one, write a file with it, add it to all, and script its cases in testdata.
type Reviewer struct {
	// Name is the source of its directives (protocol.SourceCodeStyle and others), and Title names it to users.
	Name, Title string
	// One and Many name what it finds to users.
	One, Many string
	// Remit tells the model what to look for.
	Remit string
	// Directive is the type of its directives, and MaxPriority the most urgent priority that they can have.
	Directive, MaxPriority string
	// Compares says that it sees files of the repository that are like the changed ones, and Knows are the kinds of documents of the project's knowledge
	// that it sees and writes. Each kind has one reviewer.
	Compares bool
	Knows    []knowledge.Kind
	// Mute: it gives no directives, and runs only where it can write documents.
	Mute bool
	// Calls says whether an event calls it whatever its urgency is.
	Calls []Event
	// Assesses: it gives a verdict on the whole in place of findings, and looks after the other reviewers.
	Assesses bool
	// rule of it in a policy.
	rule func(policy.Reviewers) policy.Reviewer
}

// all reviewers, in the order in which they look. The assessor is the last one, because it sees what the others have found.
var all = []Reviewer{codeStyle, design, knower, assessor}

// All are the reviewers that a policy lets run, in the order in which they look.
func All(p policy.Effective) []Reviewer {
	return slices.DeleteFunc(slices.Clone(all), func(r Reviewer) bool {
		rule := r.rule(p.Reviewers)
		unknown := (r.Assesses || r.Mute) && rule == policy.Reviewer{} // to the version that has made the policy: what follows from its records stays the same
		return unknown || !p.Reviews(rule) || r.Mute && !r.Writes(p)
	})
}

// Find a reviewer by its name.
func Find(name string) (Reviewer, bool) {
	i := slices.IndexFunc(all, func(r Reviewer) bool { return r.Name == name })
	if i < 0 {
		return Reviewer{}, false
	}
	return all[i], true
}

// Is says whether the source of a directive is a reviewer.
func Is(source string) bool { _, is := Find(source); return is }

// Writes says whether the reviewer can write documents: the policy gives agents the knowledge of the project.
func (r Reviewer) Writes(p policy.Effective) bool { return len(r.Knows) > 0 && p.Knowledge.Inject }

// Rule of the reviewer in a policy.
func (r Reviewer) Rule(p policy.Effective) policy.Reviewer { return r.rule(p.Reviewers) }
