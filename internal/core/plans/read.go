// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Read takes a proposal for the work that orders describe as the user has them, and gives the whole plan: what is done of an earlier one comes
// first. The objection is empty if the plan can be taken; otherwise it says to the model what is wrong.
func Read(o protocol.Orders, e Earlier, proposal json.RawMessage) (p protocol.Proposal, objection string) {
	var said said
	if objection := answers.Read(Schema(), proposal, &said); objection != "" {
		return protocol.Proposal{}, objection
	}
	p = said.Proposal
	for _, rule := range []func(protocol.Orders, protocol.Proposal) string{distinct, proved, bounded, open} {
		if objection := rule(o, p); objection != "" {
			return protocol.Proposal{}, objection
		}
	}
	for i := range p.Milestones {
		for j := range p.Milestones[i].Tasks {
			t := &p.Milestones[i].Tasks[j]
			t.Instructions = clean(t.Instructions)
		}
	}
	return e.join(p)
}

// said is what a planner says: the plan, and why it is like that.
type said struct {
	protocol.Proposal

	Reasons string `json:"reasons"`
}

// Reasons are why a planner divides the work as it does, in one line of visible characters; empty if it does not say. They do not belong to the plan: its hash and
// what users approve do not have them.
func Reasons(proposal json.RawMessage) string {
	var said said
	if err := json.Unmarshal(proposal, &said); err != nil {
		return ""
	}
	return plain.Line(said.Reasons, MaxReasons)
}

// distinct names: the agent's tasks are known by milestone/task.
func distinct(o protocol.Orders, p protocol.Proposal) string {
	seen := map[string]bool{}
	for _, t := range o.Tasks {
		seen[milestone(t.Name)] = true
	}
	for _, m := range p.Milestones {
		if seen[m.Name] {
			return fmt.Sprintf("There is another milestone with the name %q: give each its own name, other than any that the user has.", m.Name)
		}
		seen[m.Name] = true
		tasks := map[string]bool{}
		for _, t := range m.Tasks {
			if tasks[t.Name] {
				return fmt.Sprintf("The milestone %q has two tasks with the name %q: give each its own.", m.Name, t.Name)
			}
			tasks[t.Name] = true
		}
	}
	return ""
}

// proved by gates that there are.
func proved(o protocol.Orders, p protocol.Proposal) string {
	for _, m := range p.Milestones {
		for _, t := range m.Tasks {
			for i, g := range t.Gates {
				if !slices.ContainsFunc(o.Gates, func(have protocol.Gate) bool { return have.Name == g }) {
					return fmt.Sprintf("The task %s/%s names a gate that is not listed: name only gates of the list, or none.", m.Name, t.Name)
				}
				if slices.Contains(t.Gates[:i], g) {
					return fmt.Sprintf("The task %s/%s names the gate %q twice.", m.Name, t.Name, g)
				}
			}
		}
	}
	return ""
}

// bounded by patterns that can be used.
func bounded(_ protocol.Orders, p protocol.Proposal) string {
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"allowedAreas", p.Allowed}, {"forbiddenAreas", p.Forbidden}} {
		for i, pattern := range list.patterns {
			if err := judge.ValidatePattern(pattern); err != nil {
				return fmt.Sprintf("%s[%d] is not a pattern that can be used: write it as in a .gitignore file, such as web/**.", list.name, i)
			}
		}
	}
	return ""
}

// open says that the plan leaves something to write.
func open(o protocol.Orders, p protocol.Proposal) string {
	mine, theirs := protocol.Plan{Allowed: p.Allowed}, protocol.Plan{Allowed: o.Plan.Allowed}
	if len(p.Allowed) > 0 && len(o.Plan.Allowed) > 0 {
		if _, _, meet := judge.Compare(mine).Overlaps(theirs); !meet {
			return "No path is in allowedAreas and in an area where the agent may write: name areas inside those, or none."
		}
	}
	whole := []string{"*", "**", "/", "/*", "/**", "**/*", "**/**"}
	for _, pattern := range p.Forbidden {
		if slices.Contains(whole, pattern) || slices.Equal(p.Allowed, []string{pattern}) || slices.Equal(o.Plan.Allowed, []string{pattern}) {
			return "forbiddenAreas leaves no path that the agent may write: forbid only what the work must not touch."
		}
	}
	return ""
}

// clean is a text without what a reader cannot see.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == ' ' || plain.Visible(r) {
			return r
		}
		return -1
	}, text))
}
