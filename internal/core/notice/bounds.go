// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxBounds is the most tokens of the text before the task.
	maxBounds = 600
	// maxListed bounds each list in it, and maxName each name, in bytes.
	maxListed, maxName = 40, 80
)

// Bounds tells an agent before it begins where its policy and its plan let it write. If there is not room for everything, it names the same
// number of entries of each long list. The argument role is the agent's role, and locks are the contracts whose locks the Feature holds.
func Bounds(plan protocol.Plan, p policy.Effective, role string, locks []string) string {
	for most := maxListed; ; most-- {
		if text := bounds(plan, p, role, locks, most); tokens(text) <= maxBounds || most == 1 {
			return within(strings.ToValidUTF8(text, "\uFFFD"), maxBounds)
		}
	}
}

// bounds with the given number of names of each list.
func bounds(plan protocol.Plan, p policy.Effective, role string, locks []string, most int) string {
	var b strings.Builder
	line := func(what string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "\n- %s: %s.", what, named(names, most))
		}
	}
	line("Write only to these areas", plan.Allowed)
	line("Write only to these of them", plan.Proposed)
	line("Leave these areas as they are", plan.Forbidden)
	if f := plan.Files; f != nil {
		b.WriteString("\n- Only the planned files may change.")
		line("Planned to be made", f.Create)
		line("Planned to be changed", f.Modify)
		line("Planned to be deleted", f.Delete)
	}
	line("Protected, for nobody to change", p.Paths.Protected)
	if p.Knowledge.Inject {
		line("Only for users to change, because agents read it as the knowledge of their team", []string{policy.KnowledgeDir + "/**"})
	}
	closed, others := pathsOf(p.Paths.Rules, role)
	line("Read-only for your role", closed)
	line("For other roles to change, where the policy does not name yours as well", others)
	contracts := slices.SortedFunc(slices.Values(p.Contracts), func(a, b policy.Contract) int { return strings.Compare(a.Name, b.Name) })
	for i, c := range contracts {
		if i == most {
			fmt.Fprintf(&b, "\n- and %s.", plural(len(contracts)-most, "more contract"))
			break
		}
		what := "which another work may change, and yours not"
		if slices.Contains(locks, c.Name) {
			what = "which is locked for your work"
		}
		line(fmt.Sprintf("Contract %s, %s", judge.Escape(c.Name), what), c.Paths)
	}
	if limits := limits(p.Changes); len(limits) > 0 {
		fmt.Fprintf(&b, "\n- Limits: %s.", strings.Join(limits, "; "))
	}
	if b.Len() == 0 {
		return ""
	}
	return "You may write within these bounds. The supervisor does not deliver what breaks them, and may put it back:" + b.String()
}

// pathsOf are the patterns of path rules that are closed for a role, and the patterns that are open for others.
func pathsOf(rules []policy.PathRule, role string) (closed, others []string) {
	for _, r := range rules {
		mine := len(r.Roles) == 0 || slices.Contains(r.Roles, role)
		switch {
		case r.Access == policy.Write && !mine:
			others = append(others, r.Paths...)
		case r.Access != policy.Write && mine:
			closed = append(closed, r.Paths...)
		}
	}
	return closed, others
}

// limits of what may change.
func limits(c policy.Changes) (all []string) {
	for _, l := range []struct {
		value int64
		text  string
	}{
		{c.MaxFiles, "at most %d files may change"},
		{c.MaxLines, "at most %d lines may be added and removed"},
		{c.MaxFileSize, "a changed file has at most %d bytes"},
		{c.MaxWorkspaceSize, "the workspace has at most %d bytes"},
		{c.MaxWorkspaceFiles, "the workspace has at most %d files"},
	} {
		if l.value > 0 {
			all = append(all, fmt.Sprintf(l.text, l.value))
		}
	}
	return all
}

// named are the first names of a list.
func named(names []string, most int) string {
	var shown []string
	for _, n := range names[:min(len(names), most)] {
		shown = append(shown, plain.CutBytes(judge.Escape(n), maxName))
	}
	if more := len(names) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}

// Remains tells an agent that continues which of its files went back when its container was lost. Checkpoint is the name of the one that keeps them.
func Remains(checkpoint string, changes []judge.Change) string {
	if len(changes) == 0 {
		return ""
	}
	paths := make([]string, 0, maxPoints)
	for _, c := range changes[:min(len(changes), maxPoints)] {
		paths = append(paths, c.Path)
	}
	return fmt.Sprintf("These files of yours were in no valid checkpoint, and went back to the last one: %s. Checkpoint %s keeps them as they were. Do again what your task needs of them.",
		quoted(paths, len(changes)), checkpoint)
}
