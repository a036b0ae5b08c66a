// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Advice is the one thing to do about a finding, in words for the agent. For a finding of an unknown detector, from another version, it is
// the advice of the first detector of the same kind. It is empty for PaceEscalated: the plan of a role says what to do.
func (f Finding) Advice() string {
	all := detectors()
	i := slices.IndexFunc(all, func(d detector) bool { return d.name == f.Detector && d.kind == f.Kind && d.advice != nil })
	if i < 0 {
		i = slices.IndexFunc(all, func(d detector) bool { return d.kind == f.Kind })
	}
	if i < 0 {
		return f.opposite()
	}
	return all[i].advice(f)
}

// About describes a detector to users.
type About struct {
	Name string
	Kind Kind
	// Doc says what it finds, and Advice is the text for the agent at the mildest tier.
	Doc, Advice string
}

// Detectors are all of them, in the order in which they count.
func Detectors() (list []About) {
	for _, d := range detectors() {
		list = append(list, About{d.name, d.kind, d.doc, Finding{Kind: d.kind, Detector: d.name, Tier: Warn}.Advice()})
	}
	return list
}

// always is advice that is the same whatever was found.
func always(text string) func(Finding) string { return func(Finding) string { return text } }

// reassess is what to do when nothing gets on.
const reassess = "Reassess the approach: take the smallest next step of the task that changes something, or say what blocks you."

// makeRoom is what to do when the context fills.
func (f Finding) makeRoom() string {
	if f.Tier > Warn {
		return "Begin nothing new: finish what you are at and give your answer."
	}
	return "Finish the current step, then sum up what is done and what is open."
}

// opposites are what to do instead of calling a kind of tool again, by what is in the names of tools.
var opposites = []struct {
	names []string
	do    string
}{
	{[]string{"edit", "patch", "write", "replace"}, "Read the file again, and edit it by what it says now."},
	{[]string{"bash", "shell", "exec", "command", "terminal"}, "Read the error, and check what the command assumes with a smaller one before you try a different approach."},
	{[]string{"read", "glob", "grep", "search", "list"}, "List the directory to see what is there, and go by that."},
	{[]string{"web", "fetch", "http", "browser"}, "Go on without it: use what is in the repository."},
}

// opposite is what to do instead of calling a tool again.
func (f Finding) opposite() string {
	for _, o := range opposites {
		for _, name := range o.names {
			if strings.Contains(strings.ToLower(f.Tool), name) {
				return o.do
			}
		}
	}
	return fmt.Sprintf("Do not call %s again like this: read the error, and try a different approach.", cmp.Or(f.Tool, "it"))
}
