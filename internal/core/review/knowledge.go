// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// knower writes down what the work has taught.
var knower = Reviewer{
	Name:     protocol.SourceKnowledge,
	Title:    "Knowledge",
	Knows:    []knowledge.Kind{knowledge.Lessons, knowledge.Domain},
	Mute:     true,
	Baseline: "what the words of the domain mean in this repository, and which rules hold there",
	Remit: `You write down what coding agents should know before they work on a Git repository again. Look at what failed and what mended it, at what had to
be done differently from the plan, and at the words and rules of the domain that the request and the changes rely on. Lessons say how not to repeat
a failure. Documents of the domain say what the words of the domain mean and which rules hold there: they state facts, and do not tell agents what to do.`,
	rule: func(r policy.Reviewers) policy.Reviewer { return r.Knowledge },
}
