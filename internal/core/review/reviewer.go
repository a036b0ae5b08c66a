// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review decides when reviewers look at the work of an agent, what they see, and what counts of what they say. Reviewers are models
// that look between two tasks, give directives and write down what the next agents should know. The assessor gives a verdict on the whole. They are silent by construction: a finding counts only if its quote stands in the tree, and
// none counts twice.
package review

import (
	"cmp"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Reviewer is one that looks at the work. To add one, write a file with it, add it to own, and script its cases in testdata.
type Reviewer struct {
	// Name is the source of its directives (protocol.SourceCodeStyle and others, or what protocol.CustomReviewer makes), and Title names it to users.
	Name, Title string
	// One and Many name what it finds to users.
	One, Many string
	// Remit tells the model what to look for.
	Remit string
	// Baseline says what its first documents are about, if there are none.
	Baseline string
	// Directive is the type of its directives, and MaxPriority the most urgent priority that they can have.
	Directive, MaxPriority string
	// Compares says that it sees files of the repository that are like the changed ones, and Knows are the kinds of documents of the project's knowledge
	// that it sees and writes. Each kind has one reviewer.
	Compares bool
	Knows    []knowledge.Kind
	// Weighs: where the changes contradict a document that it knows, it says which of the two is wrong.
	Weighs bool
	// Mute: it gives no directives, and runs only where it can write documents.
	Mute bool
	// Paths are patterns of the files that it sees; empty for all files. Without a change in them, nobody asks its model.
	Paths []string
	// Calls says whether an event calls it whatever its urgency is.
	Calls []Event
	// Assesses: it gives a verdict on the whole in place of findings, and looks after the other reviewers.
	Assesses bool
	// rule of it in a policy.
	rule func(policy.Reviewers) policy.Reviewer
}

// own are the reviewers of Tidewaiter that look at changes.
var own = []Reviewer{codeStyle, design, knower}

// defined are all reviewers that there are under a policy, in the order in which they look. The assessor is the last one, because it sees what the others
// have found.
func defined(p policy.Effective) []Reviewer {
	return append(slices.Concat(own, custom(p.Reviewers)), assessor)
}

// All are the reviewers that a policy lets run, in the order in which they look.
func All(p policy.Effective) []Reviewer {
	return slices.DeleteFunc(defined(p), func(r Reviewer) bool {
		rule := r.rule(p.Reviewers)
		unknown := (r.Assesses || r.Mute) && rule == policy.Reviewer{} // to the version that has made the policy: what follows from its records stays the same
		return unknown || !p.Reviews(rule) || r.Mute && !r.Writes(p)
	})
}

// Find a reviewer by its name. A reviewer that a policy has defined before is not found.
func Find(name string, p policy.Effective) (Reviewer, bool) {
	all := defined(p)
	i := slices.IndexFunc(all, func(r Reviewer) bool { return r.Name == name })
	if i < 0 {
		return Reviewer{}, false
	}
	return all[i], true
}

// Is says whether the source of a directive is a reviewer, or one that a policy has defined before.
func Is(source string) bool {
	_, is := protocol.CustomName(source)
	return is || slices.Contains(protocol.Reviewers(), source)
}

// Assesses says whether a reviewer is an assessor.
func Assesses(name string) bool { return name == assessor.Name }

// Title names a reviewer to users, also one that a policy has defined before.
func Title(name string) string {
	if r, is := Find(name, policy.Effective{}); is {
		return r.Title
	}
	title, _ := protocol.CustomName(name)
	return cmp.Or(title, name)
}

// Sees says which files a reviewer sees. The function is not safe for concurrent use.
func (r Reviewer) Sees() func(path string) bool {
	if len(r.Paths) == 0 {
		return func(string) bool { return true }
	}
	return judge.NewPaths(r.Paths).Has
}

// Writes says whether the reviewer can write documents: the policy gives agents the knowledge of the project.
func (r Reviewer) Writes(p policy.Effective) bool { return len(r.Knows) > 0 && p.Knowledge.Inject }

// Rule of the reviewer in a policy.
func (r Reviewer) Rule(p policy.Effective) policy.Reviewer { return r.rule(p.Reviewers) }

// Within is a reader of files, as Keep takes it, that has only the files that the reviewer sees. It is not safe for concurrent use.
func (r Reviewer) Within(text func(path string) (content string, is bool)) func(path string) (content string, is bool) {
	sees := r.Sees()
	return func(path string) (string, bool) {
		if !sees(path) {
			return "", false
		}
		return text(path)
	}
}
