// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Earlier is what a new plan takes the place of. The zero Earlier is that of the first plan.
type Earlier struct {
	// Plan that was followed or proposed.
	Plan protocol.Proposal
	// Done says which tasks are done or were aborted, by milestone/task, also tasks that only a user has listed; nil for none.
	Done func(task string) bool
	// Worked: work was promoted, under the plan or before the first one. The areas of that work then stay open, because the delivery contains it.
	Worked bool
	// Diverged is why an assessor finds that the work needs another plan; empty if a user wants it.
	Diverged string
	// Directive of the user who wants another plan; empty for none.
	Directive string
}

// kept are the milestones of the earlier plan with the tasks that are done.
func (e Earlier) kept() []protocol.ProposedMilestone {
	var kept []protocol.ProposedMilestone
	for _, m := range e.Plan.Milestones {
		done := slices.DeleteFunc(slices.Clone(m.Tasks), func(t protocol.ProposedTask) bool { return !e.done(m.Name, t.Name) })
		if len(done) > 0 {
			kept = append(kept, protocol.ProposedMilestone{Name: m.Name, Tasks: done})
		}
	}
	return kept
}

func (e Earlier) done(milestone, task string) bool {
	return e.Done != nil && e.Done(milestone+"/"+task)
}

// join gives the plan with what is done before it. The objection is empty if both fit together.
func (e Earlier) join(p protocol.Proposal) (joined protocol.Proposal, objection string) {
	joined = protocol.Proposal{Milestones: e.kept(), Allowed: p.Allowed, Forbidden: p.Forbidden}
	for _, m := range p.Milestones {
		for _, t := range m.Tasks {
			if e.done(m.Name, t.Name) { // it would be over before it begins
				return protocol.Proposal{}, fmt.Sprintf("The task %s/%s is done: give the new task another name.", m.Name, t.Name)
			}
		}
		i := slices.IndexFunc(joined.Milestones, func(have protocol.ProposedMilestone) bool { return have.Name == m.Name })
		if i < 0 {
			joined.Milestones = append(joined.Milestones, m)
			continue
		}
		joined.Milestones[i].Tasks = slices.Concat(joined.Milestones[i].Tasks, m.Tasks)
	}
	if n := len(joined.Milestones); n > MaxMilestones {
		return protocol.Proposal{}, fmt.Sprintf("The plan has %d milestones in all, with the milestones of tasks that are done, and the limit is %d.", n, MaxMilestones)
	}
	if n := Tasks(joined); n > MaxTasks {
		return protocol.Proposal{}, fmt.Sprintf("The plan has %d tasks in all, with the tasks that are done, and the limit is %d.", n, MaxTasks)
	}
	if e.Worked {
		joined.Allowed, joined.Forbidden = e.areas(p)
	}
	if n := Size(joined); n > MaxBytes {
		return protocol.Proposal{}, fmt.Sprintf("The plan has %d bytes in all, with the tasks that are done, and the limit is %d: give fewer tasks, or shorter instructions.", n, MaxBytes)
	}
	return joined, ""
}

// areas in which the work so far is allowed as well. Work without a plan can be anywhere.
func (e Earlier) areas(p protocol.Proposal) (allowed, forbidden []string) {
	if len(p.Allowed) > 0 && len(e.Plan.Allowed) > 0 {
		allowed = slices.Clone(p.Allowed)
		for _, area := range e.Plan.Allowed {
			if !slices.Contains(allowed, area) {
				allowed = append(allowed, area)
			}
		}
	}
	if len(allowed) > MaxAreas {
		allowed = nil
	}
	return allowed, slices.DeleteFunc(slices.Clone(p.Forbidden), func(area string) bool { return !slices.Contains(e.Plan.Forbidden, area) })
}

// Without gives the orders that a user has, without a plan that Apply has added. Orders with another plan, or with none, stay as they are.
func Without(o protocol.Orders, p protocol.Proposal) protocol.Orders {
	if o.Planned == "" || o.Planned != Hash(p) {
		return o
	}
	planned := map[string]string{}
	for _, m := range p.Milestones {
		for _, t := range m.Tasks {
			planned[m.Name+"/"+t.Name] = t.Instructions
		}
	}
	o.Planned, o.Plan.Proposed = "", nil
	applied := false
	o.Tasks = slices.DeleteFunc(slices.Clone(o.Tasks), func(t protocol.Task) bool {
		if protocol.Added(t.Name) { // the journal adds it again, after the plan
			return true
		}
		instructions, is := planned[t.Name]
		is = is && instructions == t.Instructions // a user may have listed a task with that name since
		applied = applied || is
		return is
	})
	// Apply adds the areas of a plan only with a task of it.
	if own := len(o.Plan.Forbidden) - len(p.Forbidden); applied && own >= 0 && slices.Equal(o.Plan.Forbidden[own:], p.Forbidden) {
		o.Plan.Forbidden = slices.Clone(o.Plan.Forbidden[:own])
	}
	if len(o.Tasks) == 0 {
		o.Tasks = []protocol.Task{{Name: o.Feature.Name}}
	}
	o.Tasks = withUnnamed(o.Tasks, o.Unnamed)
	return o
}
