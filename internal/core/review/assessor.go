// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// assessor says whether the work as a whole still goes where the request and the plan want it.
var assessor = Reviewer{
	Name:        protocol.SourceAssessor,
	Title:       "Assessor",
	Directive:   protocol.DirectiveFunctional,
	MaxPriority: protocol.PriorityNormal,
	Assesses:    true,
	Remit: `You assess whether the work on a Git repository still goes where its request and its plan want it. Look at the whole: what the tasks that are over
have made, what the gates prove, what the other reviewers find, and whether the tasks that are still to come lead to what the request asks.
Do not repeat what the other reviewers have found, and do not assess style.`,
	rule: func(r policy.Reviewers) policy.Reviewer { return r.Assessor },
}
