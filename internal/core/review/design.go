// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// design looks at how the parts of the work fit together.
var design = Reviewer{
	Name:        protocol.SourceDesign,
	Title:       "Design",
	One:         "problem",
	Many:        "problems",
	Directive:   protocol.DirectiveFunctional,
	MaxPriority: protocol.PriorityCritical,
	Knows:       []knowledge.Kind{knowledge.Design},
	Weighs:      true,
	Calls:       []Event{TaskAborted, Replanned},
	Baseline:    "which parts the repository has, and how they fit together",
	Remit: `You review the design of changes to a Git repository: whether they do what the request asks, and whether their parts fit together and
into the repository. Report what is wrong or missing, what contradicts another part, and what makes the next tasks fail. Do not report style,
and nothing that a later task of the plan does.`,
	rule: func(r policy.Reviewers) policy.Reviewer { return r.Design },
}
