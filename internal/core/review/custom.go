// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// customRemit of every reviewer that a policy defines. Its instructions follow as what the team adds.
const customRemit = `You review changes to a Git repository for one concern of the team that owns it. The team says at the end of these instructions what the
concern is. Report only what it asks for: other reviewers look at style and design.`

// custom are the reviewers that a policy defines, sorted by name. They run without a word about it: a team that writes one wants it.
func custom(p policy.Reviewers) (list []Reviewer) {
	for _, c := range p.Custom {
		runs := true
		r := Reviewer{
			Name:        protocol.CustomReviewer(c.Name),
			Title:       c.Name,
			One:         "finding",
			Many:        "findings",
			Directive:   protocol.DirectiveCleanup,
			MaxPriority: protocol.PriorityLow,
			Paths:       c.Paths,
			Remit:       customRemit,
			rule: func(policy.Reviewers) policy.Reviewer {
				return policy.Reviewer{Enabled: &runs, EveryTasks: c.EveryTasks, OnMilestone: c.OnMilestone, Instructions: c.Instructions}
			},
		}
		if c.Priority == policy.ReviewNormal {
			r.Directive, r.MaxPriority = protocol.DirectiveFunctional, protocol.PriorityNormal
		}
		list = append(list, r)
	}
	return list
}
